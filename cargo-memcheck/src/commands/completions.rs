//! `cargo memcheck completions SHELL`: prints the completions of a shell on stdout.

use memcheck_core::wire::exit;

use crate::invocation::cli;
use crate::system::error::Failure;
use crate::system::printing::print_raw;

pub(super) fn completions(shell: clap_complete::Shell) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut cli::command(), "cargo-memcheck", &mut script);
    print_raw(&String::from_utf8_lossy(&script));
    Ok(exit::OK)
}
