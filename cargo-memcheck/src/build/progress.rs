//! The progress of a build, for people: a bar on a terminal, a line now and
//! then in a log. Cargo's warnings and errors are printed in between.
//!
//! Cargo counts what is left in its own progress bar only, so it is asked to
//! draw that bar, and the bar is read.

use std::fmt::{self, Display, Formatter, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressState, ProgressStyle};

use crate::options::Verbosity;
use crate::talk::say;

/// What cargo is told so that it draws its bar into a pipe.
pub(super) const ARGUMENTS: [&str; 4] =
    ["--config", "term.progress.when='always'", "--config", "term.progress.width=240"];
/// How long cargo may take to find that there is nothing to build.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often a log gets a sign of life.
const SIGN_OF_LIFE: Duration = Duration::from_secs(30);
/// Lines of cargo that the bar and the last line stand for.
const STATUS: [&str; 9] = [
    "Compiling",
    "Fresh",
    "Dirty",
    "Finished",
    "Executable",
    "Downloaded",
    "Adding",
    "Running",
    "Building",
];
/// Others, which are of interest at the time only.
const PASSING: [&str; 4] = ["Blocking", "Updating", "Locking", "Downloading"];
/// The column that cargo aligns the words of its status to.
const STATUS_WIDTH: usize = 12;

/// How far a build is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Position {
    done: u64,
    of: u64,
}

impl Display for Position {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} crates left", self.of.saturating_sub(self.done), self.of)
    }
}

/// What is known of a build so far.
#[derive(Debug)]
struct State {
    /// Whether people were told that there is something to build.
    announced: bool,
    position: Option<Position>,
    /// Whether cargo printed more than its status: a warning, most often.
    spoke: bool,
    /// Crates that were compiled, not found fresh.
    compiled: u64,
    /// When a log got its last line.
    latest: Instant,
}

/// Shows the progress of one build.
#[derive(Debug)]
pub(super) struct Meter {
    /// `the tests for sim:h200 (leg 1 of 2)`.
    subject: String,
    verbosity: Verbosity,
    started: Instant,
    bar: ProgressBar,
    state: Mutex<State>,
}

impl Meter {
    /// A meter for a build of `subject`, which shows nothing until it is clear
    /// that something is built.
    pub(super) fn new(subject: &str, verbosity: Verbosity) -> Self {
        let bar = ProgressBar::hidden()
            .with_prefix(subject.to_owned())
            .with_finish(ProgressFinish::AndClear);
        let style =
            ProgressStyle::with_template("{spinner} building {prefix} [{clock}] {wide_msg}")
                .expect("the template is sound");
        bar.set_style(style.with_key("clock", |state: &ProgressState, to: &mut dyn Write| {
            let seconds = state.elapsed().as_secs();
            let _ = write!(to, "{}:{:02}", seconds / 60, seconds % 60);
        }));
        let started = Instant::now();
        let state =
            State { announced: false, position: None, spoke: false, compiled: 0, latest: started };
        let (subject, state) = (subject.to_owned(), Mutex::new(state));
        Self { subject, verbosity, started, bar, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a line that cargo printed.
    pub(super) fn line(&self, line: &str) {
        let status = status(line, &STATUS);
        if status == Some("Compiling") {
            self.announce(&mut self.state());
        }
        let is_passing = self::status(line, &PASSING).is_some();
        self.state().spoke |= status.is_none() && !is_passing;
        let is_shown = match self.verbosity {
            Verbosity::Quiet => status.is_none() && !is_passing,
            Verbosity::Normal => status.is_none(),
            Verbosity::Verbose => true,
        };
        if is_shown {
            // Above the bar, not through it.
            self.bar.suspend(|| say!("{line}"));
        }
    }

    /// Takes a state of cargo's own progress bar.
    pub(super) fn redrawn(&self, text: &str) {
        if let Some((position, crates)) = position(text) {
            self.state().position = Some(position);
            self.bar.set_message(format!("{position}: {crates}"));
        }
    }

    /// True if cargo printed what a reader must see in every run, such as warnings.
    pub(super) fn has_spoken(&self) -> bool {
        self.state().spoke
    }

    /// A crate was compiled.
    pub(super) fn compiled(&self) {
        self.state().compiled += 1;
    }

    /// Gives a sign of life where one is due; to be called now and then.
    pub(super) fn tick(&self) {
        let mut state = self.state();
        if self.started.elapsed() > PATIENCE {
            self.announce(&mut state);
        }
        if self.bar.is_hidden() && state.announced && state.latest.elapsed() > SIGN_OF_LIFE {
            state.latest = Instant::now();
            let position = state.position.map(|position| format!("{position} "));
            let position = position.unwrap_or_default();
            say!("building {}: {position}after {}", self.subject, self.elapsed());
        }
    }

    fn announce(&self, state: &mut State) {
        let quiet = self.verbosity == Verbosity::Quiet;
        if quiet || std::mem::replace(&mut state.announced, true) {
            return;
        }
        // Hidden by itself where stderr is not a terminal.
        self.bar.set_draw_target(ProgressDrawTarget::stderr());
        if self.bar.is_hidden() {
            say!("building {}…", self.subject);
        } else {
            self.bar.enable_steady_tick(Duration::from_millis(120));
        }
    }

    /// Takes the bar away, and reports what was built.
    pub(super) fn finish(&self, ok: bool) {
        self.bar.finish_and_clear();
        let state = self.state();
        if ok && state.announced && state.compiled > 0 {
            let plural = if state.compiled == 1 { "" } else { "s" };
            say!("built {}: {} crate{plural} in {}", self.subject, state.compiled, self.elapsed());
        }
    }

    /// The time since the build began, in whole seconds.
    fn elapsed(&self) -> humantime::FormattedDuration {
        humantime::format_duration(Duration::from_secs(self.started.elapsed().as_secs()))
    }
}

/// The word of `words` that cargo begins a status with, if it is one.
fn status(line: &str, words: &[&'static str]) -> Option<&'static str> {
    let plain = console::strip_ansi_codes(line);
    let (word, rest) = plain.split_at_checked(STATUS_WIDTH)?;
    let word = word.trim_start();
    words.iter().find(|status| **status == word && rest.starts_with(' ')).copied()
}

/// What `   Building [====>     ] 23/120: candle-core, gemm(build)` means: how far
/// it is, and which crates are in work.
fn position(text: &str) -> Option<(Position, String)> {
    let plain = console::strip_ansi_codes(text);
    let (_, rest) = plain.trim_start().strip_prefix("Building [")?.split_once("] ")?;
    let (counts, crates) = rest.split_once(':').unwrap_or((rest, ""));
    let (done, of) = counts.trim().split_once('/')?;
    let position = Position { done: done.parse().ok()?, of: of.parse().ok()? };
    Some((position, crates.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_of_cargo_is_understood() {
        let drawn = "\x1b[1m\x1b[96m    Building\x1b[0m [==>   ] 23/120: candle-core, p(build)  ";
        let (position, crates) = position(drawn).unwrap();
        assert_eq!(position.to_string(), "97 of 120 crates left");
        assert_eq!(crates, "candle-core, p(build)");
        let long = "    Building [=====> ] 1/2";
        assert_eq!(super::position(long).unwrap().0, Position { done: 1, of: 2 });
        for other in ["  Downloading [=> ] 1/2: x", "Building [=> ] x/2: y", "warning: [a] 1/2"] {
            assert_eq!(super::position(other), None, "{other}");
        }
    }

    #[test]
    fn only_the_status_of_cargo_is_left_out() {
        for shown in [
            "warning: unused variable: `x`",
            "    Blocking waiting for file lock on build directory",
            "    Updating the index",
            // The output of a build script, in its error.
            "     Compiling x v1.0.0",
            "Compiling",
            "   Compilingx y",
            "",
        ] {
            assert_eq!(status(shown, &STATUS), None, "{shown}");
        }
        let green = "\x1b[1m\x1b[92m   Compiling\x1b[0m p v0.1.0 (/p)";
        assert_eq!(status(green, &STATUS), Some("Compiling"));
        let finished = "    Finished `test` profile in 2.62s";
        assert_eq!(status(finished, &STATUS), Some("Finished"));
        let blocked = "    Blocking waiting for file lock on package cache";
        assert_eq!(status(blocked, &PASSING), Some("Blocking"));
    }
}
