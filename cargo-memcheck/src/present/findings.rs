//! Findings as lines of text, as memcheck-core writes them, and laws. Shared by
//! terminal, JUnit and Markdown, so that all say the same; HTML has tables.

use memcheck_core::finding::Finding;
use memcheck_core::lines::{self, Much};
use memcheck_core::shape::{Fit, Told};
use memcheck_core::size::exact;

pub(super) use memcheck_core::lines::{blocks, grown, place};

use crate::options::Verbosity;

/// The lines of a finding, the first one being `code: message`. A few of its
/// sites, unless everything is to be said.
pub(super) fn lines(finding: &Finding, verbosity: Verbosity) -> Vec<String> {
    lines::lines(
        finding,
        match verbosity {
            Verbosity::Verbose => Much::All,
            Verbosity::Normal | Verbosity::Quiet => Much::Few,
        },
    )
}

/// `peak = 31.2 MiB + 1.5 KiB*seq`, with the space in front where there are
/// several, and what fits by it. Exactly, where much is to be said.
pub(super) fn laws(all: &[Told], verbosity: Verbosity) -> Vec<String> {
    let several = all.iter().any(|told| told.space != all[0].space);
    let mut lines = Vec::new();
    for told in all {
        let Told { space, metric, law, few, fits, .. } = told;
        let text = match verbosity {
            Verbosity::Verbose if few.is_empty() => law.to_string(),
            Verbosity::Verbose | Verbosity::Normal | Verbosity::Quiet => told.shown(),
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
