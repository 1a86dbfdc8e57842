//! One file per subcommand. Each answers with an exit code, or with why it
//! could not do its work.

mod accept;
mod completions;
mod doctor;
mod explain;
mod list;
mod planted;
mod prune;
mod reject;
mod review;
mod run;

use std::ffi::OsString;
use std::io::Write;

use memcheck_core::exit;

use crate::cli::{self, Cli, Command, FormatFlag, OutputFlags};
use crate::error::Failure;
use crate::present::{self, json, style};

/// Reads the command line and does what it says.
pub(crate) fn main(args: Vec<OsString>) -> u8 {
    let json = cli::asked_for_json(&args);
    let cli = match Cli::read(args) {
        Ok(cli) => cli,
        Err(error) => return refused(&error, json),
    };
    let (output, result) = match &cli.command {
        Command::Run(args) => (Some(&args.output), begin(&args.output, || run::run(args))),
        Command::List(args) => (Some(&args.output), begin(&args.output, || list::list(args))),
        Command::Accept(args) => (None, begin(&args.output, || accept::accept(args))),
        Command::Reject(args) => (None, begin(&args.output, || reject::reject(args))),
        Command::Review(args) => (None, begin(&args.output, || review::review(args))),
        Command::Prune(args) => (None, begin(&args.output, || prune::prune(args))),
        Command::Doctor(args) => (None, begin(&args.output, || doctor::doctor(args))),
        Command::Explain { code } => (None, explain::explain(code.as_deref())),
        Command::Completions { shell } => (None, completions::completions(*shell)),
    };
    result.unwrap_or_else(|failure| {
        present::failure(&failure);
        if output.is_some_and(|output| output.message_format == FormatFlag::Json) {
            json::failure(&failure);
        }
        failure.exit_code()
    })
}

fn begin(
    output: &OutputFlags,
    command: impl FnOnce() -> Result<u8, Failure>,
) -> Result<u8, Failure> {
    style::choose(output.color);
    command()
}

/// What clap says: help on stdout, errors on stderr.
fn refused(error: &clap::Error, json: bool) -> u8 {
    let _ = error.print();
    if !error.use_stderr() {
        return exit::OK;
    }
    if json {
        let message = error.render().to_string();
        json::failed(exit::USAGE, message.lines().next().unwrap_or_default().to_owned(), None);
    }
    exit::USAGE
}

/// Prints a result on stdout. A reader that has gone is no error of ours.
fn print(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}
