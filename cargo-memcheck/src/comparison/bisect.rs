//! Decides whether the tests of a revision are good or bad, compared with those of a revision that
//! is known to be good.

use memcheck_core::judgement::finding::Code;
use memcheck_core::judgement::verdict::Status;
use serde::{Deserialize, Serialize};

use super::runs::{ChangedTest, Comparison, FigureChange};
use crate::invocation::values::BadChange;

/// The rule that separates good revisions from bad ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Criterion {
    /// The only figure that counts. Without it, every figure of a baseline counts, and so do
    /// findings.
    pub(crate) figure: Option<String>,
    /// The change that counts.
    pub(crate) change: BadChange,
}

/// The reason why a revision is bad.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reason<'a> {
    /// A figure has changed.
    Figure(&'a FigureChange),
    /// The test has a finding that it did not have, or lacks one that it had.
    Finding(Code),
    /// The test failed in one of the revisions only.
    Status(Status),
}

impl Criterion {
    /// The first reason why the head of a comparison is bad, with its test. `None` if it is good.
    /// The base of the comparison is the good revision.
    pub(crate) fn reason<'a>(
        &self,
        comparison: &'a Comparison,
    ) -> Option<(&'a ChangedTest, Reason<'a>)> {
        comparison.changed.iter().find_map(|test| Some((test, self.reason_in(test)?)))
    }

    fn reason_in<'a>(&self, test: &'a ChangedTest) -> Option<Reason<'a>> {
        if let Some(figure) = test.figures.iter().find(|figure| self.counts(figure)) {
            return Some(Reason::Figure(figure));
        }
        if self.figure.is_some() {
            return None;
        }
        let (new, gone) = (test.new_findings.first(), test.gone_findings.first());
        let finding = match self.change {
            BadChange::Rise => new,
            BadChange::Fall => gone,
            BadChange::Any => new.or(gone),
        };
        if let Some(code) = finding {
            return Some(Reason::Finding(*code));
        }
        let (was, is) = (test.base.fails(), test.head.fails());
        let differs = match self.change {
            BadChange::Rise => is && !was,
            BadChange::Fall => was && !is,
            BadChange::Any => is != was,
        };
        differs.then_some(Reason::Status(test.head))
    }

    /// A space without the figure has no bytes there.
    fn counts(&self, figure: &FigureChange) -> bool {
        let (base, head) = (figure.base.unwrap_or(0), figure.head.unwrap_or(0));
        let has_changed = match self.change {
            BadChange::Rise => head > base,
            BadChange::Fall => head < base,
            BadChange::Any => head != base,
        };
        has_changed && self.figure.as_ref().is_none_or(|name| *name == figure.figure)
    }
}

#[cfg(test)]
mod tests {
    use super::super::runs::TestId;
    use super::*;
    use memcheck_core::space::Space;

    fn figure(name: &str, base: u64, head: u64) -> FigureChange {
        let (base, head) = (Some(base), Some(head));
        FigureChange { space: Space::Host, figure: name.to_owned(), base, head }
    }

    fn changed(figures: Vec<FigureChange>) -> Comparison {
        let text = |text: &str| text.to_owned();
        let test = ChangedTest {
            id: TestId {
                package: text("app"),
                binary: text("app::mem"),
                test: text("a"),
                device: text("cpu"),
            },
            base: Status::Passed,
            head: Status::Passed,
            figures,
            grown: Vec::new(),
            shrunk: Vec::new(),
            new_findings: Vec::new(),
            gone_findings: Vec::new(),
            conditions: None,
            lacks_call_sites: false,
        };
        Comparison { changed: vec![test], ..Comparison::default() }
    }

    fn is_bad(comparison: &Comparison, figure: Option<&str>, change: BadChange) -> bool {
        let figure = figure.map(str::to_owned);
        Criterion { figure, change }.reason(comparison).is_some()
    }

    #[test]
    fn the_direction_and_the_figure_decide() {
        let higher = changed(vec![figure("setup", 8, 9), figure("retained", 8, 4)]);
        assert!(is_bad(&higher, None, BadChange::Rise) && is_bad(&higher, None, BadChange::Fall));
        assert!(is_bad(&higher, Some("setup"), BadChange::Rise));
        assert!(!is_bad(&higher, Some("setup"), BadChange::Fall));
        assert!(!is_bad(&higher, Some("peak_allocated"), BadChange::Any));
        assert!(is_bad(&higher, Some("retained"), BadChange::Any));
        let same = Comparison { unchanged: 1, ..Comparison::default() };
        for change in [BadChange::Rise, BadChange::Fall, BadChange::Any] {
            assert!(!is_bad(&same, None, change));
        }
    }

    #[test]
    fn a_new_space_is_a_rise() {
        let new = FigureChange { base: None, ..figure("peak_allocated", 0, 8) };
        let appeared = changed(vec![new]);
        assert!(
            is_bad(&appeared, None, BadChange::Rise) && !is_bad(&appeared, None, BadChange::Fall)
        );
    }

    #[test]
    fn findings_count_unless_a_figure_is_named() {
        let mut leaks = changed(Vec::new());
        leaks.changed[0].new_findings = vec![Code::Leak];
        let (_, reason) = Criterion::default().reason(&leaks).unwrap();
        assert_eq!(reason, Reason::Finding(Code::Leak));
        assert!(
            !is_bad(&leaks, Some("growth"), BadChange::Any)
                && !is_bad(&leaks, None, BadChange::Fall)
        );
        let mut crashes = changed(Vec::new());
        crashes.changed[0].head = Status::NotMeasured;
        assert!(
            is_bad(&crashes, None, BadChange::Rise) && !is_bad(&crashes, None, BadChange::Fall)
        );
        crashes.changed[0].base = Status::Failed;
        assert!(!is_bad(&crashes, None, BadChange::Any), "it failed before");
    }
}
