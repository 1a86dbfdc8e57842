//! Findings as lines of text: one of summary, then hint and sites. Shared by
//! terminal, JUnit and Markdown, so that all say the same; HTML has tables.

use memcheck_core::finding::{Finding, Grown, Site};
use memcheck_core::shape::{Fit, Told};
use memcheck_core::size::{self, Size, both, exact};

use crate::options::Verbosity;

/// Sites that are shown where not all are wanted.
const FEW: usize = 3;

/// The lines of a finding, the first one being `code: message`. At most
/// [`FEW`] sites, unless everything is to be said.
pub(super) fn lines(finding: &Finding, verbosity: Verbosity) -> Vec<String> {
    let at_most = |all: usize| match verbosity {
        Verbosity::Verbose => all,
        Verbosity::Normal | Verbosity::Quiet => all.min(FEW),
    };
    let mut lines: Vec<String> = Vec::new();
    let mut message = finding.message.lines();
    lines.push(format!("{}: {}", finding.code, message.next().unwrap_or_default()));
    // The rest of a long error text of the body.
    let rest: Vec<&str> = message.collect();
    let shown = at_most(rest.len());
    lines.extend(rest[..shown].iter().map(|line| format!("  {line}")));
    if shown < rest.len() {
        lines.push(format!("  … {} more lines", rest.len() - shown));
    }
    let shown = at_most(finding.grown.len());
    lines.extend(finding.grown[..shown].iter().map(|grown| format!("  {}", self::grown(grown))));
    let shown = at_most(finding.sites.len());
    let few = finding.sites[..shown].iter().flat_map(self::site);
    lines.extend(few.map(|line| format!("  {line}")));
    if shown < finding.sites.len() {
        lines.push(format!("  … {} more places", finding.sites.len() - shown));
    }
    if let Some(cause) = &finding.cause {
        lines.push(format!("  cause: {} ({})", cause.title, cause.code));
        lines.push(format!("    seen: {}", cause.evidence));
        lines.push(format!("    remedy: {}", cause.remedy));
    }
    if let Some(hint) = &finding.hint {
        lines.push(format!("  hint: {hint}"));
    }
    lines
}

/// What holds more at the peak than in the baseline.
pub(super) fn grown(grown: &Grown) -> String {
    let was = match grown.then {
        0 => "new at the peak".to_owned(),
        then => format!("was {}", Size(then)),
    };
    format!("+{} {} ({was})", Size(grown.now - grown.then), grown.holder)
}

/// One place: the line of the program first, then what it holds.
fn site(site: &Site) -> Vec<String> {
    let mut what = Vec::new();
    what.extend(site.operation.clone());
    what.extend(site.tensor.clone());
    what.extend(site.scope.as_ref().map(|scope| format!("in {scope}")));
    let amount = match site.block {
        Some(_) => blocks(site),
        None => format!("{}, {}", size::blocks(site.count), both(site.bytes)),
    };
    let note = site.note.as_ref().map(|note| format!(": {note}")).unwrap_or_default();
    let Some(place) = place(site) else { return vec![format!("{amount}{note}")] };
    let function = site.function.as_deref().map(|function| format!(" ({function})"));
    let mut lines = vec![format!("{place}{}", function.unwrap_or_default())];
    if !what.is_empty() {
        lines.push(format!("  {}", what.join(" ")));
    }
    lines.push(format!("  {amount}{note}"));
    lines
}

/// How many blocks it holds, and of which size where all are alike.
pub(super) fn blocks(site: &Site) -> String {
    match site.block {
        Some(block) => format!("{} x {}", site.count, both(block)),
        None => site.count.to_string(),
    }
}

/// `src/model.rs:42`, or the innermost function where no line of the program is
/// known.
pub(super) fn place(site: &Site) -> Option<String> {
    let line = site.line.map(|line| format!(":{line}")).unwrap_or_default();
    site.file.as_ref().map(|file| format!("{file}{line}")).or_else(|| {
        let frame = site.stack.first()?;
        Some(frame.shown())
    })
}

/// `peak = 31.2 MiB + 1.5 KiB*seq`, with the space in front where there are
/// several, and what fits by it. Exactly, where much is to be said.
pub(super) fn laws(all: &[Told], verbosity: Verbosity) -> Vec<String> {
    let several = all.iter().any(|told| told.space != all[0].space);
    let mut lines = Vec::new();
    for Told { space, metric, law, fits, .. } in all {
        let text = match verbosity {
            Verbosity::Verbose => law.to_string(),
            Verbosity::Normal | Verbosity::Quiet => law.told(*metric),
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
