//! Checks whether the source file of a baseline still contains the test.

use std::path::Path;

use memcheck_core::input;
use memcheck_core::judgement::snapshot::SnapshotParts;
use serde::{Deserialize, Serialize};

use super::SnapshotFile;
use super::find::read;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SourceFunctions {
    pub(crate) test: bool,
    /// The second last part of the path is the function of a test over cases.
    pub(crate) function: bool,
}

impl SourceFunctions {
    pub(crate) fn of(file: &SnapshotFile, root: &Path) -> Self {
        let Ok(snapshot) = read(&file.path) else { return Self::default() };
        let source = SnapshotParts::of(&snapshot).ok().and_then(|parts| parts.source);
        // The header of a snapshot can be that of a stranger.
        let text =
            source.map(|source| input::read_text_inside(&root.join(source), root, input::SOURCE));
        let Some(Ok(text)) = text else { return Self::default() };
        let mut names = file.test.rsplit("::");
        let mut next = || names.next().is_some_and(|name| text.contains(&format!("fn {name}(")));
        Self { test: next(), function: next() }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use memcheck_core::judgement::location::Roots;

    use super::*;

    #[test]
    fn a_snapshot_names_only_sources_of_the_workspace() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("ws");
        fs::create_dir_all(root.join("snapshots")).unwrap();
        for source in [root.join("mem.rs"), folder.path().join("other.rs")] {
            fs::write(source, "fn a() {}").unwrap();
        }
        for (source, expected) in [("mem.rs", true), ("../other.rs", false), ("/dev/zero", false)] {
            let text = format!("---\nsource: {source}\ninfo:\n  memcheck: 1\n---\nhost:\n");
            fs::write(root.join("snapshots/mem__a@cpu.snap"), text).unwrap();
            let roots = Roots::new(&root, None);
            let snapshots = super::super::accepted(roots, &root, Path::new("")).unwrap();
            let functions = SourceFunctions::of(&snapshots[0], &root);
            assert_eq!(functions.test, expected, "{source}");
        }
    }
}
