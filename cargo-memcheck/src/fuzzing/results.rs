//! A stream of results, which another machine may have written.

use std::path::Path;

use memcheck_core::judgement::location::Roots;

use crate::presentation::presenters::every;
use crate::presentation::results::{self, MergedRun};

/// Presents the results of a run in every form, alone and as a shard.
pub fn results(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let read = || results::parse(Path::new("/r"), &text, false);
    let Ok(mut run) = read() else { return };
    run.relocate(Roots::new(Path::new("/w"), None));
    let whole = MergedRun::from(run);
    let texts = every::present_all(|notify| results::replay(whole, notify));
    for (name, text) in texts {
        if let Ok(text) = text {
            check(name, &text);
        }
    }
    let _ = read().map(|run| results::merge(vec![run]));
}

/// A report must be valid in its own format, whatever the results contain.
pub(super) fn check(name: &str, text: &[u8]) {
    if every::BINARY.contains(&name) {
        return;
    }
    let text = std::str::from_utf8(text).unwrap_or_else(|error| panic!("{name}: {error}"));
    if name == "json" {
        for line in text.lines() {
            let line: Result<serde_json::Value, _> = serde_json::from_str(line);
            line.unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}
