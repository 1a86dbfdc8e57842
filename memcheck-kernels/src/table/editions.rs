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
