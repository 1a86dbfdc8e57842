//! Printing: results go to stdout, all other text goes to stderr. Every text for people passes
//! through [`escape::terminal`], because it can contain text of a test.

use std::fmt;
use std::io::{self, Write};

use super::escape;

macro_rules! eprint_line {
    ($($text:tt)*) => { $crate::system::printing::eprint(format_args!($($text)*)) };
}
pub(crate) use eprint_line;

macro_rules! print_line {
    ($($text:tt)*) => { $crate::system::printing::print(&format!("{}\n", format_args!($($text)*))) };
}
pub(crate) use print_line;

/// Prints a result for people. It is not an error if the reader has closed stdout.
pub(crate) fn print(text: &str) {
    let _ = write(&mut anstream::stdout().lock(), &escape::terminal(text));
}

/// Prints text of this command for programs: a script, or JSON that is escaped already.
pub(crate) fn print_raw(text: &str) {
    let _ = write(&mut io::stdout().lock(), text);
}

pub(crate) fn eprint(line: fmt::Arguments<'_>) {
    let _ = write(&mut anstream::stderr().lock(), &escape::terminal(&format!("{line}\n")));
}

/// A line end inside a line would be a second line, which a name must not be able to begin.
pub(crate) fn eprint_lines(lines: &[String]) {
    let _ = write(&mut anstream::stderr().lock(), &lines_for_people(lines));
}

pub(crate) fn print_lines(lines: &[String]) {
    let _ = write(&mut anstream::stdout().lock(), &lines_for_people(lines));
}

pub(crate) fn lines_for_people(lines: &[String]) -> String {
    lines.iter().map(|line| escape::terminal(&line.replace('\n', "\\n")) + "\n").collect()
}

/// Without a change of the text, for lines that programs read.
pub(crate) fn eprint_raw(line: &str) {
    let _ = write(&mut io::stderr().lock(), &format!("{line}\n"));
}

fn write(to: &mut impl Write, text: &str) -> io::Result<()> {
    to.write_all(text.as_bytes()).and_then(|()| to.flush())
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
