//! The directories that cargo builds a leg in. Legs compile most crates alike, so they share
//! intermediate files, but not final artifacts. Real GPUs share nothing, nor does the simulated leg
//! beside a CUDA compiler: the build scripts of cudarc and candle-kernels would build candle again
//! at every change between the toolkits.

use std::path::PathBuf;
use std::process::Command;

use crate::build::leg::DeviceKind;
use crate::build::toolchain::gpu;
use crate::build::workspace::Workspace;

const BUILD_DIRECTORY: &str = "CARGO_BUILD_BUILD_DIR";

pub(crate) fn target_directory(workspace: &Workspace, kind: DeviceKind) -> PathBuf {
    match kind {
        DeviceKind::Cpu => workspace.target_directory().to_owned(),
        DeviceKind::Sim => workspace.own_directory().join("sim"),
        DeviceKind::Cuda => workspace.own_directory().join("cuda"),
    }
}

/// `None` if cargo's own choice is the right one.
pub(super) fn build_directory(workspace: &Workspace, kind: DeviceKind) -> Option<PathBuf> {
    match kind {
        DeviceKind::Cpu => {
            workspace.has_own_build_directory().then(|| workspace.build_directory().to_owned())
        }
        DeviceKind::Sim if gpu::nvcc().is_err() => Some(workspace.build_directory().to_owned()),
        DeviceKind::Sim | DeviceKind::Cuda => Some(target_directory(workspace, kind)),
    }
}

/// Makes a command of cargo use the directories of a leg.
pub(super) fn set(command: &mut Command, workspace: &Workspace, kind: DeviceKind) {
    command.arg("--target-dir").arg(target_directory(workspace, kind));
    if let Some(directory) = build_directory(workspace, kind) {
        command.env(BUILD_DIRECTORY, directory);
    }
}
