//! The versions of candle-kernels: in which kernels each differs from the newest, which the rows
//! describe.
//!
//! The other differences between the sources do not change a result: until 0.11.0 the kernels for
//! bf16 and f32 do not read vectors, and have other macros for old compilers.

use super::*;
use crate::reduce;
use crate::unary::{self, Op};

/// Versions of candle-kernels with the same kernels.
pub struct Edition {
    pub(super) versions: &'static [&'static str],
    /// Rows instead of those with the same names.
    replaced: &'static [Row],
    /// The beginnings of the names of kernels that these versions do not have.
    absent: &'static [&'static str],
}

/// Up to 0.11.0 these kernels compute each step in the element type.
static IN_OWN_TYPE: &[Row] = &[
    row("fast_sum", &[(Kind::Bf16, 80), (Kind::F32, ALWAYS)], "sssppw", reduce::sum_in_own_type),
    row("usigmoid", &[(Kind::Bf16, 80)], "ssppw", |it| unary::run(it, Op::SigmoidInOwnType)),
    row("usilu", &[(Kind::Bf16, 80)], "ssppw", |it| unary::run(it, Op::SiluInOwnType)),
];

pub(super) static EDITIONS: &[Edition] = &[
    Edition {
        versions: &["0.9.2", "0.10.2"],
        replaced: IN_OWN_TYPE,
        absent: &["fast_sum_small_", "get_rows_"],
    },
    Edition { versions: &["0.11.0"], replaced: IN_OWN_TYPE, absent: &["fast_sum_small_"] },
    Edition { versions: &["0.11.1"], replaced: &[], absent: &[] },
];

impl Edition {
    /// The edition that contains a version; `None` if its kernels were not compared.
    pub(crate) fn of(version: &str) -> Option<&'static Self> {
        EDITIONS.iter().find(|edition| edition.versions.contains(&version))
    }

    /// Finds a kernel among the rows of a module.
    pub(crate) fn find(&self, rows: &'static [Row], name: &str, capability: u8) -> Option<Kernel> {
        if self.absent.iter().any(|start| name.starts_with(start)) {
            return None;
        }
        let found = find(rows.iter(), name, capability)?;
        Some(find(self.replaced.iter(), name, capability).unwrap_or(found))
    }
}

impl std::fmt::Debug for Edition {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Edition {:?}", self.versions)
    }
}

#[cfg(test)]
mod tests {
    use half::bf16;

    use super::*;
    use crate::arguments::Arguments;
    use crate::harness::{TestDevice, arguments};
    use crate::launch::Shape;

    /// Returns the first `outputs` results of a kernel of a version, which one block computes.
    fn launched(
        (version, module, name): (&str, &str, &str),
        (threads, outputs): (u32, usize),
        arguments: impl FnOnce(u64, u64) -> Vec<[u8; 8]>,
        input: &[bf16],
    ) -> Vec<bf16> {
        let mut device = TestDevice::new();
        let (from, to) = (device.upload(input), device.allocate(2 * input.len()));
        let edition = Edition::of(version).unwrap();
        let kernel = edition.find(super::super::module(module).unwrap(), name, 90).unwrap();
        let shape = Shape { grid: [1; 3], block: [threads, 1, 1] };
        kernel.launch(&mut device.memory, shape, Arguments::of(&arguments(from, to)));
        device.download(to, outputs).expect("the results are known")
    }

    #[test]
    fn sums_of_bf16_are_rounded_in_each_step_up_to_0_11_0() {
        // A thread adds 512 ones: in bf16, 256 + 1 is 256.
        let ones = [bf16::ONE; 32 * 512];
        let sum = |version| {
            let count = ones.len() as u64;
            let arguments =
                |from: u64, to: u64| arguments![count, count, 0_u64, 0_u64, from, to].to_vec();
            launched((version, "reduce", "fast_sum_bf16"), (32, 1), arguments, &ones)[0].to_f32()
        };
        assert_eq!(["0.9.2", "0.10.2", "0.11.0"].map(sum), [32.0 * 256.0; 3]);
        assert_eq!(sum("0.11.1"), 32.0 * 512.0);
    }

    #[test]
    fn a_sigmoid_of_bf16_is_rounded_in_each_step_up_to_0_11_0() {
        let inputs: Vec<bf16> = (0..64).map(|n| bf16::from_f32(n as f32 / 8.0 - 4.0)).collect();
        let count = inputs.len() as u64;
        let of = |version, name| {
            let arguments = |from: u64, to: u64| arguments![count, 0_u64, 0_u64, from, to].to_vec();
            launched((version, "unary", name), (1, inputs.len()), arguments, &inputs)
        };
        let steps = |x: &bf16| {
            let exp = bf16::from_f32((-x.to_f32()).exp());
            let sum = bf16::from_f32(1.0 + exp.to_f32());
            (bf16::from_f32(1.0 / sum.to_f32()), bf16::from_f32(x.to_f32() / sum.to_f32()))
        };
        let (sigmoid, silu): (Vec<bf16>, Vec<bf16>) = inputs.iter().map(steps).unzip();
        for version in ["0.10.2", "0.11.0"] {
            assert_eq!(of(version, "usigmoid_bf16"), sigmoid, "{version}");
            assert_eq!(of(version, "usilu_bf16"), silu, "{version}");
        }
        assert_ne!(of("0.11.1", "usigmoid_bf16"), sigmoid);
        assert_ne!(of("0.11.1", "usilu_bf16"), silu);
    }
}
