//! The bar of the running tests: its phase, its counts, its clock, and the test that runs.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressState, ProgressStyle};

use memcheck_core::limits::Limits;
use memcheck_core::measurement::soak;
use memcheck_core::runs::plan::Stage;
use memcheck_core::size::Size;
use memcheck_core::wire::protocol::{Progress, SoakTime};

use crate::presentation::presenters::cut::cut;

/// Columns of the bar itself.
const BAR: usize = 10;
/// Columns of `[0:05, about 0:12 left]`, with minutes of two digits.
const CLOCKS: usize = 26;

/// A hidden bar. Its prefix is the phase, such as `running on cpu`. While `is_extended`, it does not
/// guess the time that is left: a test that is followed for more iterations takes longer than others.
pub(super) fn bar(is_extended: Arc<AtomicBool>) -> ProgressBar {
    let template =
        format!("{{prefix}} {{pos}}/{{len}} tests {{bar:{BAR}}} [{{clocks}}]  {{wide_msg}}");
    let style = ProgressStyle::with_template(&template)
        .expect("the template is valid")
        .progress_chars("\u{2588}\u{2593}\u{2591}")
        .with_key("clocks", move |state: &ProgressState, to: &mut dyn Write| {
            let left = (!is_extended.load(Ordering::Relaxed)).then(|| state.eta());
            let _ = to.write_str(&clocks(state.elapsed(), state.pos(), left));
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
fn clocks(elapsed: Duration, done: u64, left: Option<Duration>) -> String {
    let shown = |time: Duration| format!("{}:{:02}", time.as_secs() / 60, time.as_secs() % 60);
    match left.filter(|left| done > 0 && left.as_secs() > 0) {
        Some(left) => format!("{}, about {} left", shown(elapsed), shown(left)),
        None => shown(elapsed),
    }
}

/// How far a running test is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RunningTest {
    /// `iteration 3/12  1.00 MiB live`, in a further run after what the run is for.
    at: String,
    /// `3/12`, in a further run `lines 3/12`.
    short: String,
    /// It goes on after its own iterations, until its growth is decided.
    pub(super) is_extended: bool,
}

impl RunningTest {
    pub(super) fn new(stage: Stage, progress: &Progress, limits: &Limits) -> Self {
        let Progress { iteration, of, live, soak, view: _ } = progress;
        // Between iterations a program without a leak mostly holds nothing, which says nothing.
        let live = if *live > 0 { format!("  {} live", Size(*live)) } else { String::new() };
        let own = limits.warmup.value.saturating_add(limits.iterations.value);
        let (at, short) = match soak {
            Some(SoakTime { elapsed, asked }) => {
                let time = |seconds: u64| soak::shown(seconds.saturating_mul(1_000));
                let time = format!("{} of {}", time(*elapsed), time(*asked));
                (format!("iteration {iteration}  {time}{live}"), time)
            }
            None => (format!("iteration {iteration}/{of}{live}"), format!("{iteration}/{of}")),
        };
        let (purpose, word) = purpose(stage).unwrap_or_default();
        let is_extended = *iteration > own;
        Self { at: format!("{purpose}{at}"), short: format!("{word}{short}"), is_extended }
    }
}

/// What a further run of a test is for, in a sentence and in a word; `None` for the first, and for a
/// soak, which has its time. The iterations of a further run begin at zero again.
fn purpose(stage: Stage) -> Option<(&'static str, &'static str)> {
    match stage {
        Stage::First | Stage::Soak(_) => None,
        Stage::Repeat | Stage::Compare => Some(("measured again: ", "again ")),
        Stage::Extend | Stage::Decide => Some(("does it grow? ", "growth ")),
        Stage::Explain => Some(("finding the lines: ", "lines ")),
        Stage::Sweep => Some(("refusing allocations: ", "refusing ")),
    }
}

/// A shorter part of a name does not identify a test.
const LEAST_NAME: usize = 8;

/// The text behind the bar.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunningMessage<'a> {
    pub(super) failed: usize,
    /// A running test, and how far it is.
    pub(super) first: Option<(&'a str, &'a RunningTest)>,
    /// Further running tests.
    pub(super) others: usize,
}

impl RunningMessage<'_> {
    /// `1 failed  llama::kv_cache  iteration 3/12  1.00 MiB live  and 2 more`. Without room the message
    /// loses the modules of the test, then all of its progress but the iteration, then the number of the
    /// other tests, then the end of the name, and the iteration last.
    pub(super) fn fitted(&self, room: Option<usize>) -> String {
        let failed = (self.failed > 0).then(|| format!("{} failed", self.failed));
        let others = (self.others > 0).then(|| format!("and {} more", self.others));
        let none = RunningTest::default();
        let (test, RunningTest { at, short: iteration, .. }) = self.first.unwrap_or(("", &none));
        let short = test.rsplit_once("::").map(|(_, name)| format!("\u{2026}{name}"));
        let short = short.as_deref().unwrap_or(test);
        let with_all = |test: &str, at: &str, others: Option<&str>| {
            let parts = [failed.as_deref(), Some(test), Some(at), others].into_iter();
            let parts: Vec<&str> = parts.flatten().filter(|part| !part.is_empty()).collect();
            parts.join("  ")
        };
        let whole = |test, at| with_all(test, at, others.as_deref());
        let with = |test: &str, at: &str| with_all(test, at, None);
        let Some(room) = room else { return whole(test, at) };
        let width = console::measure_text_width;
        let texts = [whole(test, at), whole(short, at), whole(short, iteration)];
        let mut texts = texts.into_iter().chain([with(short, iteration)]);
        if let Some(fitting) = texts.find(|text| width(text) <= room) {
            return fitting;
        }
        // The parts around the name, with its separators.
        let name = width(short);
        let left = room.saturating_sub(width(&with(short, iteration)) - name);
        match left >= LEAST_NAME.min(name) {
            true => with(&cut(short, left), iteration),
            false => cut(&with(short, ""), room),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_that_is_left_is_shown_only_if_it_is_known_and_not_zero() {
        let clocks =
            |done, left| clocks(Duration::from_secs(65), done, Some(Duration::from_millis(left)));
        assert_eq!(clocks(0, 9_000), "1:05", "no test has ended");
        assert_eq!(clocks(1, 900), "1:05", "less than a second");
        assert_eq!(clocks(1, 12_000), "1:05, about 0:12 left");
        assert!(clocks(1, 3_599_000).len() + 4 <= CLOCKS);
        assert_eq!(super::clocks(Duration::from_secs(65), 1, None), "1:05", "a test is extended");
    }

    #[test]
    fn a_test_is_extended_after_its_own_iterations() {
        let limits = crate::discovery::task::example::task().limits;
        let own = limits.warmup.value + limits.iterations.value;
        let at = |iteration| {
            let progress = Progress { iteration, of: 67, live: 1 << 20, ..Progress::default() };
            RunningTest::new(Stage::First, &progress, &limits)
        };
        assert_eq!(at(3).at, "iteration 3/67  1.00 MiB live");
        assert_eq!((at(own).is_extended, at(own + 1).is_extended), (false, true));
    }

    #[test]
    fn a_further_run_says_what_it_is_for() {
        let limits = crate::discovery::task::example::task().limits;
        let progress = Progress { iteration: 3, of: 12, live: 1 << 20, ..Progress::default() };
        let of = |stage| RunningTest::new(stage, &progress, &limits);
        let shown = |stage| (of(stage).at, of(stage).short);
        let at = "iteration 3/12  1.00 MiB live";
        assert_eq!(shown(Stage::First), (at.to_owned(), "3/12".to_owned()));
        let nothing = Progress { live: 0, ..progress.clone() };
        assert_eq!(RunningTest::new(Stage::First, &nothing, &limits).at, "iteration 3/12");
        let explains = (format!("finding the lines: {at}"), "lines 3/12".to_owned());
        assert_eq!(shown(Stage::Explain), explains);
        for stage in &Stage::ALL {
            assert!(shown(*stage).1.ends_with(" 3/12"), "{stage:?}");
        }
    }

    #[test]
    fn a_message_is_shortened_at_the_boundaries_of_its_parts() {
        let at = RunningTest {
            at: "iteration 3/12  1.00 MiB live".to_owned(),
            short: "3/12".to_owned(),
            is_extended: false,
        };
        let first = Some(("app::llama::kv_cache", &at));
        let message = RunningMessage { failed: 1, first, others: 2 };
        let at = |room| message.fitted(room);
        let whole = "1 failed  app::llama::kv_cache  iteration 3/12  1.00 MiB live  and 2 more";
        assert_eq!(at(None), whole);
        assert_eq!(at(Some(whole.len())), whole);
        let without_modules =
            "1 failed  \u{2026}kv_cache  iteration 3/12  1.00 MiB live  and 2 more";
        assert_eq!(at(Some(whole.len() - 1)), without_modules);
        assert_eq!(at(Some(40)), "1 failed  \u{2026}kv_cache  3/12  and 2 more");
        // The room beside the bar in a terminal of 80 columns.
        assert_eq!(
            RunningMessage { failed: 0, ..message }.fitted(Some(22)),
            "\u{2026}kv_cache  3/12"
        );
        assert_eq!(at(Some(20)), "1 failed  \u{2026}kv_cache");
        assert_eq!(RunningMessage { failed: 0, first: None, others: 0 }.fitted(Some(9)), "");
    }

    #[test]
    fn the_bar_names_its_phase_and_leaves_room_for_the_message() {
        let bar = bar(Arc::default());
        bar.set_length(12);
        bar.set_prefix("running on cpu");
        assert_eq!(room(&bar, 80), 80 - "running on cpu 12/12 tests ".len() - BAR - 1 - CLOCKS);
        assert_eq!(room(&bar, 10), 0);
    }
}
