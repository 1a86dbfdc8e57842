//! Watches the inputs of a build: the sources of the workspace's own packages, which rustc lists in
//! dep-info files next to its output, and the inputs that build scripts name.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::{Artifact, BuildScript, Metadata, PackageId, TargetKind};

use super::{Watched, is_no_input};

/// `None` if the inputs of an artifact or of a build script cannot all be listed.
pub(crate) fn sources(
    metadata: &Metadata,
    artifacts: &[Artifact],
    scripts: &[BuildScript],
    mut watched: Watched,
) -> Option<Watched> {
    // `cargo metadata` leaves out an optional dependency that only a feature of the command line
    // switches on.
    let folders: BTreeMap<&str, &Path> = artifacts
        .iter()
        .filter_map(|it| {
            Some((it.package_id.repr.as_str(), it.manifest_path.parent()?.as_std_path()))
        })
        .collect();
    let root = metadata.workspace_root.as_std_path();
    for artifact in artifacts.iter().filter(|artifact| is_local(&artifact.package_id)) {
        let folder = artifact.manifest_path.parent()?.as_std_path();
        for file in dep_infos(artifact)? {
            for source in listed(&fs::read_to_string(file).ok()?)? {
                // Paths are relative to the folder in which cargo started rustc. That is the
                // workspace's folder or the package's folder.
                watched.add(&root.join(&source));
                watched.add(&folder.join(&source));
            }
        }
        artifact.filenames.iter().for_each(|made| watched.add_output(made.as_std_path()));
    }
    for script in scripts {
        // The files of a package that is not local do not change, wherever they are, because
        // another version is another package.
        let folder = match is_local(&script.package_id) {
            true => Some(*folders.get(script.package_id.repr.as_str())?),
            false => None,
        };
        let output = script.out_dir.as_std_path().parent()?.join("output");
        let text = fs::read_to_string(&output).ok()?;
        watched.add_output(&output);
        let mut names_inputs = false;
        for (key, value) in instructions(&text) {
            let path = match folder {
                Some(folder) => Some(folder.join(value)),
                None => Some(PathBuf::from(value)).filter(|path| path.is_absolute()),
            };
            match (key, path) {
                ("rerun-if-changed", Some(path)) if !watched.add_tree(&path) => return None,
                // The path leads out of the package.
                ("rerun-if-changed", None) if value.contains("..") => return None,
                ("rerun-if-env-changed", _) if is_no_input(value) => return None,
                ("rerun-if-changed" | "rerun-if-env-changed", _) => names_inputs = true,
                _ => {}
            }
        }
        // A build script that does not name its inputs may read any file of the package.
        if folder.is_some() && !names_inputs {
            return None;
        }
    }
    Some(watched)
}

pub(crate) fn is_local(package: &PackageId) -> bool {
    package.repr.contains("path+file:")
}

fn dep_infos(artifact: &Artifact) -> Option<Vec<PathBuf>> {
    let mut found = Vec::new();
    if artifact.target.kind.contains(&TargetKind::CustomBuild) {
        let folder = artifact.filenames.first()?.parent()?.as_std_path();
        let files = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
        found.extend(files.filter(|path| path.extension().is_some_and(|it| it == "d")));
    } else {
        for made in artifact.filenames.iter().chain(&artifact.executable) {
            let made = made.as_std_path();
            let name = made.file_stem()?.to_str()?;
            let bare = name.strip_prefix("lib").unwrap_or(name);
            let names = [
                made.with_file_name(format!("{name}.d")),
                made.with_file_name(format!("{bare}.d")),
            ];
            found.extend(names.into_iter().filter(|path| path.is_file()));
        }
    }
    (!found.is_empty()).then_some(found)
}

/// Lines are `output: source source` with `\ ` for a space. `None` if the output depends on a
/// variable that is no input.
fn listed(text: &str) -> Option<Vec<PathBuf>> {
    let mut sources = Vec::new();
    for line in text.lines() {
        if let Some(variable) = line.strip_prefix("# env-dep:") {
            let name = variable.split('=').next().unwrap_or_default();
            if is_no_input(name) {
                return None;
            }
        } else if let Some((_, list)) = line.split_once(": ") {
            let mut path = String::new();
            for word in list.split(' ') {
                path.push_str(word);
                match path.strip_suffix('\\') {
                    Some(begun) => path = format!("{begun} "),
                    None => sources.push(PathBuf::from(std::mem::take(&mut path))),
                }
            }
        }
    }
    sources.retain(|path| path != Path::new(""));
    Some(sources)
}

/// `cargo:key=value` or `cargo::key=value`.
fn instructions(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| {
        let line = line.strip_prefix("cargo:")?;
        line.strip_prefix(':').unwrap_or(line).split_once('=')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_rustc_is_read() {
        let text = "/t/deps/mem-1: tests/mem.rs /a\\ b/c.rs\n\ntests/mem.rs:\n\n# env-dep:NVCC=x\n";
        let expected = ["tests/mem.rs", "/a b/c.rs"].map(PathBuf::from);
        assert_eq!(listed(text).unwrap(), expected);
        for variable in ["SHLVL", "MEMCHECK_DEVICE"] {
            assert_eq!(listed(&format!("a: b\n# env-dep:{variable}=1\n")), None);
        }
    }

    #[test]
    fn both_spellings_of_an_instruction_are_read() {
        let text = "cargo:rerun-if-changed=a.cu\ncargo::rerun-if-env-changed=NVCC\nhello\n";
        let read: Vec<_> = instructions(text).collect();
        assert_eq!(read, [("rerun-if-changed", "a.cu"), ("rerun-if-env-changed", "NVCC")]);
    }
}
