//! The line of the workspace that a finding belongs to, for forms of output that show findings in
//! the source: annotations and SARIF.

use std::path::{Path, PathBuf};

use memcheck_core::judgement::finding::{Finding, Site};
use memcheck_core::judgement::location;

use crate::discovery::task::Task;

/// Makes paths relative to the folder of the workspace.
#[derive(Debug, Clone, Default)]
pub(super) struct Places {
    root: PathBuf,
}

impl Places {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// The first line of the workspace that the finding names, or else the line of its test.
    pub(super) fn of_finding(&self, task: &Task, finding: &Finding) -> (PathBuf, u32) {
        let of_site = finding.sites.iter().find_map(|site| self.of_site(site));
        of_site.unwrap_or_else(|| (self.relative(task.subject.file()), task.subject.line()))
    }

    /// The line of a call site; `None` if it is outside of the workspace.
    pub(super) fn of_site(&self, site: &Site) -> Option<(PathBuf, u32)> {
        let file = self.relative(Path::new(site.file.as_ref()?));
        file.is_relative().then_some((file, site.line?))
    }

    /// The path from the folder of the workspace; an absolute path if the file is elsewhere.
    pub(super) fn relative(&self, file: &Path) -> PathBuf {
        let file = location::source(&self.root, file);
        file.strip_prefix(&self.root).unwrap_or(&file).to_owned()
    }
}
