//! What the measured iterations left behind: each with what it looks like, and
//! the cause where one is recognised.

use memcheck_core::diagnosis::Cause;
use memcheck_core::profile::{Growth, Profile, Survivor};
use memcheck_core::size::{Size, blocks, both};

use super::style;
use crate::options::Verbosity;

/// Survivors that are shown where not all are wanted.
const FEW: usize = 5;

/// The growth of a space; nothing where there were no iterations.
pub(super) fn lines(profile: &Profile, verbosity: Verbosity) -> Vec<String> {
    let Some(growth) = &profile.growth else { return Vec::new() };
    let Growth { iterations: _, bytes_per_iteration, cause, survivors } = growth;
    let title = self::title(growth);
    let title = if *bytes_per_iteration > 0 { style::error(&title) } else { style::strong(&title) };
    let mut lines = vec![String::new(), title];
    let shown = match verbosity {
        Verbosity::Verbose => survivors.len(),
        _ => survivors.len().min(FEW),
    };
    lines.extend(survivors[..shown].iter().flat_map(survivor));
    if shown < survivors.len() {
        lines.push(format!("  … {} more places with --verbose", survivors.len() - shown));
    }
    lines.extend(cause.iter().flat_map(|cause| self::cause("cause", cause, 2)));
    lines
}

/// Whether it grows, and how fast.
pub(in crate::present) fn title(growth: &Growth) -> String {
    let Growth { iterations, bytes_per_iteration, cause: _, survivors } = growth;
    match (bytes_per_iteration, survivors.len()) {
        (0, 0) => format!("no growth: {iterations} iterations left nothing behind"),
        (0, _) => format!("no growth over {iterations} iterations"),
        (rate, _) => format!("growth: {} an iteration, over {iterations}", both(*rate)),
    }
}

fn survivor(survivor: &Survivor) -> Vec<String> {
    let Survivor { label, site, note, bytes, count, remark, .. } = survivor;
    let mut lines = vec![
        format!("  {label}  {}", style::dim(site)),
        format!("    {}, {}: {note}", blocks(*count), Size(*bytes)),
    ];
    lines.extend(remark.iter().flat_map(|remark| cause("note", remark, 4)));
    lines
}

fn cause(word: &str, cause: &Cause, indent: usize) -> Vec<String> {
    let Cause { code, title, evidence, remedy } = cause;
    vec![
        format!("{:indent$}{word}: {title} ({code})", ""),
        format!("{:indent$}  seen: {evidence}", ""),
        format!("{:indent$}  remedy: {remedy}", ""),
    ]
}
