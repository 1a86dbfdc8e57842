//! The bar of the running tests: its phase, its counts, its clock, and the test that runs.

use std::fmt::Write;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressState, ProgressStyle};

use crate::presentation::presenters::cut::cut;

/// Columns of the bar itself.
const BAR: usize = 10;
/// Columns of `[0:05, about 0:12 left]`, with minutes of two digits.
const CLOCKS: usize = 26;

/// A hidden bar. Its prefix is the phase, such as `running on cpu`.
pub(super) fn bar() -> ProgressBar {
    let template =
        format!("{{prefix}} {{pos}}/{{len}} tests {{bar:{BAR}}} [{{clocks}}]  {{wide_msg}}");
    let style = ProgressStyle::with_template(&template)
        .expect("the template is valid")
        .progress_chars("\u{2588}\u{2593}\u{2591}")
        .with_key("clocks", |state: &ProgressState, to: &mut dyn Write| {
            let _ = to.write_str(&clocks(state.elapsed(), state.pos(), state.eta()));
        });
    let bar = ProgressBar::hidden();
    bar.set_style(style);
    bar
}

/// The columns that are left for the message.
pub(super) fn room(bar: &ProgressBar, columns: usize) -> usize {
    let width = console::measure_text_width;
    let counts = format!(" {0}/{0} tests ", bar.length().unwrap_or(0));
    columns.saturating_sub(width(&bar.prefix()) + counts.len() + BAR + 1 + CLOCKS)
}

/// The time since the start and, once a test has ended, a guess of the time that is left.
fn clocks(elapsed: Duration, done: u64, left: Duration) -> String {
    let shown = |time: Duration| format!("{}:{:02}", time.as_secs() / 60, time.as_secs() % 60);
    match done > 0 && left.as_secs() > 0 {
        true => format!("{}, about {} left", shown(elapsed), shown(left)),
        false => shown(elapsed),
    }
}

/// The text behind the bar.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunningMessage<'a> {
    pub(super) failed: usize,
    /// A running test, and how far it is.
    pub(super) first: Option<(&'a str, &'a str)>,
    /// Further running tests.
    pub(super) others: usize,
}

impl RunningMessage<'_> {
    /// `1 failed  llama::kv_cache  iteration 3/12  1.00 MiB live  (+2)`. Without room the message loses
    /// the modules of the test, then its progress, and then the end of the name.
    pub(super) fn fitted(&self, room: Option<usize>) -> String {
        let failed = (self.failed > 0).then(|| format!("{} failed", self.failed));
        let others = (self.others > 0).then(|| format!("(+{})", self.others));
        let (test, at) = self.first.unwrap_or_default();
        let short = test.rsplit_once("::").map(|(_, name)| format!("\u{2026}{name}"));
        let short = short.as_deref().unwrap_or(test);
        let with = |test: &str, at: &str| {
            let parts = [failed.as_deref(), Some(test), Some(at), others.as_deref()].into_iter();
            let parts: Vec<&str> = parts.flatten().filter(|part| !part.is_empty()).collect();
            parts.join("  ")
        };
        let Some(room) = room else { return with(test, at) };
        let mut texts = [with(test, at), with(short, at), with(short, "")].into_iter();
        let fits = |text: &String| console::measure_text_width(text) <= room;
        texts.find(fits).unwrap_or_else(|| cut(&with(short, ""), room))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_that_is_left_is_shown_only_if_it_is_known_and_not_zero() {
        let clocks =
            |done, left| clocks(Duration::from_secs(65), done, Duration::from_millis(left));
        assert_eq!(clocks(0, 9_000), "1:05", "no test has ended");
        assert_eq!(clocks(1, 900), "1:05", "less than a second");
        assert_eq!(clocks(1, 12_000), "1:05, about 0:12 left");
        assert!(clocks(1, 3_599_000).len() + 4 <= CLOCKS);
    }

    #[test]
    fn a_message_is_shortened_at_the_boundaries_of_its_parts() {
        let first = Some(("app::llama::kv_cache", "iteration 3/12  1.00 MiB live"));
        let message = RunningMessage { failed: 1, first, others: 2 };
        let at = |room| message.fitted(room);
        let whole = "1 failed  app::llama::kv_cache  iteration 3/12  1.00 MiB live  (+2)";
        assert_eq!(at(None), whole);
        assert_eq!(at(Some(whole.len())), whole);
        let without_modules = "1 failed  \u{2026}kv_cache  iteration 3/12  1.00 MiB live  (+2)";
        assert_eq!(at(Some(whole.len() - 1)), without_modules);
        assert_eq!(at(Some(40)), "1 failed  \u{2026}kv_cache  (+2)");
        assert_eq!(at(Some(20)), "1 failed  \u{2026}kv_cache\u{2026}");
        assert_eq!(RunningMessage { failed: 0, first: None, others: 0 }.fitted(Some(9)), "");
    }

    #[test]
    fn the_bar_names_its_phase_and_leaves_room_for_the_message() {
        let bar = bar();
        bar.set_length(12);
        bar.set_prefix("running on cpu");
        assert_eq!(room(&bar, 80), 80 - "running on cpu 12/12 tests ".len() - BAR - 1 - CLOCKS);
        assert_eq!(room(&bar, 10), 0);
    }
}
