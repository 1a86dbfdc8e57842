//! The anchor that keeps every exported function in the binary.

use crate::ffi::Symbol;
use crate::{
    cublas, cublaslt, cudart, cudnn, cupti, curand, driver, flash, kernels, launchers, nccl, nvrtc,
    registered, unsupported,
};

/// Every exported function of the C interface. The hooked functions are only exported with the
/// feature `standalone`.
static TABLES: &[&[&[Symbol]]] = &[
    driver::EXPORTS,
    &[cudart::EXPORTS, cudart::OTHERS, cudart::forwarded::EXPORTS],
    &[cublas::EXPORTS, cublas::OTHERS, curand::EXPORTS],
    &[
        cupti::EXPORTS,
        cupti::OTHERS,
        nvrtc::EXPORTS,
        nvrtc::OTHERS,
        registered::EXPORTS,
        registered::OTHERS,
    ],
    &[cublaslt::EXPORTS, cublaslt::OTHERS, cudnn::EXPORTS, cudnn::OTHERS],
    &[nccl::EXPORTS, nccl::OTHERS],
    kernels::EXPORTS,
    &[flash::EXPORTS, launchers::EXPORTS],
    unsupported::EXPORTS,
    #[cfg(feature = "standalone")]
    &[crate::hooked::EXPORTS],
];

/// Makes sure that the linker includes the simulator, and returns the number of its functions. It
/// can be called from anywhere.
///
/// The linker includes a member of an archive only if a symbol is missing at that moment, and this
/// crate cannot decide whether cudarc comes before or after it. This function reads the table of
/// all functions, so the member that contains the table requires all other members.
pub fn link() -> usize {
    let count = TABLES
        .iter()
        .flat_map(|family| family.iter())
        .flat_map(|table| table.iter())
        .filter(|symbol| !std::hint::black_box(symbol.address).is_null())
        .count();
    std::hint::black_box(count)
}

/// The names and addresses of all functions.
pub(crate) fn symbols() -> impl Iterator<Item = (&'static str, *const std::ffi::c_void)> {
    let tables = TABLES.iter().flat_map(|family| family.iter()).flat_map(|table| table.iter());
    tables.map(|symbol| (symbol.name, symbol.address.cast()))
}

/// Exists so that a program that loads this crate as its driver can detect that there is no GPU.
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
    fn every_function_is_exported_once() {
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

    /// `tests/sources/tests/bindings.rs` generates the refused functions from a search of these
    /// sources for those that are defined. Here the linked functions are compared.
    #[test]
    fn every_function_that_cudarc_calls_is_simulated_or_refused() {
        let linked = TABLES.iter().flat_map(|family| family.iter()).flat_map(|table| table.iter());
        let linked: BTreeSet<_> =
            linked.chain(crate::hooked::EXPORTS).map(|symbol| symbol.name.to_owned()).collect();
        let called = memcheck_sources::cuda::functions();
        let absent: Vec<_> = called.keys().filter(|name| !linked.contains(*name)).collect();
        assert_eq!(absent, Vec::from_iter(memcheck_sources::cuda::ABSENT.iter().map(|it| it.0)));
        let refused = unsupported::EXPORTS.iter().flat_map(|table| table.iter());
        for symbol in refused {
            assert!(called.contains_key(symbol.name), "cudarc does not call {}", symbol.name);
        }
    }
}
