//! The arguments of `profile`.

use clap::Arg;

use super::launch::LaunchFlags;
use super::{LimitFlags, OutputFlags, ReportFlags, SelectFlags};
use crate::invocation::values::{CargoOptions, ProfileLayout, RunIgnored, UnpackOptions};

const USAGE: &str = "\
cargo memcheck profile [OPTIONS] TEST [-- LIBTEST-ARGS]
       cargo memcheck profile [OPTIONS] --bin NAME | --example NAME | --bench NAME [-- ARGS]";

/// `cargo memcheck profile`.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(override_usage = USAGE)]
#[command(mut_args(replace_help))]
pub(crate) struct ProfileArgs {
    #[command(flatten)]
    pub(crate) table: ProfileLayout,
    /// Show live bytes, their rate and the largest call sites while the test or program runs.
    ///
    /// If stderr is not a terminal, or with --no-capture, it prints one line per second.
    #[arg(long, help_heading = "Table")]
    pub(crate) live: bool,
    /// Profile this bench instead of a test.
    #[arg(long, value_name = "NAME", help_heading = "Cargo options")]
    pub(crate) bench: Vec<String>,
    #[command(flatten)]
    pub(crate) select: SelectFlags,
    #[command(flatten)]
    pub(crate) launch: LaunchFlags,
    #[command(flatten)]
    pub(crate) archive: UnpackOptions,
    #[command(flatten)]
    pub(crate) limits: LimitFlags,
    #[command(flatten)]
    pub(crate) report: ReportFlags,
    #[command(flatten)]
    pub(crate) output: OutputFlags,
    #[command(flatten)]
    pub(crate) cargo: CargoOptions,
    /// Arguments for the test harness, or for the program.
    #[arg(last = true, value_name = "ARGS")]
    pub(crate) arguments: Vec<String>,
}

/// Replaces the help of flags that have another meaning in `run`. The arguments are changed in
/// place, because to remove and add an argument would change the order of the positional arguments.
fn replace_help(argument: Arg) -> Arg {
    match argument.get_id().as_str() {
        "filters" => {
            argument.value_name("TEST").help("Path of the test, or a part that no other path has")
        }
        "no_capture" => {
            argument.help("Show the output of the test while it runs (that of a program always is)")
        }
        "bin" => argument.help("Profile this binary instead of a test"),
        "example" => argument.help("Profile this example instead of a test"),
        _ => argument,
    }
}

impl ProfileArgs {
    /// The first flag that has no meaning for a program.
    pub(crate) fn for_tests_only(&self) -> Option<String> {
        // Destructured, so that a new flag cannot be forgotten.
        let SelectFlags {
            filters: _,
            exact,
            run_ignored,
            device: _,
            config_file: _,
            library_path: _,
        } = &self.select;
        let typed = [("--exact", *exact), ("--run-ignored", *run_ignored != RunIgnored::Default)];
        let limits = self.limits.layer();
        let kept: Vec<_> = limits.clone().for_program().names().collect();
        let limit = limits.names().find(|name| !kept.contains(name));
        let flag = typed.into_iter().find_map(|(flag, typed)| typed.then(|| flag.to_owned()));
        flag.or_else(|| {
            limit.map(|name| match name {
                "max_peak" => "--max-peak FACTOR x TEST".to_owned(),
                name => format!("--{}", name.replace('_', "-")),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::{Cli, Command};

    fn for_tests_only(flags: &str) -> Option<String> {
        let line = format!("x profile --bin tool {flags}");
        let cli = Cli::try_parse_from(line.split_whitespace()).unwrap();
        match cli.command {
            Command::Profile(args) => args.for_tests_only(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn profile_has_no_flags_about_baselines() {
        for flags in ["--ci", "--no-ci", "-D improved", "-W improved", "-A improved"] {
            let line = format!("x profile a {flags}");
            assert!(Cli::try_parse_from(line.split_whitespace()).is_err(), "{flags}");
        }
    }

    #[test]
    fn an_unknown_column_or_row_has_the_known_ones() {
        for (flags, text) in [
            ("--sort size", "calls, bytes, peak, surviving"),
            ("--by line", "op, site, scope"),
            ("--partition hash:1/2", "unexpected argument '--partition'"),
        ] {
            let line = format!("x profile a {flags}");
            let error = Cli::try_parse_from(line.split_whitespace()).unwrap_err().to_string();
            assert!(error.contains(text), "{flags}: {error}");
        }
    }

    #[test]
    fn flags_of_tests_are_refused_for_programs() {
        for flag in ["--iterations 3", "--warmup 1", "--tolerance 1%", "--max-allocations 9"] {
            assert_eq!(for_tests_only(flag).as_deref(), flag.split(' ').next(), "{flag}");
        }
        for flag in ["--max-growth 1", "--max-reserved-growth 1", "--run-ignored all", "--exact"] {
            assert_eq!(for_tests_only(flag).as_deref(), flag.split(' ').next(), "{flag}");
        }
        let line = ["x", "profile", "--bin", "tool", "--max-peak", "0.6 x a"];
        let Command::Profile(args) = Cli::try_parse_from(line).unwrap().command else { panic!() };
        assert_eq!(args.for_tests_only().as_deref(), Some("--max-peak FACTOR x TEST"));
        let limits = "--max-peak 1 --max-retained 1 --fits rtx4090 --timeout 5s";
        assert_eq!(for_tests_only(limits), None);
        assert_eq!(for_tests_only("--device cpu --config-file a"), None);
    }
}
