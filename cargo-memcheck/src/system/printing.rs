//! Printing: results go to stdout, all other text goes to stderr. Every text for people passes
//! through [`escape::terminal`], because it can contain text of a test. An error is kept until the
//! command ends, because lost output must not be success. Only the end of a pipe's reader is not an
//! error: it needs no more output.

use std::fmt;
use std::io::{self, Write};
use std::sync::Mutex;

use indicatif::ProgressBar;
use memcheck_core::wire::exit;

use super::error::CommandError;
use super::escape;

macro_rules! eprint_line {
    ($($text:tt)*) => { $crate::system::printing::eprint(format_args!($($text)*)) };
}
pub(crate) use eprint_line;

macro_rules! print_line {
    ($($text:tt)*) => { $crate::system::printing::print(&format!("{}\n", format_args!($($text)*))) };
}
pub(crate) use print_line;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{stream} could not be written: {error}")]
pub(crate) struct LostOutput {
    stream: &'static str,
    error: String,
}

impl CommandError for LostOutput {
    fn exit_code(&self) -> u8 {
        exit::REPORT
    }

    fn hint(&self) -> Option<String> {
        Some("the output is incomplete: send it to a file or a terminal that accepts it".to_owned())
    }
}

/// The first error of a process.
#[derive(Debug)]
struct Losses(Mutex<Option<LostOutput>>);

static LOSSES: Losses = Losses(Mutex::new(None));

impl Losses {
    fn add(&self, stream: &'static str, written: io::Result<()>) {
        let Err(error) = written else { return };
        if error.kind() != io::ErrorKind::BrokenPipe {
            let mut first = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            first.get_or_insert_with(|| LostOutput { stream, error: error.to_string() });
        }
    }

    fn first(&self) -> Option<LostOutput> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }
}

/// Output that could not be written so far.
pub(crate) fn lost() -> Option<LostOutput> {
    LOSSES.first()
}

/// Code 110 instead of success if output was lost.
pub(crate) fn exit_code(code: u8) -> u8 {
    // Another code already shows that the run did not succeed.
    if code == exit::OK && lost().is_some() { exit::REPORT } else { code }
}

/// For output that another crate has printed.
pub(crate) fn printed(stream: &'static str, written: io::Result<()>) {
    LOSSES.add(stream, written);
}

/// The bar on the screen. Text that another part of the command prints beside it would leave a dead
/// copy of it behind, so that all text of this module moves it.
static BAR: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// From now on all printed text comes above this bar, and no longer above an earlier one.
pub(crate) fn print_above(bar: &ProgressBar) {
    *BAR.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(bar.clone());
}

fn above_bar(print: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    // The lock is free again while the text is printed, because a pipe can block.
    let bar = BAR.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone();
    match bar {
        Some(bar) => bar.suspend(print),
        None => print(),
    }
}

/// Prints a result for people. Colors are removed if stdout is not a terminal.
pub(crate) fn print(text: &str) {
    let text = escape::terminal(text);
    printed("stdout", write(|| anstream::stdout().lock(), text.as_bytes()));
}

/// Prints text of this command for programs: a script, or JSON that is escaped already.
pub(crate) fn print_raw(text: &str) {
    printed("stdout", write(|| io::stdout().lock(), text.as_bytes()));
}

pub(crate) fn eprint(line: fmt::Arguments<'_>) {
    let text = escape::terminal(&format!("{line}\n"));
    printed("stderr", write(|| anstream::stderr().lock(), text.as_bytes()));
}

/// A line end inside a line would be a second line, which a name must not be able to begin.
pub(crate) fn eprint_lines(lines: &[String]) {
    let text = lines_for_people(lines);
    printed("stderr", write(|| anstream::stderr().lock(), text.as_bytes()));
}

pub(crate) fn print_lines(lines: &[String]) {
    let text = lines_for_people(lines);
    printed("stdout", write(|| anstream::stdout().lock(), text.as_bytes()));
}

pub(crate) fn lines_for_people(lines: &[String]) -> String {
    lines.iter().map(|line| escape::terminal(&line.replace('\n', "\\n")) + "\n").collect()
}

/// Without a change of the text, for lines that programs read.
pub(crate) fn eprint_raw(line: &str) {
    printed("stderr", write(|| io::stderr().lock(), format!("{line}\n").as_bytes()));
}

/// The bar's own thread locks the bar and then stderr, so that both are locked in that order here.
fn write<W: Write>(lock: impl FnOnce() -> W, text: &[u8]) -> io::Result<()> {
    above_bar(|| {
        let mut to = lock();
        to.write_all(text).and_then(|()| to.flush())
    })
}

/// stdout as a writer without errors, because they are kept here.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stdout;

impl Write for Stdout {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        printed("stdout", above_bar(|| io::stdout().write_all(text)));
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        printed("stdout", io::stdout().flush());
        Ok(())
    }
}

/// While it exists, GitHub's runner ignores commands in the output of a process that writes to our
/// stderr itself.
#[derive(Debug)]
pub(crate) struct SuspendedCommands(String);

impl SuspendedCommands {
    /// `None` outside GitHub Actions, where the line would only be noise.
    pub(crate) fn begin() -> Option<Self> {
        (std::env::var("GITHUB_ACTIONS").as_deref() == Ok("true")).then(|| {
            let token = escape::token();
            eprint_raw(&format!("::stop-commands::{token}"));
            Self(token)
        })
    }
}

impl Drop for SuspendedCommands {
    fn drop(&mut self) {
        // The output may have ended without a line end.
        eprint_raw(&format!("\n::{}::", self.0));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use indicatif::{ProgressDrawTarget, TermLike};

    use super::*;

    #[test]
    fn only_the_end_of_the_reader_is_not_an_error() {
        let losses = Losses(Mutex::new(None));
        losses.add("stdout", Ok(()));
        losses.add("stdout", Err(io::ErrorKind::BrokenPipe.into()));
        assert_eq!(losses.first(), None);
        losses.add("stderr", Err(io::Error::from_raw_os_error(28)));
        losses.add("stdout", Err(io::ErrorKind::PermissionDenied.into()));
        let lost = losses.first().unwrap();
        assert_eq!(lost.exit_code(), exit::REPORT);
        assert!(lost.to_string().contains("stderr could not be written: No space left"), "{lost}");
    }

    #[test]
    fn a_full_device_refuses_every_write() {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let error = write(|| full, b"text").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }

    /// A terminal on stderr, as that of `console`, which shows nothing.
    #[derive(Debug)]
    struct Screen;

    impl TermLike for Screen {
        fn width(&self) -> u16 {
            80
        }
        fn move_cursor_up(&self, _lines: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _lines: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _columns: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _columns: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, _text: &str) -> io::Result<()> {
            Ok(())
        }
        fn write_str(&self, _text: &str) -> io::Result<()> {
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            io::stderr().lock().flush()
        }
    }

    #[test]
    fn text_and_a_bar_that_moves_by_itself_do_not_wait_for_each_other() {
        const OFTEN: usize = 20_000;
        let target = ProgressDrawTarget::term_like(Box::new(Screen));
        let bar = ProgressBar::with_draw_target(Some(1), target);
        print_above(&bar);
        let (done, ends) = mpsc::channel();
        let moved = done.clone();
        thread::spawn(move || {
            (0..OFTEN).for_each(|_| bar.tick());
            moved.send(())
        });
        thread::spawn(move || {
            (0..OFTEN).for_each(|_| eprint_lines(&[]));
            done.send(())
        });
        // Threads that wait for each other would never end. They need a second.
        for _ in 0..2 {
            ends.recv_timeout(Duration::from_secs(60)).expect("both threads end");
        }
        *BAR.lock().unwrap() = None;
    }
}
