//! The command on a system that memcheck does not measure. It builds the memory tests and runs them
//! as ordinary tests, so that a build that runs it does not break. Everything that needs figures is
//! refused with one error.

#[path = "../commands/explain.rs"]
mod explain;
mod run;

use std::env::consts::OS;
use std::ffi::OsString;

use memcheck_core::wire::exit;

use crate::invocation::cli::{self, Cli, Command};
use crate::system::error::{CommandError, Failure};
use crate::system::panics;
use crate::system::printing::{self, eprint_line};

/// A request that only Linux can answer.
#[derive(Debug, thiserror::Error)]
enum NotHere {
    #[error("`cargo memcheck {0}` is not available on {system}", system = OS)]
    Subcommand(String),
    #[error("the device `{0}` is not available on {system}", system = OS)]
    Device(String),
}

impl CommandError for NotHere {
    fn exit_code(&self) -> u8 {
        match self {
            Self::Subcommand(_) => exit::INTERNAL,
            Self::Device(_) => exit::NO_DEVICE,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(
            "memcheck measures on Linux (x86-64 or aarch64), also in a container and without a \
             GPU; here, `cargo memcheck` runs the memory tests as ordinary tests"
                .to_owned(),
        )
    }
}

/// Runs the command with these arguments, and returns its exit code.
pub(crate) fn main(args: Vec<OsString>) -> u8 {
    panics::listen();
    let result = panics::caught(|| command(args)).unwrap_or_else(|panicked| Err(panicked.into()));
    let code = result.unwrap_or_else(|failure| {
        eprint_line!("error: {}", failure.message());
        if let Some(hint) = failure.hint() {
            eprint_line!("hint: {hint}");
        }
        failure.exit_code()
    });
    printing::exit_code(code)
}

fn command(args: Vec<OsString>) -> Result<u8, Failure> {
    let stated = cli::stated(args.clone());
    let cli = match Cli::read(args) {
        Ok(cli) => cli,
        Err(error) => {
            let stream = if error.use_stderr() { "stderr" } else { "stdout" };
            printing::printed(stream, error.print());
            return Ok(if error.use_stderr() { exit::USAGE } else { exit::OK });
        }
    };
    match &cli.command {
        Command::Run(args) => run::run(args, &stated.flags),
        Command::Explain { code } => explain::explain(code.as_deref()),
        _ => Err(NotHere::Subcommand(stated.subcommand).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(line: &str) -> u8 {
        main(line.split_whitespace().map(OsString::from).collect())
    }

    #[test]
    fn what_needs_figures_is_refused() {
        assert_eq!(code("x memcheck explain leak"), exit::OK);
        assert_eq!(code("x memcheck explain leek"), exit::USAGE);
        assert_eq!(code("x memcheck --nonsense"), exit::USAGE);
        assert_eq!(code("x memcheck report"), exit::INTERNAL);
        assert_eq!(code("x memcheck --device sim"), exit::NO_DEVICE);
        assert_eq!(code("x memcheck --device cpu,cuda:1"), exit::NO_DEVICE);
    }
}
