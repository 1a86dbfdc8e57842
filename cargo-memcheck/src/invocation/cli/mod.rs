//! The command line as the user typed it. The module `options` resolves its meaning.
//!
//! Cargo starts the command with `memcheck` as the first argument, and the alias of this workspace
//! starts it without. Both forms are accepted. A command line that does not start with a subcommand
//! is one of `run`.

#[cfg(feature = "archives")]
mod archive;
mod bench;
#[cfg(feature = "comparison")]
mod comparison;
#[cfg(feature = "estimates")]
mod estimates;
mod init;
mod launch;
mod levels;
mod libtest;
mod limits;
mod mistyped;
mod output;
mod profile;
mod report;
mod run;
mod select;
mod snapshots;
mod workspace;

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::OnceLock;

use clap::{CommandFactory, Parser, Subcommand};

#[cfg(feature = "archives")]
pub(crate) use archive::ArchiveArgs;
pub(crate) use bench::BenchArgs;
#[cfg(feature = "comparison")]
pub(crate) use comparison::{
    BisectArgs, BisectStepArgs, CompareArgs, ComparisonCommand, HistoryArgs,
};
#[cfg(feature = "estimates")]
pub(crate) use estimates::{EstimateArgs, EstimatesCommand, FitArgs, OneTestFlags, PlanArgs};
pub(crate) use init::InitArgs;
pub(crate) use launch::LaunchFlags;
pub(crate) use levels::LevelFlags;
pub(crate) use libtest::{LibtestArgs, LibtestError};
pub(crate) use limits::LimitFlags;
pub(crate) use output::{AnnotationsFlag, FormFlags, OutputFlags};
pub(crate) use profile::ProfileArgs;
pub(crate) use report::ReportArgs;
pub(crate) use run::{DoctorArgs, EnvArgs, ListArgs, ReportFlags, RunArgs, ScheduleFlags};
pub(crate) use select::{BaselineFlags, CiFlags, PartFlags, SelectFlags};
pub(crate) use snapshots::{PruneArgs, SnapshotArgs};
pub(crate) use workspace::WorkspaceFlags;

use super::features::left_out;
use super::printed::PrintedCommand;
use super::values::{ReportFile, with_opened};
use mistyped::mistyped_subcommand;

const AFTER_HELP: &str = "\
`cargo memcheck [FILTERS]… [OPTIONS]` is the same as `cargo memcheck run …`.
Exit codes: 0 all tests passed, 1 unexpected error, 2 usage error, 4 no tests, 5 denied
bookkeeping finding, 70 panic, 96 invalid configuration, 100 measured failure, 101 build failed,
102 cargo metadata failed, 104 not measured, 105 device not available, 110 report or output not
written, 130 interrupted.";

/// Memory regression tests for Rust transformers, exact to the byte.
#[derive(Debug, Parser)]
#[command(
    name = "cargo-memcheck",
    bin_name = "cargo memcheck",
    version,
    override_usage = "cargo memcheck [COMMAND] [OPTIONS]",
    after_help = AFTER_HELP,
    max_term_width = 100,
    disable_help_subcommand = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the memory tests (also without a subcommand: `cargo memcheck`).
    Run(RunArgs),
    /// List the memory tests, with --verbose also their limits and the sources of these.
    List(ListArgs),
    /// Profile a test or a program: operations, holders of the peak, growth.
    Profile(ProfileArgs),
    /// Run the benches of the packages on a device, so that criterion can measure bytes.
    Bench(BenchArgs),
    #[cfg(feature = "estimates")]
    #[command(flatten)]
    Estimates(EstimatesCommand),
    #[cfg(feature = "archives")]
    /// Pack the test executables, with the files that they need on another machine.
    Archive(ArchiveArgs),
    /// Print the results of a run again, or join the results of its shards.
    Report(ReportArgs),
    #[cfg(feature = "comparison")]
    #[command(flatten)]
    Comparison(ComparisonCommand),
    /// Make pending snapshots the baselines.
    Accept(SnapshotArgs),
    /// Discard pending snapshots.
    Reject(SnapshotArgs),
    /// Review the pending snapshots one by one.
    Review(SnapshotArgs),
    /// Remove baselines that belong to no test.
    Prune(PruneArgs),
    /// Explain a finding or a cause by its code, or list all codes.
    Explain {
        /// Code of a finding or of a cause, such as `leak` or `graph-kept`.
        code: Option<String>,
    },
    /// Add the dependency, a first memory test and a CI workflow to a package.
    Init(InitArgs),
    /// Check the toolchain and the devices, and find a planted leak on each device.
    Doctor(DoctorArgs),
    /// Print the environment of builds for the simulated device, for clippy and editors.
    Env(EnvArgs),
    /// Print the JSON schema of the stream of results.
    Schema,
    /// Print the completions of a shell.
    Completions {
        /// Shell to print completions for.
        shell: clap_complete::Shell,
    },
    /// Print the candidates for the last word of a command line.
    #[command(hide = true)]
    Complete {
        /// Shell whose form the lines have.
        #[arg(long)]
        shell: clap_complete::Shell,
        /// Words of the command line.
        #[arg(last = true)]
        words: Vec<OsString>,
    },
}

impl Cli {
    /// Parses the command line. `args` must start with the name of the program.
    pub(crate) fn read(args: Vec<OsString>) -> Result<Self, clap::Error> {
        let args = with_subcommand(args)?;
        let reports = requested_reports(&args);
        let parsed = Self::try_parse_from(args)?;
        match overwritten(&reports) {
            Some(path) => Err(two_reports(path)),
            None => Ok(parsed),
        }
    }
}

/// What a command line states, for a system on which not every flag has its meaning.
#[cfg(any(test, not(all(target_os = "linux", not(memcheck_portable)))))]
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Stated {
    pub(crate) subcommand: String,
    /// The long names of the flags that are not cargo's.
    pub(crate) flags: Vec<String>,
}

/// Nothing if clap refuses the command line.
#[cfg(any(test, not(all(target_os = "linux", not(memcheck_portable)))))]
pub(crate) fn stated(args: Vec<OsString>) -> Stated {
    use clap::parser::ValueSource::CommandLine;
    let parsed = with_subcommand(args).map(|args| Cli::command().try_get_matches_from(args));
    let Ok(Ok(matches)) = parsed else { return Stated::default() };
    let Some((name, matches)) = matches.subcommand() else { return Stated::default() };
    let command = Cli::command();
    let arguments = command.find_subcommand(name).into_iter().flat_map(|it| it.get_arguments());
    let of_user = arguments
        .filter(|argument| matches.value_source(argument.get_id().as_str()) == Some(CommandLine))
        .filter(|argument| argument.get_help_heading() != Some("Cargo options"));
    let flags = of_user.filter_map(|argument| argument.get_long().map(str::to_owned)).collect();
    Stated { subcommand: name.to_owned(), flags }
}

/// Returns the clap command, for completions.
pub(crate) fn command() -> clap::Command {
    Cli::command()
}

/// True if a command line asks for JSON. This must also work for command lines that clap refuses.
pub(crate) fn asked_for_json(args: &[OsString]) -> bool {
    let typed = || args.iter().take_while(|arg| *arg != "--");
    typed().any(|arg| arg == "--message-format=json")
        || typed()
            .zip(typed().skip(1))
            .any(|(flag, value)| flag == "--message-format" && value == "json")
}

/// The reports that a command line asks for. This must also work for command lines that clap
/// refuses.
pub(crate) fn requested_reports(args: &[OsString]) -> Vec<ReportFile> {
    let mut reports = Vec::new();
    let own = || args.iter().take_while(|arg| *arg != "--");
    let mut words = own().map(|arg| arg.to_string_lossy());
    while let Some(arg) = words.next() {
        let value = match arg.strip_prefix("--report=") {
            Some(value) => value.into(),
            None if arg == "--report" => words.next().unwrap_or_default(),
            None => continue,
        };
        reports.extend(value.parse::<ReportFile>());
    }
    with_opened(reports, own().any(|arg| arg == "--open"))
}

/// The path of the first report that a later one would overwrite. Devices, such as `/dev/stdout`, can
/// have several.
fn overwritten(reports: &[ReportFile]) -> Option<&Path> {
    let paths = reports.iter().map(|report| report.path.as_path());
    let is_first = |(at, path): &(usize, &Path)| {
        !path.starts_with("/dev") && reports[at + 1..].iter().any(|later| later.path == *path)
    };
    paths.enumerate().find(is_first).map(|(_, path)| path)
}

fn two_reports(path: &Path) -> clap::Error {
    command().error(
        clap::error::ErrorKind::ArgumentConflict,
        format!("two reports have the path `{}`: give each a path of its own", path.display()),
    )
}

/// Removes cargo's `memcheck`, and inserts `run` if the command line has no subcommand.
///
/// # Errors
/// If the first word is a mistyped subcommand. As a filter it would run other tests than those that
/// the user expects, after a build of minutes.
fn with_subcommand(args: Vec<OsString>) -> Result<Vec<OsString>, clap::Error> {
    let mut args = args.into_iter();
    let program = args.next().unwrap_or_else(|| "cargo-memcheck".into());
    let mut rest: Vec<OsString> = args.collect();
    if rest.first().is_some_and(|arg| arg == "memcheck") {
        rest.remove(0);
    }
    if !rest.first().is_some_and(|first| is_complete(first)) {
        let word = rest.first().and_then(|first| first.to_str());
        if let Some((word, part)) = word.and_then(|word| Some((word, left_out(word)?))) {
            let message = part.refusal(&format!("the subcommand `{word}`"));
            return Err(command().error(clap::error::ErrorKind::InvalidSubcommand, message));
        }
        if let Some(word) = rest.first().and_then(|first| first.to_str())
            && let Some(meant) = mistyped_subcommand(word)
        {
            return Err(unrecognized(word, meant));
        }
        rest.insert(0, "run".into());
    }
    rest.insert(0, program);
    Ok(rest)
}

fn unrecognized(word: &str, meant: &str) -> clap::Error {
    let message = format!(
        "unrecognized subcommand '{word}': did you mean {}?\n\nhint: as a filter, write {}",
        PrintedCommand::Subcommand.quoted([meant]),
        PrintedCommand::RunFilter.quoted([word]),
    );
    command().error(clap::error::ErrorKind::InvalidSubcommand, message)
}

fn is_complete(first: &OsStr) -> bool {
    let own = ["-h", "--help", "-V", "--version"];
    let Some(first) = first.to_str() else { return false };
    own.contains(&first) || Cli::command().find_subcommand(first).is_some()
}

pub(crate) fn is_subcommand(word: &str) -> bool {
    subcommands().contains(&word)
}

/// The names and aliases of the subcommands that the help lists.
pub(crate) fn subcommands() -> &'static [&'static str] {
    static NAMES: OnceLock<Vec<&'static str>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let command = Cli::command();
        let listed = command.get_subcommands().filter(|command| !command.is_hide_set());
        let names = listed.flat_map(|command| {
            let name = std::iter::once(command.get_name());
            name.chain(command.get_visible_aliases()).map(str::to_owned).collect::<Vec<_>>()
        });
        names.map(|name| &*name.leak()).collect()
    })
}

/// The error of the command's own parser, if it does not accept a printed command.
#[cfg(test)]
pub(crate) fn refusal(command: &str) -> Option<String> {
    let Some(words) = shlex::split(command) else { return Some(format!("{command}: quotes")) };
    let Some(words) = words.strip_prefix(&["cargo".to_owned()]) else {
        return Some(format!("{command}: not a command of cargo"));
    };
    let words = std::iter::once("cargo-memcheck").chain(words.iter().map(String::as_str));
    let parsed = Cli::read(words.map(Into::into).collect());
    use clap::error::ErrorKind::{DisplayHelp, DisplayVersion};
    let error = parsed.err().filter(|it| ![DisplayHelp, DisplayVersion].contains(&it.kind()))?;
    Some(format!("{command}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn the_clap_command_is_valid() {
        Cli::command().debug_assert();
    }

    /// A field below flattened flags gets their heading.
    #[test]
    fn only_flags_of_cargo_are_listed_as_those() {
        use clap::Args;
        let of_cargo =
            crate::invocation::values::CargoOptions::augment_args(clap::Command::new("x"));
        // `profile --bench` names one of cargo's targets too.
        let is_of_cargo =
            |id: &clap::Id| *id == "bench" || of_cargo.get_arguments().any(|it| it.get_id() == id);
        for command in Cli::command().get_subcommands() {
            let listed = command.get_arguments();
            let listed = listed.filter(|it| !it.is_hide_set() && !it.is_positional());
            let listed = listed.filter(|it| it.get_help_heading() == Some("Cargo options"));
            let own: Vec<_> = listed.map(clap::Arg::get_id).filter(|id| !is_of_cargo(id)).collect();
            assert!(own.is_empty(), "{}: {own:?}", command.get_name());
        }
    }

    #[test]
    fn a_soak_and_a_repetition_exclude_each_other() {
        let run = Cli::try_parse_from(["x", "run", "--soak", "1s", "--repeat", "2"]);
        assert_eq!(run.unwrap_err().kind(), clap::error::ErrorKind::ArgumentConflict);
    }

    #[test]
    fn cargo_and_the_alias_mean_the_same() {
        for line in ["x memcheck run a", "x run a", "x memcheck a", "x a"] {
            assert_eq!(with_subcommand(words(line)).unwrap(), words("x run a"), "{line}");
        }
        assert_eq!(with_subcommand(words("x memcheck")).unwrap(), words("x run"));
        assert_eq!(with_subcommand(words("x -p app")).unwrap(), words("x run -p app"));
        assert_eq!(with_subcommand(words("x memcheck --help")).unwrap(), words("x --help"));
        assert_eq!(with_subcommand(words("x memcheck list")).unwrap(), words("x list"));
    }

    #[test]
    fn a_mistyped_subcommand_is_a_usage_error() {
        for line in ["x memcheck profle a", "x lsit"] {
            let error = Cli::read(words(line)).unwrap_err();
            assert_eq!(error.kind(), clap::error::ErrorKind::InvalidSubcommand, "{line}");
            assert!(error.to_string().contains("did you mean `cargo memcheck "), "{error}");
        }
        // A hidden subcommand is recognized, but no word is a typo of it.
        assert_eq!(with_subcommand(words("x bisect-step a")).unwrap(), words("x bisect-step a"));
        assert_eq!(with_subcommand(words("x bisect-stp")).unwrap(), words("x run bisect-stp"));
        assert!(!subcommands().contains(&"bisect-step") && subcommands().contains(&"bisect"));
        let run = ["x run profle", "x -q profle", "x memcheck bert"];
        assert!(run.iter().all(|line| Cli::read(words(line)).is_ok()));
    }

    #[test]
    fn the_flags_that_a_user_states_are_known() {
        let run = stated(words("x memcheck a --ci -p app --release --device cpu -- --nocapture"));
        assert_eq!((run.subcommand.as_str(), run.flags.join(" ")), ("run", "device ci".to_owned()));
        assert_eq!(stated(words("x report --color never")).flags, ["color"]);
        assert_eq!(stated(words("x --nonsense")), Stated::default());
    }

    #[test]
    fn json_is_recognized_before_clap_has_understood_the_rest() {
        assert!(asked_for_json(&words("x run --message-format json --nonsense")));
        assert!(asked_for_json(&words("x --message-format=json")));
        assert!(!asked_for_json(&words("x --message-format human -- --message-format=json")));
    }

    #[test]
    fn reports_are_recognized_before_clap_has_understood_the_rest() {
        let paths = |line: &str| -> Vec<_> {
            requested_reports(&words(line)).into_iter().map(|report| report.path).collect()
        };
        let line = "x run --report junit=a --nonsense --report=json=b=c --report pdf=d --report";
        assert_eq!(paths(line), ["a", "b=c"].map(std::path::PathBuf::from));
        assert!(paths("x -- --report junit=a").is_empty());
    }

    #[test]
    fn two_reports_with_one_path_are_a_usage_error() {
        let error = |line| Cli::read(words(line)).err().map(|error| error.to_string());
        let twice = error("x run --report junit=a --report json=a").expect("an error");
        assert!(twice.contains("two reports have the path `a`"), "{twice}");
        assert_eq!(error("x run --report junit=a --report json=b"), None);
        assert_eq!(error("x run --report junit=/dev/null --report json=/dev/null"), None);
    }

    #[test]
    fn every_flag_of_every_subcommand_has_a_help_of_one_sentence() {
        for command in Cli::command().get_subcommands() {
            assert!(command.get_about().is_some(), "{} says nothing", command.get_name());
            for argument in command.get_arguments() {
                let name = format!("{} {}", command.get_name(), argument.get_id());
                let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
                assert!(!help.is_empty(), "{name} has no help");
                assert!(!help.contains('\n'), "{name}: {help}");
                assert!(help.chars().next().unwrap().is_uppercase(), "{name}: {help}");
            }
        }
    }

    #[test]
    fn env_has_no_verbosity_flags() {
        assert!(Cli::read(words("x env --message-format json --color never")).is_ok());
        for flag in ["--quiet", "--verbose"] {
            assert!(Cli::read(words(&format!("x env {flag}"))).is_err(), "{flag}");
        }
    }
}
