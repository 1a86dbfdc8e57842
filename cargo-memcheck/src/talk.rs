//! Results go to stdout, and talk goes to stderr.

use std::io::Write;

/// Prints a line for people, on stderr, with colours where it shows them.
macro_rules! say {
    ($($text:tt)*) => { anstream::eprintln!($($text)*) };
}
pub(crate) use say;

/// Prints a result on stdout, with colours where it shows them. A reader that has
/// gone is no error of ours.
pub(crate) fn print(text: &str) {
    let mut stdout = anstream::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}
