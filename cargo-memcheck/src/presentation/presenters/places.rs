//! The line of the workspace that a finding belongs to, for forms of output that show findings in
//! the source: annotations and SARIF.

use std::path::{Path, PathBuf};

use memcheck_core::judgement::finding::{Finding, GrownHolder, Site};
use memcheck_core::judgement::location;
use memcheck_core::measurement::stack::{Frame, Owner};

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

    /// The first line of the workspace that the finding names, or else the line of its test. The
    /// sites of a regression are all holders of the peak, so that those that grew come first.
    pub(super) fn of_finding(&self, task: &Task, finding: &Finding) -> (PathBuf, u32) {
        let of_grown = || grown(finding).find_map(|(file, line)| self.inside(file, line));
        let of_site = || finding.sites.iter().find_map(|site| self.of_site(site));
        of_grown()
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
    let (file, line) = holder.place.as_deref()?.rsplit_once(':')?;
    Some((file, line.parse().ok()?))
}

/// The main line of a finding: that of the holder that grew most, or of the first site.
pub(super) fn first_line(finding: &Finding) -> Option<(&str, u32)> {
    let of_site = |site: &'_ Site| -> Option<u32> { site.file.as_ref().and(site.line) };
    let site = || finding.sites.iter().find(|site| of_site(site).is_some());
    grown(finding).next().or_else(|| site().and_then(|it| Some((it.file.as_deref()?, it.line?))))
}

/// The call stacks of more call sites are not compared.
const MOST_COMPARED: usize = 256;

/// The innermost line of the program that called all call sites of a finding with a cause: if a
/// loss is kept, the line that computes it. `None` if this is the main line.
pub(super) fn common_line(finding: &Finding) -> Option<(&str, u32)> {
    let [first, others @ ..] = finding.sites.as_slice() else { return None };
    finding.cause.as_ref().filter(|_| (1..MOST_COMPARED).contains(&others.len()))?;
    let called_all = |frame: &&Frame| {
        frame.owner() == Owner::User && others.iter().all(|site| site.stack.contains(frame))
    };
    let frame = first.stack.iter().find(called_all)?;
    let line = (frame.file.as_deref()?, frame.line?);
    (Some(line) != first_line(finding)).then_some(line)
}

#[cfg(test)]
mod tests {
    use memcheck_core::judgement::diagnosis::Cause;
    use memcheck_core::judgement::finding::Code;

    use super::*;
    use crate::discovery::task::example::task;

    #[test]
    fn a_regression_is_at_the_line_that_grew() {
        let site = Site { file: Some("src/a.rs".to_owned()), line: Some(1), ..Site::default() };
        let holder = |place: Option<&str>| GrownHolder {
            holder: "x".to_owned(),
            place: place.map(str::to_owned),
            then: 0,
            now: 1,
        };
        let places = FindingPlaces::new("/w".into());
        let finding = |grown: Vec<GrownHolder>| {
            let sites = vec![site.clone()];
            Finding { sites, grown, ..Finding::new(Code::PeakRegression, "") }
        };
        let found = |grown: Vec<GrownHolder>| {
            let finding = finding(grown);
            let (file, line) = places.of_finding(&task(), &finding);
            let first = first_line(&finding).map(|(file, line)| format!("{file}:{line}"));
            (format!("{}:{line}", file.display()), first.unwrap_or_default())
        };
        let both = |text: &str| (text.to_owned(), text.to_owned());
        assert_eq!(found(Vec::new()), both("src/a.rs:1"));
        assert_eq!(found(vec![holder(None), holder(Some("src/b.rs:7"))]), both("src/b.rs:7"));
        assert_eq!(found(vec![holder(Some("candle_core::matmul"))]), both("src/a.rs:1"));
        // A line of a dependency has no place in the workspace.
        let outside = found(vec![holder(Some("/registry/c.rs:9"))]);
        assert_eq!(outside, ("src/a.rs:1".to_owned(), "/registry/c.rs:9".to_owned()));
    }

    #[test]
    fn the_line_that_called_all_call_sites_is_the_innermost_of_the_program() {
        let frame = |function: &str, line| Frame {
            function: function.to_owned(),
            file: Some("src/a.rs".to_owned()),
            line: Some(line),
        };
        let site = |lines: &[u32]| {
            let function = "candle_core::tensor::Tensor::matmul".to_owned();
            let of_candle = Frame { function, file: None, line: None };
            let of_program = lines.iter().map(|line| frame("app::step", *line));
            Site {
                file: Some("src/a.rs".to_owned()),
                line: lines.first().copied(),
                stack: [of_candle].into_iter().chain(of_program).collect(),
                ..Site::default()
            }
        };
        let finding = |sites: &[&[u32]]| {
            let sites = sites.iter().map(|lines| site(lines)).collect();
            let [code, title, evidence, remedy] = ["graph-kept", "", "", ""].map(str::to_owned);
            let cause = Some(Cause { code, title, evidence, remedy });
            Finding { sites, cause, ..Finding::new(Code::Leak, "") }
        };
        let line = |sites: &[&[u32]]| common_line(&finding(sites)).map(|(_, line)| line);
        assert_eq!(line(&[&[3, 7, 9], &[4, 7, 9], &[7, 9]]), Some(7));
        // The main line called the others, there is no such line, or one call site.
        assert_eq!(line(&[&[7, 9], &[4, 7, 9]]), None);
        assert_eq!(line(&[&[3, 9], &[4, 8]]), None);
        assert_eq!(line(&[&[3, 7, 9]]), None);
        let without_cause = Finding { cause: None, ..finding(&[&[3, 7], &[4, 7]]) };
        assert_eq!(common_line(&without_cause), None);
    }
}
