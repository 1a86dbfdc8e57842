//! The environment that cargo gives a test executable.

use std::path::{Path, PathBuf};

use cargo_metadata::{Artifact, BuildScript};

use crate::build::workspace::{TestPackage, Workspace, cargo};

pub(super) fn for_test(
    package: &TestPackage,
    script: Option<&BuildScript>,
    artifact: &Artifact,
    linked: &[PathBuf],
) -> Vec<(String, String)> {
    let p = &package.package;
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let path = |value: &Option<cargo_metadata::camino::Utf8PathBuf>| {
        value.as_ref().map(ToString::to_string).unwrap_or_default()
    };
    let mut set = vec![
        ("CARGO", cargo().to_string_lossy().into_owned()),
        ("CARGO_MANIFEST_DIR", package.folder().display().to_string()),
        ("CARGO_MANIFEST_PATH", p.manifest_path.to_string()),
        ("CARGO_PKG_NAME", p.name.to_string()),
        ("CARGO_PKG_VERSION", p.version.to_string()),
        ("CARGO_PKG_VERSION_MAJOR", p.version.major.to_string()),
        ("CARGO_PKG_VERSION_MINOR", p.version.minor.to_string()),
        ("CARGO_PKG_VERSION_PATCH", p.version.patch.to_string()),
        ("CARGO_PKG_VERSION_PRE", p.version.pre.to_string()),
        ("CARGO_PKG_AUTHORS", p.authors.join(":")),
        ("CARGO_PKG_DESCRIPTION", text(&p.description)),
        ("CARGO_PKG_HOMEPAGE", text(&p.homepage)),
        ("CARGO_PKG_REPOSITORY", text(&p.repository)),
        ("CARGO_PKG_LICENSE", text(&p.license)),
        ("CARGO_PKG_LICENSE_FILE", path(&p.license_file)),
        ("CARGO_PKG_README", path(&p.readme)),
        (
            "CARGO_PKG_RUST_VERSION",
            p.rust_version.as_ref().map(ToString::to_string).unwrap_or_default(),
        ),
    ];
    if let Some(script) = script {
        set.push(("OUT_DIR", script.out_dir.to_string()));
    }
    let mut set: Vec<(String, String)> =
        set.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    set.extend(script.into_iter().flat_map(|script| script.env.clone()));
    let deps = artifact.executable.as_ref().and_then(|path| path.parent());
    let inherited = std::env::var_os("LD_LIBRARY_PATH");
    let folders = linked
        .iter()
        .cloned()
        .chain(deps.map(|path| path.as_std_path().to_owned()))
        .chain(deps.and_then(|path| path.parent()).map(|path| path.as_std_path().to_owned()))
        .chain(inherited.iter().flat_map(std::env::split_paths));
    if let Ok(joined) = std::env::join_paths(folders) {
        set.push(("LD_LIBRARY_PATH".to_owned(), joined.to_string_lossy().into_owned()));
    }
    set
}

/// As in cargo, only folders below the target and the build directory, without the simulated
/// toolkit.
pub(super) fn library_path(instruction: &str, workspace: &Workspace) -> Option<PathBuf> {
    let built = [workspace.target_directory(), workspace.build_directory()];
    below(instruction, &built, &workspace.toolkit_directory())
}

fn below(instruction: &str, built: &[&Path], toolkit: &Path) -> Option<PathBuf> {
    let path = match instruction.split_once('=') {
        Some(("dependency" | "crate" | "native" | "framework" | "all", path)) => path,
        _ => instruction,
    };
    let path = Path::new(path);
    let is_built = built.iter().any(|folder| path.starts_with(folder));
    (is_built && !path.starts_with(toolkit)).then(|| path.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_simulated_toolkit_is_never_on_the_search_path_of_a_test() {
        let toolkit = Path::new("/t/memcheck/toolkit-0.1.0");
        let built = |instruction| below(instruction, &[Path::new("/t"), Path::new("/b")], toolkit);
        assert!(built("native=/t/debug/build/x/out").is_some());
        assert!(built("native=/b/debug/build/x/out").is_some());
        assert!(built("native=/usr/lib").is_none());
        assert!(built("native=/t/memcheck/toolkit-0.1.0/lib").is_none());
    }
}
