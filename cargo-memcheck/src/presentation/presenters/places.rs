//! The lines of the workspace that a finding names.

use std::path::{Path, PathBuf};

use memcheck_core::judgement::finding::{Finding, GrownHolder, HeadLine, Site};
use memcheck_core::judgement::location;

use crate::discovery::task::Task;

/// Makes paths relative to the folder of the workspace.
#[derive(Debug, Clone, Default)]
pub(super) struct FindingPlaces {
    root: PathBuf,
}

impl FindingPlaces {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// The headline of the finding. If it is outside of the workspace, the first line of the
    /// workspace that the finding names, or else the line of its test.
    pub(super) fn of_finding(&self, task: &Task, finding: &Finding) -> (PathBuf, u32) {
        let of_grown = || grown(finding).find_map(|(file, line)| self.inside(file, line));
        let of_headline = || headline(finding).and_then(|(file, line)| self.inside(file, line));
        let of_site = || finding.sites.iter().find_map(|site| self.of_site(site));
        of_headline()
            .or_else(of_grown)
            .or_else(of_site)
            .unwrap_or_else(|| (self.relative(task.subject.file()), task.subject.line()))
    }

    /// The line of a call site; `None` if it is outside of the workspace.
    pub(super) fn of_site(&self, site: &Site) -> Option<(PathBuf, u32)> {
        self.inside(site.file.as_ref()?, site.line?)
    }

    fn inside(&self, file: &str, line: u32) -> Option<(PathBuf, u32)> {
        let file = self.relative(Path::new(file));
        file.is_relative().then_some((file, line))
    }

    /// The path from the folder of the workspace; an absolute path if the file is elsewhere.
    pub(super) fn relative(&self, file: &Path) -> PathBuf {
        let file = location::source(&self.root, file);
        file.strip_prefix(&self.root).unwrap_or(&file).to_owned()
    }
}

/// The lines of the holders that grew, the largest first.
pub(super) fn grown(finding: &Finding) -> impl Iterator<Item = (&str, u32)> {
    finding.grown.iter().filter_map(line_of)
}

/// The line of a holder at the peak.
pub(super) fn line_of(holder: &GrownHolder) -> Option<(&str, u32)> {
    parse(holder.place.as_deref()?)
}

/// The file and the line of a place such as `src/model.rs:20`.
pub(super) fn parse(place: &str) -> Option<(&str, u32)> {
    let (file, line) = place.rsplit_once(':')?;
    Some((file, line.parse().ok()?))
}

/// The file and the line of the headline. A run of an earlier version has none, so that the line of
/// the largest holder or call site takes its place.
pub(super) fn headline(finding: &Finding) -> Option<(&str, u32)> {
    let stored = finding.keeps_at.as_ref().map(|at| (at.file.as_str(), at.line));
    let of_site = |site: &'_ Site| -> Option<u32> { site.file.as_ref().and(site.line) };
    let site = || finding.sites.iter().find(|site| of_site(site).is_some());
    let of_sites = || site().and_then(|it| Some((it.file.as_deref()?, it.line?)));
    stored.or_else(|| grown(finding).next()).or_else(of_sites)
}

/// The headline, if it is the line that called those of all call sites.
pub(super) fn caller(finding: &Finding) -> Option<(&str, u32)> {
    finding.caller().map(|HeadLine { file, line, .. }| (file.as_str(), *line))
}

#[cfg(test)]
mod tests {
    use memcheck_core::judgement::finding::Code;

    use super::*;
    use crate::discovery::task::example::task;

    #[test]
    fn a_finding_is_at_its_headline_or_else_at_the_first_line_of_the_workspace() {
        let at = |file: &str| HeadLine { file: file.to_owned(), line: 7, function: None };
        let site = Site { file: Some("src/a.rs".to_owned()), line: Some(1), ..Site::default() };
        let grown = GrownHolder {
            holder: "x".to_owned(),
            place: Some("src/b.rs:3".to_owned()),
            now: 1,
            ..GrownHolder::default()
        };
        let places = FindingPlaces::new("/w".into());
        let found = |keeps_at: Option<HeadLine>, grown: &[GrownHolder]| {
            let (sites, grown) = (vec![site.clone()], grown.to_vec());
            let finding = Finding { keeps_at, sites, grown, ..Finding::new(Code::Leak, "") };
            let (file, line) = places.of_finding(&task(), &finding);
            format!("{}:{line}", file.display())
        };
        assert_eq!(found(Some(at("src/c.rs")), &[]), "src/c.rs:7");
        // A line of a dependency has no place in the workspace.
        assert_eq!(found(Some(at("/registry/c.rs")), &[]), "src/a.rs:1");
        assert_eq!(found(None, std::slice::from_ref(&grown)), "src/b.rs:3");
        assert_eq!(found(None, &[]), "src/a.rs:1");
        let none = Finding::new(Code::Leak, "");
        assert_eq!(places.of_finding(&task(), &none).1, task().subject.line());
    }
}
