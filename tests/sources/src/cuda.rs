//! The functions of CUDA's libraries that cudarc can call, in any of the versions that it has
//! bindings for.

use std::collections::BTreeMap;

use crate::rust::{self, Function};

/// The modules of cudarc whose libraries the simulated device replaces.
pub const LIBRARIES: [&str; 8] =
    ["driver", "cublas", "cublaslt", "curand", "nvrtc", "runtime", "cudnn", "nccl"];

/// Functions that the simulated device does not have, with the reason. A program that calls one is
/// not linked.
pub const ABSENT: &[(&str, &str)] = &[(
    "cudaCreateChannelDesc",
    "returns a structure for textures, in which no error can be returned",
)];

/// Returns the functions by name, each with its module of cudarc.
///
/// # Panics
///
/// If two libraries have a function of the same name, or if a function returns different types in
/// two versions.
pub fn functions() -> BTreeMap<String, (&'static str, Function)> {
    let mut functions: BTreeMap<String, (&str, Function)> = BTreeMap::new();
    for library in LIBRARIES {
        let path = crate::folder("cudarc").join("src").join(library).join("sys/mod.rs");
        for function in rust::declared(&crate::text(&path)) {
            let known = functions
                .entry(function.name.clone())
                .or_insert_with(|| (library, function.clone()));
            let same = known.0 == library && known.1.returns == function.returns;
            assert!(same, "{} is declared twice, as {known:?} and {function:?}", function.name);
        }
    }
    assert!(functions.len() > 1_000, "cudarc has only {} functions", functions.len());
    functions
}
