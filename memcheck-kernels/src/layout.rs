//! The dims and strides of a tensor, in elements.

/// A tensor's layout. A stride of 0 repeats an element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    dims: Vec<u64>,
    strides: Vec<u64>,
}

impl Layout {
    /// Pairs dims and strides, and joins the dims that are contiguous.
    pub(crate) fn new(dims: &[u64], strides: &[u64]) -> Self {
        let mut layout = Self { dims: Vec::new(), strides: Vec::new() };
        for (&dim, &stride) in dims.iter().zip(strides).filter(|&(&dim, _)| dim != 1) {
            match (layout.dims.last_mut(), layout.strides.last_mut()) {
                (Some(outer), Some(step)) if *step == stride.wrapping_mul(dim) => {
                    *outer = outer.saturating_mul(dim);
                    *step = stride;
                }
                _ => {
                    layout.dims.push(dim);
                    layout.strides.push(stride);
                }
            }
        }
        layout
    }

    /// A layout of `count` elements without gaps.
    pub(crate) fn contiguous(count: u64) -> Self {
        Self::new(&[count], &[1])
    }

    pub(crate) fn count(&self) -> u64 {
        self.dims.iter().fold(1, |all, &dim| all.saturating_mul(dim))
    }

    /// The number of elements from the first to the last one, gaps included.
    pub(crate) fn extent(&self) -> u64 {
        if self.count() == 0 {
            return 0;
        }
        let last = self.dims.iter().zip(&self.strides);
        last.fold(0_u64, |all, (&dim, &stride)| {
            all.saturating_add((dim - 1).saturating_mul(stride))
        })
        .saturating_add(1)
    }

    pub(crate) fn is_contiguous(&self) -> bool {
        match (self.dims.as_slice(), self.strides.as_slice()) {
            ([], _) => true,
            ([_], [stride]) => *stride == 1,
            _ => self.count() == 0,
        }
    }

    /// Calls `visit` with the first index, the stride and the length of each innermost row, in
    /// row-major order, until it returns false. Returns whether all calls returned true.
    pub(crate) fn rows(&self, mut visit: impl FnMut(u64, u64, u64) -> bool) -> bool {
        self.visit_rows(&mut visit)
    }

    /// Not a part of `rows`, which is compiled once for each closure.
    fn visit_rows(&self, visit: &mut dyn FnMut(u64, u64, u64) -> bool) -> bool {
        if self.count() == 0 {
            return true;
        }
        let (Some((&length, outer)), Some((&stride, outer_strides))) =
            (self.dims.split_last(), self.strides.split_last())
        else {
            return visit(0, 1, 1);
        };
        let mut position = vec![0_u64; outer.len()];
        let mut index = 0_u64;
        loop {
            if !visit(index, stride, length) {
                return false;
            }
            let mut axis = outer.len();
            loop {
                let Some(next) = axis.checked_sub(1) else { return true };
                axis = next;
                position[axis] += 1;
                index += outer_strides[axis];
                if position[axis] < outer[axis] {
                    break;
                }
                index -= outer_strides[axis] * outer[axis];
                position[axis] = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    fn indices(layout: &Layout) -> Vec<u64> {
        let mut all = Vec::new();
        layout.rows(|first, stride, length| {
            all.extend((0..length).map(|at| first + at * stride));
            true
        });
        all
    }

    /// What the device computes: `get_strided_index` of candle's kernels.
    fn expected(dims: &[u64], strides: &[u64]) -> Vec<u64> {
        (0..dims.iter().product())
            .map(|mut at: u64| {
                let mut index = 0;
                for (dim, stride) in dims.iter().zip(strides).rev() {
                    index += at % dim * stride;
                    at /= dim;
                }
                index
            })
            .collect()
    }

    #[test]
    fn contiguous_dims_are_joined() {
        let layout = Layout::new(&[2, 1, 3, 4], &[12, 7, 4, 1]);
        assert_eq!(layout, Layout::contiguous(24));
        assert!(layout.is_contiguous());
        assert_eq!((layout.count(), layout.extent()), (24, 24));
        assert!(!Layout::new(&[4, 3], &[1, 4]).is_contiguous());
        let scalar = Layout::new(&[], &[]);
        assert_eq!((scalar.count(), scalar.extent(), indices(&scalar)), (1, 1, vec![0]));
        let empty = Layout::new(&[3, 0], &[1, 1]);
        assert_eq!((empty.count(), empty.extent(), indices(&empty)), (0, 0, Vec::new()));
        let broadcast = Layout::new(&[3, 2], &[0, 0]);
        assert_eq!((broadcast.count(), broadcast.extent()), (6, 1));
    }

    proptest! {
        #[test]
        fn elements_are_visited_in_the_order_of_the_device(
            axes in prop::collection::vec((0..4_u64, 0..9_u64), 0..5)
        ) {
            let (dims, strides): (Vec<_>, Vec<_>) = axes.into_iter().unzip();
            let layout = Layout::new(&dims, &strides);
            let all = expected(&dims, &strides);
            prop_assert_eq!(layout.count(), all.len() as u64);
            prop_assert_eq!(layout.extent(), all.iter().max().map_or(0, |last| last + 1));
            prop_assert_eq!(indices(&layout), all);
        }
    }
}
