//! Snapshot files in insta's layout: their parts, the text of a new one, and the writer of pending
//! ones. It writes those of figures for the test process, and those of laws and of merged shards for
//! the command.

use std::fs;
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::yaml;
use crate::measurement::record::Facts;
use crate::os;

/// A snapshot that is about to be written.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct NewSnapshot<'a> {
    /// The source file of the test, relative to the workspace.
    pub source: &'a Path,
    /// The line of the test, which an accepted snapshot does not keep.
    #[serde(rename = "assertion_line", skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The conditions of the measurement.
    #[serde(rename = "info")]
    pub facts: &'a Facts,
    /// The figures or laws, as YAML.
    #[serde(skip)]
    pub body: &'a str,
}

impl NewSnapshot<'_> {
    /// The text of the file.
    pub fn text(&self) -> String {
        layout(&yaml::write(self), self.body)
    }
}

fn layout(header: &str, body: &str) -> String {
    format!("---\n{header}\n---\n{body}\n")
}

/// The text of a snapshot file, split into insta's header and the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotParts<'a> {
    header: &'a str,
    /// The `info` of the header, as JSON.
    pub info: Option<String>,
    /// The source file of the test, relative to the workspace.
    pub source: Option<String>,
    /// The figures, as YAML.
    pub body: &'a str,
}

/// The reason why a text is not a snapshot file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PartsError {
    /// The `---` line that begins or ends the header is missing.
    #[error("it has no complete header between two `---` lines")]
    NoHeader,
    /// The header is not YAML.
    #[error("its header is not YAML: {0}")]
    Header(String),
}

impl<'a> SnapshotParts<'a> {
    /// Splits the text of a snapshot file, which must have insta's layout.
    pub fn of(text: &'a str) -> Result<Self, PartsError> {
        #[derive(Deserialize)]
        struct Header {
            info: Option<serde_json::Value>,
            source: Option<String>,
        }
        let rest = text.strip_prefix("---\n").ok_or(PartsError::NoHeader)?;
        let (header, body) = rest.split_once("\n---\n").ok_or(PartsError::NoHeader)?;
        let Header { info, source } = yaml::read(header).map_err(PartsError::Header)?;
        let info = info.map(|info| info.to_string());
        Ok(Self { header, info, source, body: body.trim_end() })
    }

    /// Returns the text of the same file with another body.
    pub fn with_body(&self, body: &str) -> String {
        layout(self.header, body)
    }

    /// True if memcheck wrote the snapshot: its `info` then has the version of the format.
    pub fn is_memcheck(&self) -> bool {
        self.info
            .as_deref()
            .and_then(|info| serde_json::from_str::<serde_json::Value>(info).ok())
            .is_some_and(|info| info.get("memcheck").is_some())
    }
}

/// The path of the pending snapshot of `snapshot`: next to it, as insta has it, or in a folder that
/// mirrors the workspace: `mirror` is this folder and the root of the workspace. `None` for a
/// snapshot outside the workspace, which the folder does not mirror.
pub fn pending_path(snapshot: &Path, mirror: Option<(&Path, &Path)>) -> Option<PathBuf> {
    let Some((folder, root)) = mirror else { return Some(snapshot.with_extension("snap.new")) };
    let rest = snapshot.strip_prefix(root).ok()?;
    let is_straight = rest.components().all(|part| matches!(part, Component::Normal(_)));
    is_straight.then(|| folder.join(rest).with_extension("snap.new"))
}

/// Writes `text` as the pending snapshot of `snapshot`, or removes the pending snapshot if there is
/// no text. Returns the path if one was written.
///
/// # Errors
/// If the file cannot be written or removed.
pub fn put_pending(
    snapshot: &Path,
    mirror: Option<(&Path, &Path)>,
    text: Option<&str>,
) -> io::Result<Option<PathBuf>> {
    let Some(path) = pending_path(snapshot, mirror) else { return Ok(None) };
    match text {
        Some(text) => replace_pending(&path, text).map(|()| Some(path)),
        None => remove_pending(&path).map(|()| None),
    }
}

/// Replaces a pending snapshot, or creates it with its folder. A reader sees the old text or the
/// new one, because a complete file is renamed.
///
/// # Errors
/// If the file cannot be written. Then a pending snapshot of an earlier run is removed, because its
/// figures belong to older code.
fn replace_pending(pending: &Path, text: &str) -> io::Result<()> {
    let written = replace(pending, text);
    if written.is_err() {
        let _ = remove_pending(pending);
    }
    written
}

fn replace(pending: &Path, text: &str) -> io::Result<()> {
    let folder = pending.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".memcheck-").suffix(".part");
    // A temporary file is only for its owner, but a snapshot is an ordinary file.
    os::share(&mut builder);
    let mut file = builder.tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    // Some file systems report a full disk only here.
    file.as_file().sync_all()?;
    file.persist(pending).map(drop).map_err(|error| error.error)
}

/// Removes a pending snapshot. It is not an error if there is none.
///
/// # Errors
/// If the file exists and cannot be removed.
fn remove_pending(pending: &Path) -> io::Result<()> {
    match fs::remove_file(pending) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::baseline::Laws;
    use super::*;

    #[test]
    fn a_snapshot_file_is_split_and_recognized() {
        let text = "---\nsource: tests/a.rs\ninfo:\n  memcheck: 1\n  candle: 0.11.1\n---\nhost:\n  growth: 0\n";
        let parts = SnapshotParts::of(text).unwrap();
        assert!(parts.is_memcheck());
        assert_eq!(parts.body, "host:\n  growth: 0");
        assert_eq!(parts.with_body(parts.body), text);
        assert!(parts.with_body("host:\n  growth: 9").ends_with("---\nhost:\n  growth: 9\n"));
        let other = SnapshotParts::of("---\nsource: tests/a.rs\n---\ntext\n").unwrap();
        assert!(!other.is_memcheck());
        for torn in ["", "---\nsource: a\n", "host:\n  growth: 0"] {
            assert_eq!(SnapshotParts::of(torn), Err(PartsError::NoHeader));
        }
    }

    #[test]
    fn a_new_snapshot_has_the_layout_of_insta() {
        let facts = crate::measurement::record::example::record(Default::default()).facts;
        let laws = Laws::from_yaml("laws:\n  host:\n    growth: '0'").unwrap();
        let body = laws.to_yaml();
        let source = Path::new("tests/mem.rs");
        let new = NewSnapshot { source, line: None, facts: &facts, body: &body };
        let text = new.text();
        assert!(text.starts_with("---\nsource: tests/mem.rs\ninfo:\n  memcheck: 1\n"), "{text}");
        let parts = SnapshotParts::of(&text).unwrap();
        assert!(parts.is_memcheck());
        assert_eq!(Laws::from_yaml(parts.body), Ok(laws));
        assert_eq!(serde_json::from_str::<Facts>(&parts.info.unwrap()).unwrap(), facts);
        let with_line = NewSnapshot { line: Some(7), ..new }.text();
        assert_eq!(with_line.replace("assertion_line: 7\n", ""), text);
    }

    #[test]
    fn a_pending_snapshot_is_next_to_its_baseline_or_in_a_mirror_of_the_workspace() {
        let snapshot = Path::new("/ws/app/snapshots/a@cpu.snap");
        let next = pending_path(snapshot, None);
        assert_eq!(next, Some("/ws/app/snapshots/a@cpu.snap.new".into()));
        let mirror = Some((Path::new("/p"), Path::new("/ws")));
        let mirrored = pending_path(snapshot, mirror);
        assert_eq!(mirrored, Some("/p/app/snapshots/a@cpu.snap.new".into()));
        for outside in ["/elsewhere/a@cpu.snap", "/ws/../a@cpu.snap", "a@cpu.snap"] {
            assert_eq!(pending_path(Path::new(outside), mirror), None, "{outside}");
        }
    }

    #[test]
    fn a_pending_snapshot_is_written_whole_or_removed() {
        let root = tempfile::tempdir().unwrap();
        let snapshot = root.path().join("snapshots/a@cpu.snap");
        let pending = root.path().join("snapshots/a@cpu.snap.new");
        for text in ["first\n", "second, longer\n"] {
            let path = put_pending(&snapshot, None, Some(text)).unwrap();
            assert_eq!(path.as_deref(), Some(pending.as_path()));
            assert_eq!(fs::read_to_string(&pending).unwrap(), text);
        }
        let names = || fs::read_dir(root.path().join("snapshots")).unwrap().count();
        assert_eq!(names(), 1, "no temporary file stays");
        for _ in 0..2 {
            assert_eq!(put_pending(&snapshot, None, None).unwrap(), None);
            assert_eq!(names(), 0);
        }
        // A file where its folder must be.
        fs::write(root.path().join("file"), "").unwrap();
        put_pending(&root.path().join("file/a@cpu.snap"), None, Some("text")).unwrap_err();
        remove_pending(Path::new("/")).unwrap_err();
    }
}
