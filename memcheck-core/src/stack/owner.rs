//! Whose code a frame is, told by its source file and by its crate.

use super::frame::{Frame, has_path};

/// Whose code a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The program under test.
    User,
    /// candle-core, candle-nn, candle-transformers and their kin.
    Candle,
    /// What carries calls without meaning anything by them: allocator, std,
    /// tracing, rayon, the harness, this tool.
    Plumbing,
    /// Any other library.
    Library,
}

/// Crates that are plumbing.
const PLUMBING: &[&str] = &[
    "std",
    "core",
    "alloc",
    "test",
    "__rustc",
    "hashbrown",
    "memcheck_runtime",
    "memcheck_core",
    "memcheck_sim",
    "tracing",
    "tracing_core",
    "tracing_subscriber",
    "rayon",
    "rayon_core",
    "crossbeam_deque",
    "crossbeam_epoch",
    "crossbeam_utils",
    "cudarc",
    "gemm",
    "gemm_common",
    "gemm_f32",
    "gemm_f64",
    "gemm_f16",
    "dyn_stack",
    "anyhow",
    "libc",
    "pulp",
    "half",
];

impl Frame {
    /// Whose code it is. The source file tells libraries from the program; a
    /// frame without one goes by its crate alone.
    pub fn owner(&self) -> Owner {
        let krate = self.krate();
        let has_path = has_path(&self.function);
        if krate.starts_with("candle") && has_path {
            return Owner::Candle;
        }
        if has_path && PLUMBING.contains(&krate) {
            return Owner::Plumbing;
        }
        // A closure or a generic of the standard library that was compiled
        // into the program bears the program's crate, but not its files.
        match self.file.as_deref() {
            Some(file) if is_std(file) => Owner::Plumbing,
            Some(file) if is_library(file) => Owner::Library,
            Some(_) => Owner::User,
            None if has_path => Owner::User,
            // The C runtime, the allocator's shims, the driver.
            None => Owner::Plumbing,
        }
    }
}

/// Crate and module of a library's source file, by where it lies:
/// `candle_core::tensor`; `None` for a file of the program.
pub fn module_of(file: &str) -> Option<String> {
    let (krate, path) = if let Some((_, rest)) = file.split_once("/registry/src/") {
        let (folder, path) = rest.split_once('/')?.1.split_once("/src/")?;
        (folder.rsplit_once('-').map_or(folder, |(name, _)| name), path)
    } else {
        let (_, rest) = file.split_once("/library/").filter(|_| is_std(file))?;
        rest.split_once("/src/")?
    };
    let modules = path
        .trim_end_matches(".rs")
        .split('/')
        .filter(|module| !matches!(*module, "mod" | "lib" | "main"));
    let krate = krate.replace('-', "_");
    Some(std::iter::once(krate.as_str()).chain(modules).collect::<Vec<_>>().join("::"))
}

fn is_std(file: &str) -> bool {
    file.starts_with("/rustc/") || file.contains("/lib/rustlib/src/")
}

fn is_library(file: &str) -> bool {
    file.contains("/registry/src/") || file.contains("/.cargo/git/")
}

#[cfg(test)]
mod tests {
    use super::super::tests::{CANDLE, frame};
    use super::*;

    #[test]
    fn frames_belong_to_somebody() {
        for (function, file, owner) in [
            ("app::train::step", "src/train.rs", Owner::User),
            ("<app::Model as candle_nn::Module>::forward", "src/model.rs", Owner::User),
            ("candle_core::tensor::Tensor::matmul", CANDLE, Owner::Candle),
            ("<candle_core::tensor::Tensor as core::ops::arith::Add>::add", "", Owner::Candle),
            (
                "core::ops::function::FnOnce::call_once",
                "/rustc/ab/library/core/src/ops.rs",
                Owner::Plumbing,
            ),
            ("<alloc::vec::Vec as core::iter::FromIterator>::from_iter", "", Owner::Plumbing),
            (
                "memcheck_runtime::entry::session::body",
                "memcheck-runtime/src/x.rs",
                Owner::Plumbing,
            ),
            (
                "serde_json::de::from_str",
                "/home/u/.cargo/registry/src/i/serde_json-1/src/de.rs",
                Owner::Library,
            ),
            ("<T as alloc::vec::spec_from_elem::SpecFromElem>::from_elem", "", Owner::Plumbing),
            ("<u8 as app::Weigh>::weigh", "", Owner::User),
            ("__rust_alloc", "", Owner::Plumbing),
            ("cuMemAllocAsync", "", Owner::Plumbing),
            ("main", "", Owner::Plumbing),
        ] {
            assert_eq!(frame(function, file).owner(), owner, "{function}");
        }
    }

    #[test]
    fn an_inlined_function_is_in_the_module_of_its_file() {
        assert_eq!(module_of(CANDLE).as_deref(), Some("candle_core::tensor"));
        let library = "/rustc/ab12/library/alloc/src/vec/mod.rs";
        assert_eq!(module_of(library).as_deref(), Some("alloc::vec"));
        assert_eq!(module_of("/home/u/app/src/model.rs"), None);
    }
}
