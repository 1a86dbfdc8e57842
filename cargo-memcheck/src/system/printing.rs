//! Printing: results go to stdout, all other text goes to stderr.

use std::io::Write;

macro_rules! eprint_line {
    ($($text:tt)*) => { anstream::eprintln!($($text)*) };
}
pub(crate) use eprint_line;

/// It is not an error if the reader has closed stdout.
pub(crate) fn print(text: &str) {
    let mut stdout = anstream::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}
