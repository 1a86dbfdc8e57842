//! Finds the owner of a frame, from its source file and its crate.

use super::frame::{Frame, has_path};

/// The owner of the code of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The program under test.
    User,
    /// candle-core, candle-nn, candle-transformers and the other crates of candle.
    Candle,
    /// Code that only passes calls on: allocator, std, tracing, rayon, the harness, this tool.
    Plumbing,
    /// Any other library.
    Library,
}

/// Listed by name, because a user's crate may be called `candle_something` too.
const CANDLE: &[&str] = &[
    "candle_core",
    "candle_datasets",
    "candle_flash_attn",
    "candle_flash_attn_v3",
    "candle_kernels",
    "candle_metal_kernels",
    "candle_nn",
    "candle_onnx",
    "candle_transformers",
    "candle_ug",
];

/// A test target can have such a name (`tests/test.rs`), so the file is checked first.
const PLUMBING: &[&str] = &[
    "std",
    "core",
    "alloc",
    "test",
    "hashbrown",
    "memcheck_runtime",
    "memcheck_core",
    "memcheck_ledger",
    "memcheck_limits",
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
    /// By the source file. The crate's name decides only outside of the program's files, because a
    /// method that the program adds to a tensor has a name in the tensor's crate.
    pub fn owner(&self) -> Owner {
        let (krate, file) = (self.krate(), self.file.as_deref());
        let is_named = has_path(&self.function);
        let is_foreign = file
            .is_none_or(|file| is_std(file) || is_library(file) || is_in_crate_folder(file, krate));
        match file {
            // The allocator's shims have the file of `#[global_allocator]`.
            _ if krate == "__rustc" => Owner::Plumbing,
            _ if is_named && is_foreign && CANDLE.contains(&krate) => Owner::Candle,
            _ if is_named && is_foreign && PLUMBING.contains(&krate) => Owner::Plumbing,
            // Closures and generics of std are named after the program's crate, but keep std's
            // file.
            Some(file) if is_std(file) => Owner::Plumbing,
            Some(file) if is_library(file) => Owner::Library,
            Some(_) => Owner::User,
            None if is_named => Owner::User,
            // The C runtime, the allocator's shims, the driver.
            None => Owner::Plumbing,
        }
    }
}

/// `candle_core::tensor` from the path of a library's file; `None` for a file of the program.
pub(super) fn module_of(file: &str) -> Option<String> {
    let (krate, path) = if let Some((_, rest)) = file.split_once(REGISTRY) {
        let (folder, path) = rest.split_once('/')?.1.split_once("/src/")?;
        (folder.rsplit_once('-').map_or(folder, |(name, _)| name), path)
    } else if let Some((_, rest)) = file.split_once(CHECKOUTS) {
        in_checkout(rest)?
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

/// The folder of registry sources, relative to cargo's home, which can be anywhere.
const REGISTRY: &str = "/registry/src/";
/// The folder of git dependencies, relative to cargo's home.
const CHECKOUTS: &str = "/git/checkouts/";

/// Crate (the folder around `src` or else the repository) and path of a file in a checkout.
fn in_checkout(rest: &str) -> Option<(&str, &str)> {
    let (repository, rest) = rest.split_once('/')?;
    let (folder, path) = rest.split_once("/src/")?;
    let krate = match folder.rsplit_once('/') {
        Some((_, inner)) => inner,
        None => repository.rsplit_once('-').map_or(repository, |(name, _)| name),
    };
    Some((krate, path))
}

fn is_std(file: &str) -> bool {
    let roots = ["/rustc/", "/rust/deps/"];
    roots.iter().any(|root| file.starts_with(root)) || file.contains("/lib/rustlib/src/")
}

fn is_library(file: &str) -> bool {
    file.contains(REGISTRY) || file.contains(CHECKOUTS)
}

/// True for a crate that is vendored or patched by a path: `candle-core/src/tensor.rs`.
fn is_in_crate_folder(file: &str, krate: &str) -> bool {
    let Some((folder, _)) = file.split_once("/src/") else { return false };
    let folder = folder.rsplit('/').next().unwrap_or(folder);
    folder.replace('-', "_") == krate
}

#[cfg(test)]
mod tests {
    use super::super::tests::{CANDLE, frame};
    use super::*;

    /// A git dependency, in a cargo home that is not named `.cargo`.
    const GIT: &str = "/opt/cargo/git/checkouts/candle-0a1b2c/3d4e5f/candle-nn/src/ops.rs";

    #[test]
    fn every_frame_has_an_owner() {
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
            ("test::training_step::body", "tests/test.rs", Owner::User),
            ("test::run_test", "/rustc/ab/library/test/src/lib.rs", Owner::Plumbing),
            ("test::run_test", "", Owner::Plumbing),
            ("do_alloc", "/rust/deps/hashbrown-0.16.1/src/raw/alloc.rs", Owner::Plumbing),
            ("__rustc::__rust_alloc", "src/main.rs", Owner::Plumbing),
            ("candle_chat::answer", "src/lib.rs", Owner::User),
            ("candle_chat::answer", "", Owner::User),
            (
                "<candle_core::tensor::Tensor as app::Normalize>::normalize",
                "src/ext.rs",
                Owner::User,
            ),
            (
                "candle_core::tensor::Tensor::exp",
                "../candle/candle-core/src/tensor.rs",
                Owner::Candle,
            ),
            ("anyhow::error::Error::new", "vendor/anyhow/src/error.rs", Owner::Plumbing),
            ("candle_nn::ops::softmax", GIT, Owner::Candle),
            (
                "tower::call",
                "/opt/cargo/git/checkouts/tower-1a2b/3c4d/tower/src/lib.rs",
                Owner::Library,
            ),
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
        assert_eq!(module_of(GIT).as_deref(), Some("candle_nn::ops"));
        let at_the_root = "/opt/cargo/git/checkouts/cudarc-1a2b3c/4d5e6f/src/driver/mod.rs";
        assert_eq!(module_of(at_the_root).as_deref(), Some("cudarc::driver"));
        assert_eq!(module_of("/opt/cargo/git/checkouts/cudarc-1a2b3c/4d5e6f/build.rs"), None);
    }
}
