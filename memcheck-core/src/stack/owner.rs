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

/// The crates of candle. A user's may be called `candle_something` too.
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

/// Crates that are plumbing. Some have names that a test target may have too
/// (`tests/test.rs`): the file decides first.
const PLUMBING: &[&str] = &[
    "std",
    "core",
    "alloc",
    "test",
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
    /// Whose code it is. The source file tells libraries from the program, and
    /// only what is not in a file of the program goes by the name of its crate:
    /// a method that the program adds to a tensor bears the tensor's.
    pub fn owner(&self) -> Owner {
        let (krate, file) = (self.krate(), self.file.as_deref());
        let is_named = has_path(&self.function);
        let is_foreign = file
            .is_none_or(|file| is_std(file) || is_library(file) || lies_in_folder_of(file, krate));
        match file {
            // The allocator's shims lie in the file of `#[global_allocator]`.
            _ if krate == "__rustc" => Owner::Plumbing,
            _ if is_named && is_foreign && CANDLE.contains(&krate) => Owner::Candle,
            _ if is_named && is_foreign && PLUMBING.contains(&krate) => Owner::Plumbing,
            // A closure or a generic of the standard library that was compiled
            // into the program bears the program's crate, but not its files.
            Some(file) if is_std(file) => Owner::Plumbing,
            Some(file) if is_library(file) => Owner::Library,
            Some(_) => Owner::User,
            None if is_named => Owner::User,
            // The C runtime, the allocator's shims, the driver.
            None => Owner::Plumbing,
        }
    }
}

/// Crate and module of a library's source file, by where it lies:
/// `candle_core::tensor`; `None` for a file of the program.
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

/// Where cargo keeps the sources of a registry, below whatever its home is.
const REGISTRY: &str = "/registry/src/";
/// Where cargo keeps those of git dependencies.
const CHECKOUTS: &str = "/git/checkouts/";

/// Crate and path of a file in a checkout, `candle-1a2b/3c4d/candle-core/src/…`:
/// the folder of the crate, or the repository where it is the root.
fn in_checkout(rest: &str) -> Option<(&str, &str)> {
    let (repository, rest) = rest.split_once('/')?;
    let (folder, path) = rest.split_once("/src/")?;
    let krate = match folder.rsplit_once('/') {
        Some((_, inner)) => inner,
        None => repository.rsplit_once('-').map_or(repository, |(name, _)| name),
    };
    Some((krate, path))
}

/// The standard library: its own crates, and those that it is built with.
fn is_std(file: &str) -> bool {
    let roots = ["/rustc/", "/rust/deps/"];
    roots.iter().any(|root| file.starts_with(root)) || file.contains("/lib/rustlib/src/")
}

fn is_library(file: &str) -> bool {
    file.contains(REGISTRY) || file.contains(CHECKOUTS)
}

/// Whether a file lies in a folder that is named as the crate is, as one that
/// is vendored, or patched by a path, does: `candle-core/src/tensor.rs`.
fn lies_in_folder_of(file: &str, krate: &str) -> bool {
    let Some((folder, _)) = file.split_once("/src/") else { return false };
    let folder = folder.rsplit('/').next().unwrap_or(folder);
    folder.replace('-', "_") == krate
}

#[cfg(test)]
mod tests {
    use super::super::tests::{CANDLE, frame};
    use super::*;

    /// A git dependency, in a home of cargo's that is not `.cargo`.
    const GIT: &str = "/opt/cargo/git/checkouts/candle-0a1b2c/3d4e5f/candle-nn/src/ops.rs";

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
            ("test::training_step::body", "tests/test.rs", Owner::User),
            ("test::run_test", "/rustc/ab/library/test/src/lib.rs", Owner::Plumbing),
            ("test::run_test", "", Owner::Plumbing),
            ("do_alloc", "/rust/deps/hashbrown-0.16.1/src/raw/alloc.rs", Owner::Plumbing),
            ("__rustc::__rust_alloc", "src/main.rs", Owner::Plumbing),
            ("candle_chat::answer", "src/lib.rs", Owner::User),
            ("candle_chat::answer", "", Owner::User),
            (
                "<candle_core::tensor::Tensor as app::Normalise>::normalise",
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
