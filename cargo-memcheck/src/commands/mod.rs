//! One file for each subcommand. Each returns an exit code, or a failure.

mod accept;
mod again;
#[cfg(feature = "archives")]
mod archive;
mod bench;
#[cfg(feature = "comparison")]
mod comparison;
mod completions;
mod doctor;
mod earlier_output;
mod env;
#[cfg(feature = "estimates")]
mod estimates;
mod explain;
mod init;
mod list;
mod one;
mod planted;
mod profile;
mod prologue;
mod prune;
mod reject;
mod report;
mod review;
mod run;
mod schema;

use std::ffi::OsString;

use memcheck_core::wire::exit;

use crate::build::toolchain::nvcc;
use crate::invocation::cli::{self, Cli, Command, FormFlags, RunArgs};
use crate::invocation::options::check_environment;
use crate::invocation::values::{Format, ReportFile};
use crate::presentation::presenters::{self, json, reports, style};
use crate::presentation::tally::Tally;
use crate::system::error::{Failure, Reported};
use crate::system::panics;
use crate::system::printing::{self, eprint_line};
use crate::system::process::{self, INTERRUPTED, Interrupt};

/// A panic and lost output cannot end as a success, whichever command it was.
pub(crate) fn main(args: Vec<OsString>) -> u8 {
    panics::listen();
    // Without handlers a signal would leave the temporary folders, and the stream without its last
    // line.
    if let Err(error) = process::handle_signals().and_then(|()| Interrupt::listen()) {
        eprint_line!("{} signals cannot be handled: {error}", style::warning("warning:"));
    }
    let mut exit_code = match panics::caught(|| command(args)) {
        Ok(exit_code) => exit_code,
        Err(panicked) => plain(Err(panicked.into())),
    };
    // A thread that was not waited for can have panicked.
    if let Some(panicked) = panics::first()
        && exit_code != exit::PANIC
    {
        exit_code = plain(Err(panicked.into()));
    }
    if let Some(lost) = printing::lost() {
        plain(Err(lost.into()));
    }
    Interrupt::wait_for_end();
    printing::exit_code(exit_code)
}

fn command(args: Vec<OsString>) -> u8 {
    if args.get(1).is_some_and(|word| word == nvcc::SUBCOMMAND) {
        return nvcc::main(args.into_iter().skip(2).collect());
    }
    let json = cli::asked_for_json(&args);
    let requested = cli::requested_reports(&args);
    let cli = match Cli::read(args) {
        Ok(cli) => cli,
        Err(error) => return print_clap_error(&error, json, &requested),
    };
    reports::begin(&requested, None);
    if let Err(error) = check_environment() {
        if let Command::Run(args) = &cli.command {
            earlier_output::discard_without_session(args);
        }
        return ended(&error.into(), json, &requested);
    }
    let from_command = |form: &FormFlags, command: &dyn Fn() -> Result<u8, Failure>| {
        run_command(form, FinalLine::FromCommand, &requested, command)
    };
    let from_main = |form: &FormFlags, command: &dyn Fn() -> Result<u8, Failure>| {
        run_command(form, FinalLine::FromMain, &requested, command)
    };
    match &cli.command {
        Command::Run(args) => from_command(&args.output.form, &|| again::run(args)),
        Command::Profile(args) => from_command(&args.output.form, &|| profile::profile(args)),
        Command::Bench(args) => {
            style::choose(args.color);
            plain(bench::bench(args))
        }
        Command::Report(args) => from_command(&args.output.form, &|| report::report(args)),
        #[cfg(feature = "estimates")]
        Command::Estimates(command) => from_main(command.form(), &|| estimates::run(command)),
        #[cfg(feature = "comparison")]
        Command::Comparison(command) => match command.form() {
            Some(form) => from_main(form, &|| comparison::run(command)),
            None => plain(comparison::run(command)),
        },
        #[cfg(feature = "archives")]
        Command::Archive(args) => from_main(&args.output.form, &|| archive::archive(args)),
        Command::List(args) => from_command(&args.output.form, &|| list::list(args)),
        Command::Accept(args) => from_main(&args.output.form, &|| accept::accept(args)),
        Command::Reject(args) => from_main(&args.output.form, &|| reject::reject(args)),
        Command::Review(args) => from_main(&args.output.form, &|| review::review(args)),
        Command::Prune(args) => from_main(&args.output.form, &|| prune::prune(args)),
        Command::Doctor(args) => from_main(&args.output.form, &|| doctor::doctor(args)),
        Command::Env(args) => from_main(&args.form, &|| env::env(args)),
        Command::Explain { code } => plain(explain::explain(code.as_deref())),
        Command::Init(args) => plain(init::init(args)),
        Command::Schema => plain(schema::schema()),
        Command::Completions { shell } => plain(completions::completions(*shell)),
        Command::Complete { shell, words } => plain(completions::candidates(*shell, words)),
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
    requested: &[ReportFile],
    command: &dyn Fn() -> Result<u8, Failure>,
) -> u8 {
    style::choose(form.color);
    let json = form.message_format == Format::Json;
    if json {
        Interrupt::set_last_line(json::late);
    }
    let result = panics::caught(command).unwrap_or_else(|panicked| Err(panicked.into()));
    match result {
        Ok(code) => {
            let is_late = summary == FinalLine::FromMain && Interrupt::has_come();
            let code = printing::exit_code(if is_late { INTERRUPTED } else { code });
            if json && summary == FinalLine::FromMain {
                json::done(code);
            }
            code
        }
        // A command that ends because of a signal has not failed.
        Err(failure) if Interrupt::has_come() && failure.exit_code() != exit::PANIC => {
            eprint_line!("{}", style::warning("interrupted"));
            let tally = Tally { interrupted: true, ..Tally::default() };
            reports::without_tests(requested, &tally, INTERRUPTED);
            if json {
                let message = "interrupted".to_owned();
                json::failed(Reported { exit_code: INTERRUPTED, message, hint: None });
            }
            INTERRUPTED
        }
        Err(failure) => ended(&failure, json, requested),
    }
}

fn ended(failure: &Failure, json: bool, requested: &[ReportFile]) -> u8 {
    presenters::failure(failure);
    let tally = Tally { failure: Some(failure.into()), ..Tally::default() };
    let exit_code = reports::without_tests(requested, &tally, failure.exit_code());
    if json {
        json::failure(failure);
    }
    exit_code
}

fn plain(result: Result<u8, Failure>) -> u8 {
    result.unwrap_or_else(|failure| {
        presenters::failure(&failure);
        failure.exit_code()
    })
}

/// Help goes to stdout, errors to stderr.
fn print_clap_error(error: &clap::Error, json: bool, requested: &[ReportFile]) -> u8 {
    if error.use_stderr() {
        earlier_output::discard_without_session(&RunArgs::default());
    }
    let stream = if error.use_stderr() { "stderr" } else { "stdout" };
    printing::printed(stream, error.print());
    if !error.use_stderr() {
        return exit::OK;
    }
    let message = error.render().to_string();
    let message = message.lines().next().unwrap_or_default().to_owned();
    let failure = Reported { exit_code: exit::USAGE, message, hint: None };
    let tally = Tally { failure: Some(failure.clone()), ..Tally::default() };
    reports::without_tests(requested, &tally, exit::USAGE);
    if json {
        json::failed(failure);
    }
    exit::USAGE
}
