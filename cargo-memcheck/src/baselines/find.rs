//! Finds the snapshots of memory tests among all snapshots.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use memcheck_core::device::Family;
use memcheck_core::input;
use memcheck_core::judgement::location::Roots;
use memcheck_core::judgement::snapshot::SnapshotParts;

const PENDING: &str = ".snap.new";
const ACCEPTED: &str = ".snap";

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SnapshotFile {
    pub(crate) path: PathBuf,
    /// An accepted snapshot has the same path here.
    pub(crate) target: PathBuf,
    /// As the file name gives it: `mem::llama::kv_cache`.
    pub(crate) test: String,
    pub(crate) family: Option<Family>,
}

impl SnapshotFile {
    fn new(path: PathBuf, target: PathBuf) -> Self {
        let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let stem = name.strip_suffix(ACCEPTED).unwrap_or(&name);
        let (test, family) = match stem.rsplit_once('@') {
            Some((test, "cpu")) => (test, Some(Family::Cpu)),
            Some((test, "cuda")) => (test, Some(Family::Cuda)),
            _ => (stem, None),
        };
        Self { path, target, test: test.replace("__", "::"), family }
    }

    pub(crate) fn is_named(&self, filters: &[String]) -> bool {
        let file = self.target.file_name().unwrap_or_default().to_string_lossy();
        filters.is_empty()
            || filters.iter().any(|f| self.test.contains(f.as_str()) || file.contains(f.as_str()))
    }
}

/// Of the sources in `package`, a folder of the workspace.
pub(crate) fn accepted(
    roots: Roots<'_>,
    package: &Path,
    leave_out: &Path,
) -> io::Result<Vec<SnapshotFile>> {
    let files = walk(roots, &roots.mirrored(package), leave_out, ACCEPTED)?;
    Ok(files.into_iter().map(|path| SnapshotFile::new(path.clone(), path)).collect())
}

/// Next to the baselines of the sources in `package`, a folder of the workspace.
pub(crate) fn pending(
    roots: Roots<'_>,
    package: &Path,
    leave_out: &Path,
) -> io::Result<Vec<SnapshotFile>> {
    let files = walk(roots, &roots.mirrored(package), leave_out, PENDING)?;
    Ok(files
        .into_iter()
        .map(|path| {
            // x.snap.new -> x.snap
            let target = path.with_extension("");
            SnapshotFile::new(path, target)
        })
        .collect())
}

/// In a folder that mirrors that of the baselines.
pub(crate) fn pending_below(folder: &Path, baselines: &Path) -> io::Result<Vec<SnapshotFile>> {
    let files = walk(Roots::new(folder, None), folder, Path::new(""), PENDING)?;
    Ok(files
        .into_iter()
        .filter_map(|path| {
            let target = baselines.join(path.strip_prefix(folder).ok()?).with_extension("");
            Some(SnapshotFile::new(path, target))
        })
        .collect())
}

/// Skips hidden folders, `leave_out`, inner packages, and unreadable folders, which no test can
/// have written to. A folder of baselines has no manifests, so that those of the workspace decide
/// which of its folders belong to inner packages.
fn walk(roots: Roots<'_>, root: &Path, leave_out: &Path, ending: &str) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        let entries = match fs::read_dir(&folder) {
            // It was removed after its name was read, or no baseline has been accepted yet.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            // The folder belongs to another user.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && folder != root => {
                continue;
            }
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            // Links are not followed, because they could lead to any folder or form a cycle.
            let kind = entry.file_type()?;
            if kind.is_dir() {
                let skip = name.starts_with('.')
                    || path == leave_out
                    || roots.in_workspace(&path).join("Cargo.toml").exists()
                    // Cargo puts this file into every target directory.
                    || path.join("CACHEDIR.TAG").exists();
                if !skip {
                    open.push(path);
                }
            } else if kind.is_file()
                && name.ends_with(ending)
                // PERF: only files in insta's folders are read.
                && folder.file_name().is_some_and(|name| name == "snapshots")
                && is_ours(&name, &read(&path).unwrap_or_default())
            {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

pub(super) fn read(path: &Path) -> io::Result<String> {
    input::read_text(path, input::SNAPSHOT)
}

/// The header decides, or the form of the name if the header cannot be read.
fn is_ours(name: &str, text: &str) -> bool {
    match SnapshotParts::of(text) {
        Ok(parts) => parts.is_memcheck(),
        Err(_) => name.contains("@cpu.snap") || name.contains("@cuda.snap"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = "---\nsource: tests/mem.rs\ninfo:\n  memcheck: 1\n  candle: 0.11.1\n---\nhost:\n  growth: 0\n";

    #[test]
    fn snapshots_of_memory_tests_and_other_snapshots_are_distinguished() {
        assert!(is_ours("a@cpu.snap", OURS));
        assert!(is_ours("renamed.snap", OURS));
        assert!(!is_ours("a@cpu.snap", "---\nsource: a.rs\ninfo:\n  other: 1\n---\nmemcheck: 1\n"));
        assert!(!is_ours("a@cpu.snap", "---\nsource: a.rs\nexpression: memcheck\n---\nx\n"));
        // A file that is cut off is recognized only by its name.
        assert!(is_ours("a@cuda.snap.new", "---\nsource: tests/me"));
        assert!(!is_ours("a.snap.new", "---\nsource: tests/me"));
    }

    #[test]
    fn a_package_is_searched_without_the_packages_in_it() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, OURS).unwrap();
        };
        write("tests/snapshots/mem__a__b@cpu.snap");
        write("tests/snapshots/mem__c@cuda.snap.new");
        write("tests/elsewhere/mem__d@cpu.snap");
        write("inner/snapshots/e@cpu.snap");
        fs::write(root.path().join("inner/Cargo.toml"), "").unwrap();
        write("out/snapshots/f@cpu.snap");
        let out = root.path().join("out");
        let roots = Roots::new(root.path(), None);
        let found = accepted(roots, root.path(), &out).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].test, "mem::a::b");
        assert_eq!(found[0].family, Some(Family::Cpu));
        let pending = pending(roots, root.path(), &out).unwrap();
        assert_eq!(pending.len(), 1);
        assert!(pending[0].target.ends_with("tests/snapshots/mem__c@cuda.snap"));
        assert!(pending[0].is_named(&["m::c".to_owned()]));
        assert!(!pending[0].is_named(&["a::b".to_owned()]));
    }

    #[test]
    fn the_packages_of_a_folder_of_baselines_are_those_of_the_workspace() {
        let (root, kept) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let inner = root.path().join("inner");
        fs::create_dir(&inner).unwrap();
        fs::write(inner.join("Cargo.toml"), "").unwrap();
        let roots = Roots::new(root.path(), Some(kept.path()));
        let leave_out = root.path().join("target");
        assert_eq!(accepted(roots, root.path(), &leave_out).unwrap(), []);
        for folder in ["tests", "inner/tests"] {
            let folder = kept.path().join(folder).join("snapshots");
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("mem__a@cpu.snap.new"), OURS).unwrap();
        }
        for (package, folder) in [(root.path(), "tests"), (&inner, "inner/tests")] {
            let found = pending(roots, package, &leave_out).unwrap();
            assert_eq!(found.len(), 1);
            let target = kept.path().join(folder).join("snapshots/mem__a@cpu.snap");
            assert_eq!(found[0].target, target);
        }
        fs::remove_dir_all(kept.path()).unwrap();
        assert_eq!(pending(roots, &inner, &leave_out).unwrap(), [], "nothing was accepted yet");
    }

    #[test]
    fn a_folder_of_pending_snapshots_mirrors_the_workspace() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app/tests/snapshots/mem__a@cpu.snap.new");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, OURS).unwrap();
        let found = pending_below(folder.path(), Path::new("/ws")).unwrap();
        assert_eq!(found[0].target, Path::new("/ws/app/tests/snapshots/mem__a@cpu.snap"));
    }
}
