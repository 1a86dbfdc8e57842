//! Shows the progress of a build as a bar, or in a log as a line from time to time. Only cargo's
//! own bar has the number of remaining crates, so cargo draws it into a pipe, which is parsed here.

use std::fmt::{self, Display, Formatter, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressState, ProgressStyle};

use super::repeated::{COMPILING, Shown};
use crate::invocation::values::Verbosity;
use crate::system::escape;
use crate::system::printing::{eprint_line, print_above};

// Cargo requires a width with `always`. A wide bar has room for the names of crates.
pub(super) const ARGUMENTS: [&str; 4] =
    ["--config", "term.progress.when='always'", "--config", "term.progress.width=240"];
/// Time that cargo has to find that everything is built already. After it the build is announced.
const PATIENCE: Duration = Duration::from_secs(1);
const SIGN_OF_LIFE: Duration = Duration::from_secs(30);
/// Printed with `--verbose` only, because the bar and the last line convey the same.
const STATUS: [&str; 9] = [
    COMPILING,
    "Fresh",
    "Dirty",
    "Finished",
    "Executable",
    "Downloaded",
    "Adding",
    "Running",
    "Building",
];
/// These matter only while cargo waits or downloads.
const BLOCKING: &str = "Blocking";
const PASSING: [&str; 4] = [BLOCKING, "Updating", "Locking", "Downloading"];
// Cargo aligns its words to the right in this number of columns.
const STATUS_WIDTH: usize = 12;

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

#[derive(Debug)]
struct BuildState {
    announced: bool,
    position: Option<Position>,
    /// Without the crates that cargo found fresh.
    compiled: u64,
    latest: Instant,
    /// The first C function that the linker did not find.
    undefined: Option<String>,
    warnings: Shown,
}

#[derive(Debug)]
pub(super) struct Meter {
    /// `the tests for sim:h200 (leg 1 of 2)`.
    subject: String,
    verbosity: Verbosity,
    started: Instant,
    bar: ProgressBar,
    state: Mutex<BuildState>,
}

impl Meter {
    /// Shows nothing until it is clear that something is built.
    pub(super) fn new(subject: &str, verbosity: Verbosity, warnings: Shown) -> Self {
        let bar = ProgressBar::hidden()
            .with_prefix(subject.to_owned())
            .with_finish(ProgressFinish::AndClear);
        let style =
            ProgressStyle::with_template("{spinner} building {prefix} [{clock}] {wide_msg}")
                .expect("the template is valid");
        bar.set_style(style.with_key("clock", |state: &ProgressState, to: &mut dyn Write| {
            let seconds = state.elapsed().as_secs();
            let _ = write!(to, "{}:{:02}", seconds / 60, seconds % 60);
        }));
        let started = Instant::now();
        let state = BuildState {
            announced: false,
            position: None,
            compiled: 0,
            latest: started,
            undefined: None,
            warnings,
        };
        let (subject, state) = (subject.to_owned(), Mutex::new(state));
        Self { subject, verbosity, started, bar, state }
    }

    fn state(&self) -> MutexGuard<'_, BuildState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn line(&self, line: &str) {
        let plain = console::strip_ansi_codes(line);
        let status = status(line, &STATUS);
        if status == Some(COMPILING) {
            let mut state = self.state();
            state.warnings.read(&plain);
            self.announce(&mut state);
        }
        if let Some(function) = undefined(line) {
            self.state().undefined.get_or_insert_with(|| function.to_owned());
        }
        let is_repeated =
            self.verbosity != Verbosity::Verbose && self.state().warnings.is_repeated(&plain);
        if is_shown(line, self.verbosity) && !is_repeated {
            eprint_line!("{}", escape::colors(line));
        }
    }

    pub(super) fn redrawn(&self, text: &str) {
        if let Some((position, crates)) = position(text) {
            self.state().position = Some(position);
            self.bar.set_message(escape::line(&format!("{position}: {crates}")));
        }
    }

    pub(super) fn undefined(&self) -> Option<String> {
        self.state().undefined.clone()
    }

    pub(super) fn compiled(&self) {
        self.state().compiled += 1;
    }

    /// The caller must call this regularly.
    pub(super) fn tick(&self) {
        let mut state = self.state();
        if self.started.elapsed() > PATIENCE {
            self.announce(&mut state);
        }
        if self.bar.is_hidden() && state.announced && state.latest.elapsed() > SIGN_OF_LIFE {
            state.latest = Instant::now();
            let position = state.position.map(|position| format!("{position} "));
            let position = position.unwrap_or_default();
            eprint_line!("building {}: {position}after {}", self.subject, self.elapsed());
        }
    }

    fn announce(&self, state: &mut BuildState) {
        let quiet = self.verbosity == Verbosity::Quiet;
        if quiet || std::mem::replace(&mut state.announced, true) {
            return;
        }
        // The bar hides itself if stderr is not a terminal.
        self.bar.set_draw_target(ProgressDrawTarget::stderr());
        if self.bar.is_hidden() {
            eprint_line!("building {}…", self.subject);
        } else {
            print_above(&self.bar);
            self.bar.enable_steady_tick(Duration::from_millis(120));
        }
    }

    pub(super) fn finish(&self, ok: bool) {
        self.bar.finish_and_clear();
        let state = self.state();
        if ok && state.announced && state.compiled > 0 {
            let plural = if state.compiled == 1 { "" } else { "s" };
            eprint_line!(
                "built {}: {} crate{plural} in {}",
                self.subject,
                state.compiled,
                self.elapsed()
            );
        }
    }

    fn elapsed(&self) -> humantime::FormattedDuration {
        humantime::format_duration(Duration::from_secs(self.started.elapsed().as_secs()))
    }
}

fn is_shown(line: &str, verbosity: Verbosity) -> bool {
    match verbosity {
        // A wait can be minutes, so its reason is shown all the same.
        Verbosity::Quiet => {
            status(line, &STATUS).is_none()
                && status(line, &PASSING).is_none_or(|it| it == BLOCKING)
        }
        Verbosity::Normal => status(line, &STATUS).is_none(),
        Verbosity::Verbose => true,
    }
}

fn status(line: &str, words: &[&'static str]) -> Option<&'static str> {
    let plain = console::strip_ansi_codes(line);
    let (word, rest) = plain.split_at_checked(STATUS_WIDTH)?;
    let word = word.trim_start();
    words.iter().find(|status| **status == word && rest.starts_with(' ')).copied()
}

/// Parses a line of the linker about a function that no object or library defines. Mangled names
/// are those of Rust and C++.
fn undefined(line: &str) -> Option<&str> {
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    // lld's message, and both forms of that of GNU's linkers.
    let markers = ["undefined symbol: ", "undefined reference to `", "undefined reference to '"];
    let rest = markers.iter().find_map(|marker| Some(line.split_once(marker)?.1))?;
    let name = rest.split(|letter| !is_word(letter)).next()?;
    let is_plain = !name.is_empty() && !["_R", "_Z"].iter().any(|start| name.starts_with(start));
    is_plain.then_some(name)
}

/// Parses `   Building [====>     ] 23/120: candle-core, gemm(build)` into the position and the
/// crates.
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
    fn a_function_that_the_linker_misses_is_read_from_its_message() {
        for (line, expected) in [
            ("  = note: rust-lld: error: undefined symbol: launch_add", Some("launch_add")),
            ("app.rs:(.text+0x8): undefined reference to `launch_add'", Some("launch_add")),
            ("rust-lld: error: undefined symbol: _RNvC3app3add", None),
            ("rust-lld: error: undefined symbol: ", None),
            ("   Compiling app v0.1.0", None),
        ] {
            assert_eq!(undefined(line), expected, "{line}");
        }
    }

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
            // The output of a build script, as part of an error.
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
        assert!(is_shown(blocked, Verbosity::Quiet));
        let updating = "    Updating the index";
        assert!(!is_shown(updating, Verbosity::Quiet) && is_shown(updating, Verbosity::Normal));
    }
}
