//! Findings below the one that they follow from: a leak raises the growth and the peak of its space, so
//! that these regressions are no further mistakes.

use crate::judgement::finding::{Code, Finding};
use crate::presentation::text::{self, Line, LinePart, Much};

/// A finding, with those that follow from it.
#[derive(Debug, Clone, PartialEq)]
pub struct Folded<'a> {
    /// The cause of the others.
    pub finding: &'a Finding,
    /// In the order of their severity.
    pub consequences: Vec<&'a Finding>,
}

/// The findings, each regression of growth or peak below the leak in its space. Those about a number
/// of allocations come last, because bytes explain more.
pub fn folded<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Vec<Folded<'a>> {
    let mut all: Vec<Folded<'a>> = Vec::new();
    for finding in findings {
        let is_cause = |it: &&mut Folded<'_>| {
            it.finding.code == Code::Leak && it.finding.space == finding.space
        };
        let follows = matches!(finding.code, Code::GrowthRegression | Code::PeakRegression);
        match all.iter_mut().find(is_cause).filter(|_| follows) {
            Some(cause) => cause.consequences.push(finding),
            None => all.push(Folded { finding, consequences: Vec::new() }),
        }
    }
    all.sort_by_key(|it| it.finding.code.is_about_a_number());
    all
}

/// The lines of a finding that follows from another one. Few lines are one line, because its call
/// sites are those of the cause.
pub fn consequence(finding: &Finding, extent: Much) -> Vec<Line> {
    let also = |line: Line| Line {
        part: if line.part == LinePart::Summary { LinePart::Message } else { line.part },
        text: match line.part {
            LinePart::Summary => format!("  also {}", line.text),
            _ => format!("  {}", line.text),
        },
    };
    let all = text::parts(finding, extent).into_iter().map(also);
    match extent {
        Much::Few => all.take(1).collect(),
        Much::All => all.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::Space;

    fn of(code: Code, space: Space) -> Finding {
        Finding { space: Some(space), ..Finding::new(code, format!("in {space}")) }
    }

    #[test]
    fn regressions_are_below_the_leak_of_their_space_only() {
        let gpu = Space::Cuda(0);
        let findings = [
            of(Code::Leak, gpu),
            of(Code::AllocationsRegression, gpu),
            of(Code::GrowthRegression, gpu),
            of(Code::PeakRegression, gpu),
            of(Code::PeakRegression, Space::Host),
        ];
        let all = folded(&findings);
        let shown: Vec<(Code, usize)> =
            all.iter().map(|it| (it.finding.code, it.consequences.len())).collect();
        let expected =
            [(Code::Leak, 2), (Code::PeakRegression, 0), (Code::AllocationsRegression, 0)];
        assert_eq!(shown, expected);
        let without = folded(&findings[1..]);
        assert_eq!(without.len(), 4, "nothing is folded without a leak");
    }

    #[test]
    fn a_consequence_is_one_line_unless_all_lines_are_wanted() {
        let finding = of(Code::PeakRegression, Space::Host).hint("what to do");
        let lines = |extent| -> Vec<String> {
            consequence(&finding, extent).into_iter().map(|line| line.text).collect()
        };
        assert_eq!(lines(Much::Few), ["  also peak-regression: in host"]);
        assert_eq!(lines(Much::All), ["  also peak-regression: in host", "    hint: what to do"]);
    }
}
