//! The last words of a run, and the commands to go on with.

use std::path::Path;

use memcheck_core::exit;

use super::style;
use crate::cli::NoTestsFlag;
use crate::options::Pending;
use crate::tally::Tally;

/// The counts, on one line.
pub(super) fn counts(tally: &Tally) -> String {
    let Tally {
        passed,
        failed,
        new,
        not_measured,
        ignored,
        needs_review,
        elsewhere,
        not_run,
        denied: _,
        pending: _,
        interrupted: _,
    } = tally;
    let mut parts = vec![format!("{passed} passed"), format!("{failed} failed")];
    for (count, word) in [
        (not_measured, "not measured"),
        (needs_review, "to review"),
        (new, "without a baseline"),
        (ignored, "ignored"),
        (elsewhere, "for another device"),
        (not_run, "not run"),
    ] {
        if *count > 0 {
            parts.push(format!("{count} {word}"));
        }
    }
    parts.join(", ")
}

/// What can be done next, a line each.
pub(super) fn next_steps(tally: &Tally, pending: &Pending, no_tests: NoTestsFlag) -> Vec<String> {
    let mut lines = Vec::new();
    if tally.interrupted {
        lines.push(style::warning("interrupted: the counts are those so far"));
    }
    if tally.ran() == 0 && !tally.interrupted && no_tests != NoTestsFlag::Pass {
        let mut line = "no test was selected".to_owned();
        if tally.elsewhere > 0 {
            line.push_str(": those that match make sense on another device only (--device)");
        } else if tally.ignored > 0 {
            line.push_str(": those that match are ignored (--run-ignored all)");
        }
        let fails = no_tests == NoTestsFlag::Fail;
        lines.push(if fails { style::error(&line) } else { style::warning(&line) });
    }
    if !tally.denied.is_empty() {
        let codes: Vec<&str> = tally.denied.iter().map(|code| code.name()).collect();
        lines.push(format!("denied: {} (exit code {})", codes.join(", "), exit::DENIED));
    }
    if !tally.pending.is_empty() {
        let count = tally.pending.len();
        let what = format!("{count} pending snapshot{}", if count == 1 { "" } else { "s" });
        lines.push(match pending {
            Pending::Beside => format!(
                "{what}: {}, or {}",
                style::hint("cargo memcheck review"),
                style::hint("cargo memcheck accept")
            ),
            Pending::In(folder) => format!(
                "{what} in {}: fetch them, then {}",
                shown(folder),
                style::hint("cargo memcheck accept --from DIR")
            ),
        });
    }
    lines
}

/// A folder as seen from the current one.
fn shown(folder: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    folder.strip_prefix(here).unwrap_or(folder).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_happened_is_counted() {
        let tally = Tally { passed: 3, ignored: 1, ..Tally::default() };
        assert_eq!(counts(&tally), "3 passed, 0 failed, 1 ignored");
        assert!(next_steps(&tally, &Pending::Beside, NoTestsFlag::Fail).is_empty());
    }
}
