//! The directories that cargo builds a leg in.
//!
//! Two legs compile most crates alike: serde, gemm, tokenizers, every proc macro.
//! Cargo keeps a compiled crate in its build directory under a name that covers
//! features and profile, so legs that share this directory share these crates. Only
//! final artifacts (`target/debug/app`) have plain names, and they go to the target
//! directory of the leg.
//!
//! Sharing is not safe if the user can build CUDA code by hand: the build scripts
//! of cudarc and candle-kernels compare the variables of the CUDA toolkit with those
//! of their last run, so both builds would compile candle again at every change
//! between them. A leg for real GPUs therefore never shares, and the simulated one
//! shares if this machine has no CUDA compiler.

use std::path::PathBuf;

use crate::build::toolchain::gpu;
use crate::build::workspace::Workspace;
use crate::invocation::devices::DeviceKind;

/// The variable that sets cargo's `build.build-dir`.
pub(super) const BUILD_DIRECTORY: &str = "CARGO_BUILD_BUILD_DIR";

/// The target directory of a leg of this kind.
pub(crate) fn target_directory(workspace: &Workspace, kind: DeviceKind) -> PathBuf {
    match kind {
        DeviceKind::Cpu => workspace.target_directory().to_owned(),
        DeviceKind::Sim => workspace.own_directory().join("sim"),
        DeviceKind::Cuda => workspace.own_directory().join("cuda"),
    }
}

/// The directory of intermediate files for a leg of this kind; `None` if cargo's
/// own choice is the right one.
pub(super) fn build_directory(workspace: &Workspace, kind: DeviceKind) -> Option<PathBuf> {
    match kind {
        DeviceKind::Cpu => None,
        DeviceKind::Sim if gpu::nvcc().is_err() => Some(workspace.build_directory().to_owned()),
        DeviceKind::Sim | DeviceKind::Cuda => Some(target_directory(workspace, kind)),
    }
}
