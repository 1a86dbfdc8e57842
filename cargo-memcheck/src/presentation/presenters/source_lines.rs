//! The text of lines of the workspace's sources, as the run that a report is about has compiled them.

use std::path::{Component, Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use memcheck_core::input;

use crate::presentation::origin::RunOrigin;

/// The sources of a workspace that did not change after a run began.
#[derive(Debug, Default)]
pub(super) struct SourceLines {
    root: PathBuf,
    /// The start of the run; without it no file is known to be unchanged.
    started: Option<SystemTime>,
}

impl SourceLines {
    pub(super) fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), started: None }
    }

    pub(super) fn begin(&mut self, run: &RunOrigin) {
        self.started = humantime::parse_rfc3339(&run.started).ok();
    }

    /// The line without the spaces around it. `None` if the file is not there or was written after the run
    /// began, so that the line can be another one.
    pub(super) fn line(&self, file: &str, line: u32) -> Option<String> {
        let written = self.root.join(file).metadata().ok()?.modified().ok()?;
        // The start of a run has no fractions of a second.
        let seconds =
            |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        if seconds(written) > seconds(self.started?) {
            return None;
        }
        let text = read(&self.root, file)?;
        let text = text.lines().nth((line as usize).checked_sub(1)?)?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }
}

/// The text of a source of the workspace. The name of the file comes from a test process, which must
/// not choose other files.
pub(super) fn read(root: &Path, file: &str) -> Option<String> {
    let path = Path::new(file);
    let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    let is_source = path.extension().is_some_and(|extension| extension == "rs");
    (is_plain && is_source)
        .then(|| input::read_text_inside(&root.join(path), root, input::SOURCE).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;
    use crate::presentation::origin;

    #[test]
    fn a_line_is_shown_only_if_its_file_is_that_of_the_run() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.rs");
        fs::write(&file, "fn a() {\n    kept.push(h);\n\n}\n").unwrap();
        let mut sources = SourceLines::new(folder.path());
        assert_eq!(sources.line("a.rs", 2), None, "no run has begun");
        let run = origin::example();
        sources.begin(&run);
        let started = humantime::parse_rfc3339(&run.started).unwrap();
        let at = |time: SystemTime| {
            fs::File::options().write(true).open(&file).unwrap().set_modified(time).unwrap();
            sources.line("a.rs", 2)
        };
        assert_eq!(at(started).as_deref(), Some("kept.push(h);"));
        assert_eq!(at(started + Duration::from_millis(900)).as_deref(), Some("kept.push(h);"));
        assert_eq!(
            at(started + Duration::from_secs(1)),
            None,
            "it was written after the run began"
        );
        at(started);
        for (file, line) in [("a.rs", 3), ("a.rs", 9), ("a.rs", 0), ("b.rs", 1), ("../a.rs", 1)] {
            assert_eq!(sources.line(file, line), None, "{file}:{line}");
        }
    }
}
