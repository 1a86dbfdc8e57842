//! Findings, phases and laws as lines of text, in the wording of memcheck-core. Terminal, JUnit and
//! Markdown share these lines, so that all of them show the same text. HTML has tables instead.

use memcheck_core::judgement::finding::{Class, Finding};
use memcheck_core::judgement::verdict::Verdict;
use memcheck_core::measurement::phase::PhaseFigures;
use memcheck_core::measurement::record::{Outcome, Record, SpaceRecord};
use memcheck_core::presentation::text::{self, Much};
use memcheck_core::shape::{Fit, ScalingReport};
use memcheck_core::size::{Size, exact};
use memcheck_core::space::Space;

use memcheck_core::presentation::folded;
pub(super) use memcheck_core::presentation::folded::{Folded, folded};
use memcheck_core::presentation::text::Line;
pub(super) use memcheck_core::presentation::text::{blocks, grown};

use crate::invocation::values::Verbosity;

/// The first line is `code: message`. Names only a few call sites unless the output is verbose.
pub(super) fn lines(finding: &Finding, verbosity: Verbosity) -> Vec<String> {
    text::lines(finding, extent(verbosity))
}

/// The same lines with their parts.
pub(super) fn parts(finding: &Finding, verbosity: Verbosity) -> Vec<Line> {
    text::parts(finding, extent(verbosity))
}

/// The lines of all findings, with regressions below the leak that they follow from.
pub(super) fn all_lines(findings: &[Finding], verbosity: Verbosity) -> Vec<String> {
    let with_consequences = |Folded { finding, consequences }: Folded<'_>| {
        let below = consequences.into_iter().flat_map(|it| consequence(it, verbosity));
        lines(finding, verbosity).into_iter().chain(below.map(|line| line.text)).collect::<Vec<_>>()
    };
    folded(findings).into_iter().flat_map(with_consequences).collect()
}

/// The lines of a finding below the one that it follows from.
pub(super) fn consequence(finding: &Finding, verbosity: Verbosity) -> Vec<Line> {
    folded::consequence(finding, extent(verbosity))
}

/// What happened, why and what to do, without call sites.
pub(super) fn explained(finding: &Finding, consequences: &[&Finding]) -> String {
    let mut lines = vec![finding.message.clone()];
    lines.extend(consequences.iter().map(|it| format!("also {}: {}", it.code, it.message)));
    let through = text::kept_through(finding);
    lines.extend(
        through.map(|(at, [before, after])| format!("{before}{}:{}{after}", at.file, at.line)),
    );
    if let Some(cause) = &finding.cause {
        lines.push(format!("cause: {} ({})", cause.title, cause.code));
    }
    lines.extend(finding.evidence().map(|evidence| format!("evidence: {evidence}")));
    if let Some(cause) = &finding.cause {
        lines.push(format!("remedy: {}", cause.remedy));
    } else if let Some(rise) = finding.reason() {
        lines.push(format!("cause: {}", rise.cause));
        lines.push(format!("remedy: {}", rise.remedy));
    }
    lines.join("\n")
}

/// True if the finding makes its test fail.
pub(super) fn is_denied(finding: &Finding, verdict: &Verdict) -> bool {
    match finding.code.row().class {
        Class::Measured | Class::Instrument => true,
        Class::Bookkeeping => verdict.denied.contains(&finding.code),
    }
}

/// True if the finding is about the end of the process, whose cause the last lines of the output have.
pub(super) fn is_end(finding: &Finding) -> bool {
    finding.code.ended_process()
}

/// True if the body failed or panicked without being expected to, so that the figures of its iterations
/// and of its end say nothing.
pub(super) fn is_cut_short(record: &Record) -> bool {
    !matches!(record.outcome, Outcome::Returned) && record.should_panic.is_none()
}

fn extent(verbosity: Verbosity) -> Much {
    match verbosity {
        Verbosity::Verbose => Much::All,
        Verbosity::Normal | Verbosity::Quiet => Much::Few,
    }
}

/// `phase decode: peak 64.0 KiB, growth 0 B` of each phase, for each judged space.
pub(super) fn phases(record: &Record) -> Vec<String> {
    let measured: Vec<_> = record
        .judged
        .iter()
        .filter_map(|space| record.spaces.get_key_value(space))
        // Small blocks are the overhead of tensors, and other spaces have no phases.
        .filter(|(space, it)| **space != Space::HostSmall && !it.phases.is_empty())
        .collect();
    let several = measured.len() > 1;
    let of_space = |(space, it): &(&Space, &SpaceRecord)| {
        let place = if several { format!(" in {space}") } else { String::new() };
        let text = |(name, figures): (&String, &PhaseFigures)| {
            let (peak, growth) = (Size(figures.peak_allocated), Size(figures.growth));
            format!("phase {name}{place}: peak {peak}, growth {growth}")
        };
        it.phases.iter().map(text).collect::<Vec<_>>()
    };
    measured.iter().flat_map(of_space).collect()
}

/// `peak = 31.2 MiB + 1.50 KiB*seq`, and the sizes that fit. Verbose output has the exact
/// coefficients.
pub(super) fn laws(all: &[ScalingReport], verbosity: Verbosity) -> Vec<String> {
    let several = all.iter().any(|report| report.space != all[0].space);
    let mut lines = Vec::new();
    for report in all {
        let ScalingReport { space, metric, law, few, fits, .. } = report;
        let text = match verbosity {
            Verbosity::Verbose if few.is_empty() => law.to_string(),
            Verbosity::Verbose | Verbosity::Normal | Verbosity::Quiet => report.describe_law(),
        };
        let space = if several { format!("{space} ") } else { String::new() };
        lines.push(format!("{space}{} = {text}", metric.short()));
        for Fit { size, upto, with, room, bytes: _ } in fits {
            let with: Vec<String> =
                with.iter().map(|(size, value)| format!("{size} = {value}")).collect();
            let with = match with.as_slice() {
                [] => String::new(),
                with => format!(" with {}", with.join(", ")),
            };
            lines.push(format!("{size} <= {}{with} fits {room} by this law", exact(*upto)));
        }
    }
    lines
}
