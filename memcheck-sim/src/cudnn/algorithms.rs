//! The algorithms of a convolution, as data: which cases each supports, and an ESTIMATE of its
//! workspace.
//!
//! cuDNN chooses by heuristics that it does not document, and documents workspaces in words only.
//! The order of the rows is the order of the choice, and the sizes follow from the words of the
//! documentation of `cudnnConvolutionFwdAlgo_t`. They do not follow from measurements. What cuDNN 9.14
//! returned on an H200 for 92 convolutions is in `tests/recordings/nvidia-h200/cudnn-workspaces.txt`.

use std::ffi::c_int;

use memcheck_kernels::{Convolution, Kind, Tensor};

/// A convolution whose shapes agree.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Problem {
    pub(crate) image: Tensor,
    pub(crate) filter: Tensor,
    pub(crate) output: Tensor,
    pub(crate) convolution: Convolution,
}

/// A row of the table.
pub(crate) struct Algorithm {
    /// The number in `cudnnConvolutionFwdAlgo_t`.
    pub(crate) number: c_int,
    supports: fn(&Problem) -> bool,
    workspace: fn(&Problem) -> u64,
}

pub(crate) static TABLE: &[Algorithm] = &[
    // IMPLICIT_PRECOMP_GEMM needs a workspace for indices: an `int` for each element of a filter.
    Algorithm {
        number: 1,
        supports: |problem| !problem.convolution.is_reversed,
        workspace: |problem| 4 * product(&problem.filter.dims[1..]),
    },
    // IMPLICIT_GEMM does not form the matrix of the input, and needs no workspace.
    Algorithm { number: 0, supports: |_| true, workspace: |_| 0 },
    // WINOGRAD needs a small one: the transformed filter, 16 elements for each 9.
    Algorithm {
        number: 6,
        supports: |problem| problem.is_winograd(&[3]),
        workspace: |problem| 16 * 4 * product(&problem.filter.dims[..2]),
    },
    // WINOGRAD_NONFUSED needs a large one: filter, image and output in tiles of 6 x 6 for 4 x 4
    // pixels.
    Algorithm {
        number: 7,
        supports: |problem| problem.is_winograd(&[3, 5]),
        workspace: |problem| {
            let [batch, out, rows, columns] = problem.output.dims;
            let channels = problem.filter.dims[1];
            let tiles = product(&[batch, rows.div_ceil(4), columns.div_ceil(4)]);
            let all =
                [product(&[out, channels]), product(&[channels, tiles]), product(&[out, tiles])];
            all.iter().fold(0, |sum: u64, &part| sum.saturating_add(part)).saturating_mul(36 * 4)
        },
    },
    // GEMM stores the matrix of the input: the columns of one image.
    Algorithm {
        number: 2,
        supports: |problem| problem.is_dense(),
        workspace: |problem| {
            let width = problem.image.kind.width();
            let positions = product(&problem.output.dims[2..]);
            product(&[width, positions, product(&problem.filter.dims[1..])])
        },
    },
    // FFT stores intermediate results: three spectra.
    Algorithm {
        number: 4,
        supports: |problem| problem.is_unit() && problem.padded().iter().all(|&side| side <= 256),
        workspace: |problem| problem.spectra(problem.padded()),
    },
    // FFT_TILING does the same in tiles of 32 x 32.
    Algorithm {
        number: 5,
        supports: |problem| {
            problem.is_unit() && problem.filter.dims[2..].iter().all(|&side| side <= 32)
        },
        workspace: |problem| problem.spectra(problem.padded().map(|side| side.min(32))),
    },
];

pub(crate) fn find(number: c_int) -> Option<&'static Algorithm> {
    TABLE.iter().find(|algorithm| algorithm.number == number)
}

impl Algorithm {
    /// Returns the bytes of the workspace; `None` if the algorithm does not support the problem.
    pub(crate) fn workspace(&self, problem: &Problem) -> Option<u64> {
        (self.supports)(problem).then(|| (self.workspace)(problem))
    }
}

impl Problem {
    fn is_dense(&self) -> bool {
        self.convolution.dilations == [1, 1] && self.convolution.groups == 1
    }

    fn is_unit(&self) -> bool {
        self.is_dense() && self.convolution.strides == [1, 1] && self.image.kind != Kind::F64
    }

    fn is_winograd(&self, sides: &[u64]) -> bool {
        let [.., rows, columns] = self.filter.dims;
        self.is_unit() && rows == columns && sides.contains(&rows)
    }

    fn padded(&self) -> [u64; 2] {
        [0, 1].map(|axis| self.image.dims[2 + axis] + 2 * self.convolution.pads[axis])
    }

    /// Complex numbers of 8 bytes for half of the frequencies.
    fn spectra(&self, [rows, columns]: [u64; 2]) -> u64 {
        let ([batch, channels, ..], out) = (self.image.dims, self.filter.dims[0]);
        let planes = product(&[batch, channels])
            .saturating_add(product(&[out, channels]))
            .saturating_add(product(&[batch, out]));
        product(&[8, planes, rows, columns / 2 + 1])
    }
}

fn product(factors: &[u64]) -> u64 {
    factors.iter().fold(1, |all, &factor| all.saturating_mul(factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(kind: Kind, side: u64, stride: u64) -> Problem {
        let convolution = Convolution {
            pads: [1, 1],
            strides: [stride; 2],
            dilations: [1, 1],
            groups: 1,
            is_reversed: false,
        };
        let output = convolution.output(0, 8, side).unwrap();
        Problem {
            image: Tensor::contiguous(kind, [2, 3, 8, 8]),
            filter: Tensor::contiguous(kind, [5, 3, side, side]),
            output: Tensor::contiguous(kind, [2, 5, output, output]),
            convolution,
        }
    }

    #[test]
    fn the_first_choice_precomputes_indices_of_a_filter() {
        let problem = problem(Kind::F32, 3, 1);
        assert_eq!(TABLE[0].workspace(&problem), Some(4 * 3 * 3 * 3));
        assert_eq!(find(0).unwrap().workspace(&problem), Some(0));
        assert_eq!(find(2).unwrap().workspace(&problem), Some(8 * 8 * 27 * 4));
        assert_eq!(find(4).unwrap().workspace(&problem), Some(8 * (6 + 15 + 10) * 10 * 6));
    }

    #[test]
    fn algorithms_refuse_what_their_documentation_excludes() {
        assert!(find(6).unwrap().workspace(&problem(Kind::F32, 5, 1)).is_none());
        assert!(find(7).unwrap().workspace(&problem(Kind::F32, 5, 1)).is_some());
        assert!(find(7).unwrap().workspace(&problem(Kind::F64, 5, 1)).is_none());
        assert!(find(4).unwrap().workspace(&problem(Kind::F32, 3, 2)).is_none());
        // DIRECT is documented as not implemented.
        assert!(find(3).is_none());
    }
}
