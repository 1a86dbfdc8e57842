//! One file for each subcommand. Each returns an exit code, or a failure.

mod accept;
mod archive;
mod bench;
mod completions;
mod doctor;
mod env;
mod estimate;
mod explain;
mod fit;
mod list;
mod one;
mod pending;
mod plan;
mod planted;
mod profile;
mod prologue;
mod prune;
mod reject;
mod report;
mod review;
mod run;

use std::ffi::OsString;

use memcheck_core::wire::exit;

use crate::invocation::cli::{self, Cli, Command, FormFlags};
use crate::invocation::options::environment_is_text;
use crate::invocation::values::Format;
use crate::presentation::presenters::{self, json, style};
use crate::system::error::{Failure, Reported};
use crate::system::printing::eprint_line;
use crate::system::process::{INTERRUPTED, Interrupt};

pub(crate) fn main(args: Vec<OsString>) -> u8 {
    // Without handlers a signal would leave the temporary folders, and the stream without its last line.
    if let Err(error) = Interrupt::listen() {
        eprint_line!("{} signals cannot be handled: {error}", style::warning("warning:"));
    }
    let code = run_subcommand(args);
    Interrupt::wait_for_end();
    code
}

fn run_subcommand(args: Vec<OsString>) -> u8 {
    let json = cli::asked_for_json(&args);
    let cli = match Cli::read(args) {
        Ok(cli) => cli,
        Err(error) => return print_clap_error(&error, json),
    };
    if let Err(error) = environment_is_text() {
        let failure = Failure::from(error);
        presenters::failure(&failure);
        if json {
            json::failure(&failure);
        }
        return failure.exit_code();
    }
    match &cli.command {
        Command::Run(args) => {
            run_command(&args.output.form, FinalLine::FromCommand, || run::run(args))
        }
        Command::Profile(args) => {
            run_command(&args.output.form, FinalLine::FromCommand, || profile::profile(args))
        }
        Command::Bench(args) => {
            style::choose(args.color);
            plain(bench::bench(args))
        }
        Command::Fit(args) => {
            run_command(&args.test.output.form, FinalLine::FromMain, || fit::fit(args))
        }
        Command::Plan(args) => {
            run_command(&args.test.output.form, FinalLine::FromMain, || plan::plan(args))
        }
        Command::Report(args) => {
            run_command(&args.output.form, FinalLine::FromCommand, || report::report(args))
        }
        Command::Archive(args) => {
            run_command(&args.output.form, FinalLine::FromMain, || archive::archive(args))
        }
        Command::Estimate(args) => {
            run_command(&args.output.form, FinalLine::FromMain, || estimate::estimate(args))
        }
        Command::List(args) => {
            run_command(&args.output.form, FinalLine::FromCommand, || list::list(args))
        }
        Command::Accept(args) => {
            run_command(&args.output.form, FinalLine::FromMain, || accept::accept(args))
        }
        Command::Reject(args) => {
            run_command(&args.output.form, FinalLine::FromMain, || reject::reject(args))
        }
        Command::Review(args) => {
            run_command(&args.output.form, FinalLine::FromMain, || review::review(args))
        }
        Command::Prune(args) => {
            run_command(&args.output.form, FinalLine::FromMain, || prune::prune(args))
        }
        Command::Doctor(args) => {
            run_command(&args.output.form, FinalLine::FromMain, || doctor::doctor(args))
        }
        Command::Env(args) => run_command(&args.form, FinalLine::FromMain, || env::env(args)),
        Command::Explain { code } => plain(explain::explain(code.as_deref())),
        Command::Completions { shell } => plain(completions::completions(*shell)),
    }
}

/// Which side writes the last line of the JSON stream if a command succeeds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FinalLine {
    FromCommand,
    FromMain,
}

/// Completes the JSON stream however the command ends.
fn run_command(
    form: &FormFlags,
    summary: FinalLine,
    command: impl FnOnce() -> Result<u8, Failure>,
) -> u8 {
    style::choose(form.color);
    let json = form.message_format == Format::Json;
    if json {
        Interrupt::set_last_line(json::late);
    }
    match command() {
        Ok(code) => {
            let is_late = summary == FinalLine::FromMain && Interrupt::has_come();
            let code = if is_late { INTERRUPTED } else { code };
            if json && summary == FinalLine::FromMain {
                json::done(code);
            }
            code
        }
        // A command that ends because of a signal has not failed.
        Err(_) if Interrupt::has_come() => {
            eprint_line!("{}", style::warning("interrupted"));
            if json {
                let message = "interrupted".to_owned();
                json::failed(Reported { exit_code: INTERRUPTED, message, hint: None });
            }
            INTERRUPTED
        }
        Err(failure) => {
            presenters::failure(&failure);
            if json {
                json::failure(&failure);
            }
            failure.exit_code()
        }
    }
}

fn plain(result: Result<u8, Failure>) -> u8 {
    result.unwrap_or_else(|failure| {
        presenters::failure(&failure);
        failure.exit_code()
    })
}

/// Help goes to stdout, errors to stderr.
fn print_clap_error(error: &clap::Error, json: bool) -> u8 {
    let _ = error.print();
    if !error.use_stderr() {
        return exit::OK;
    }
    if json {
        let message = error.render().to_string();
        let message = message.lines().next().unwrap_or_default().to_owned();
        json::failed(Reported { exit_code: exit::USAGE, message, hint: None });
    }
    exit::USAGE
}
