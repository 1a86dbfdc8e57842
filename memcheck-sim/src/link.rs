//! The anchor that keeps every exported function in the binary.

use crate::ffi::Symbol;
use crate::{cublas, cudart, cupti, curand, driver, kernels, nvrtc, registered, unsupported};

/// Every function of the C interface but for the hooked ones.
static TABLES: &[&[&[Symbol]]] = &[
    driver::EXPORTS,
    &[cudart::EXPORTS, cudart::OTHERS, cublas::EXPORTS, cublas::OTHERS, curand::EXPORTS],
    &[
        cupti::EXPORTS,
        cupti::OTHERS,
        nvrtc::EXPORTS,
        nvrtc::OTHERS,
        registered::EXPORTS,
        registered::OTHERS,
    ],
    kernels::EXPORTS,
    unsupported::EXPORTS,
    #[cfg(feature = "standalone")]
    &[crate::hooked::EXPORTS],
];

/// Makes sure that the simulator is linked: call it from anywhere.
///
/// The linker takes a member of an archive only for a symbol that is missing
/// when it gets there, and whether cudarc comes before or after this crate is
/// not ours to decide. The table of all functions that this reads is one member
/// that needs every other. Answers how many functions that is.
pub fn link() -> usize {
    let count = TABLES
        .iter()
        .flat_map(|family| family.iter())
        .flat_map(|table| table.iter())
        .filter(|symbol| !std::hint::black_box(symbol.address).is_null())
        .count();
    std::hint::black_box(count)
}

/// Tells a program that loads this crate as its driver that no GPU is behind it.
#[cfg(feature = "standalone")]
#[unsafe(no_mangle)]
extern "C" fn cuMemcheckSimulated() -> std::ffi::c_int {
    1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_function_is_there_once() {
        let names: Vec<_> = TABLES
            .iter()
            .flat_map(|family| family.iter())
            .flat_map(|table| table.iter())
            .map(|symbol| symbol.name)
            .collect();
        assert_eq!(names.len(), names.iter().collect::<BTreeSet<_>>().len());
        assert_eq!(link(), names.len());
        for name in
            ["cuInit", "cuMemGetInfo_v2", "cuMemcpy2D_v2", "cublasCreate_v2", "curandGenerate"]
        {
            assert!(names.contains(&name), "{name}");
        }
    }
}
