//! Finds the folders in which Python stores CUDA's libraries: `nvidia/*/lib` in a folder of
//! packages, which pip fills, and `lib` in a conda environment.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::system::process::{self, ShortRun};

const ANSWER: Duration = Duration::from_secs(20);

/// The folders of the active environment come first.
pub(super) fn folders() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for name in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        let Some(prefix) = std::env::var_os(name).filter(|text| !text.is_empty()) else { continue };
        found.extend(of_prefix(Path::new(&prefix), name == "CONDA_PREFIX"));
    }
    found.extend(packages().iter().flat_map(|folder| of_packages(folder)));
    let mut seen = std::collections::HashSet::new();
    found.retain(|folder| seen.insert(folder.clone()));
    found
}

fn of_prefix(prefix: &Path, conda: bool) -> Vec<PathBuf> {
    let lib = prefix.join("lib");
    let pythons = sorted(&lib).into_iter().filter(|folder| {
        folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with("python3"))
    });
    let of_wheels = pythons.flat_map(|python| of_packages(&python.join("site-packages")));
    of_wheels.chain(conda.then(|| lib.clone())).collect()
}

/// `nvidia/cublas/lib`, and from CUDA 13 on `nvidia/cu13/lib`.
fn of_packages(folder: &Path) -> Vec<PathBuf> {
    sorted(&folder.join("nvidia"))
        .into_iter()
        .map(|package| package.join("lib"))
        .filter(|lib| lib.is_dir())
        .collect()
}

/// Newest first. Paths, because libcupti's folder must not go on the search path with all its other
/// libraries.
pub(super) fn cupti(folders: &[PathBuf]) -> Vec<PathBuf> {
    let version = |path: &Path| -> Option<u32> {
        path.file_name()?.to_str()?.strip_prefix("libcupti.so.")?.parse().ok()
    };
    let files = folders.iter().flat_map(|folder| sorted(folder));
    let mut found: Vec<(u32, PathBuf)> =
        files.filter_map(|path| Some((version(&path)?, path))).collect();
    // The sort is stable, so that the active environment stays first within one version.
    found.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    found.into_iter().map(|(_, path)| path).collect()
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn packages() -> Vec<PathBuf> {
    let mut command = Command::new("python3");
    command.args(["-c", "import sys; print('\\n'.join(sys.path))"]);
    let Ok(output) = process::short(&command, ShortRun::within(ANSWER)) else { return Vec::new() };
    let text = String::from_utf8_lossy(&output.stdout);
    // The current folder is an empty line.
    text.lines().filter(|line| line.starts_with('/')).map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wheels_and_an_environment_of_conda_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let make = |path: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(&path).unwrap();
            path
        };
        let wheel = make("lib/python3.12/site-packages/nvidia/cublas/lib");
        let of_13 = make("lib/python3.12/site-packages/nvidia/cu13/lib");
        make("lib/python3.12/site-packages/nvidia/cuda_nvrtc/include");
        make("lib/other/site-packages/nvidia/cublas/lib");
        assert_eq!(of_prefix(folder.path(), false), [of_13.clone(), wheel.clone()]);
        let lib = folder.path().join("lib");
        assert_eq!(of_prefix(folder.path(), true), [of_13, wheel, lib]);
    }

    #[test]
    fn cupti_is_found_in_the_wheels_of_cuda_12_and_13() {
        let folder = tempfile::tempdir().unwrap();
        let packages = "lib/python3.12/site-packages/nvidia";
        let file = |path: &str| {
            let path = folder.path().join(packages).join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            path
        };
        // The files of the wheels nvidia-cuda-cupti-cu12 and nvidia-cuda-cupti, with other
        // libraries of the same wheels.
        let of_12 = file("cuda_cupti/lib/libcupti.so.12");
        let of_13 = file("cu13/lib/libcupti.so.13");
        for other in ["cuda_cupti/lib/libcheckpoint.so", "cu13/lib/libcublas.so.13"] {
            file(other);
        }
        file("cuda_cupti/include/libcupti.so.14");
        file("cu13/lib/libcupti.so.2025.3.1");
        assert_eq!(cupti(&of_prefix(folder.path(), false)), [of_13, of_12]);
        assert!(cupti(&[]).is_empty());
    }
}
