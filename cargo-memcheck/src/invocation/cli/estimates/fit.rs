//! The arguments of `fit`.

use clap::Arg;
use memcheck_core::capacity::Capacity;

use super::one::{MarginFlag, OneTestFlags};

/// Default of `--to`.
const HIGHEST: &str = "1048576";

/// `cargo memcheck fit`.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(override_usage = "cargo memcheck fit [OPTIONS] TEST --param NAME [-- LIBTEST-ARGS]")]
#[command(mut_args(replace_help))]
pub(crate) struct FitArgs {
    #[command(flatten)]
    pub(crate) search: SearchFlags,
    #[command(flatten)]
    pub(crate) test: OneTestFlags,
}

/// Flags of the search.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Search")]
pub(crate) struct SearchFlags {
    /// Case of the test whose largest value is searched for: `batch` of `cases(batch = [1, 8])`.
    #[arg(long, value_name = "NAME")]
    pub(crate) param: String,
    /// Value of another case of the test (may be repeated).
    #[arg(long, value_name = "NAME=VALUE", value_parser = case)]
    pub(crate) case: Vec<(String, String)>,
    /// Smallest value to try.
    #[arg(long, value_name = "N", default_value = "1", value_parser = at_least_one)]
    pub(crate) from: u64,
    /// Largest value to try.
    #[arg(long, value_name = "N", default_value = HIGHEST, value_parser = at_least_one)]
    pub(crate) to: u64,
    #[command(flatten)]
    pub(crate) margin: MarginFlag,
    /// Maximum capacity of each device: a size ("24 GiB") or a card ("rtx4090").
    #[arg(long, value_name = "CAPACITY")]
    pub(crate) fits: Option<Capacity>,
}

fn at_least_one(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) => Err("0 is not a value to try: write 1 or more".to_owned()),
        Ok(value) => Ok(value),
        Err(_) => Err(format!("write a whole number from 1 to {}", u64::MAX)),
    }
}

fn case(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE, such as dtype=f16")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// Replaces the help of flags that have another meaning in `run`.
fn replace_help(argument: Arg) -> Arg {
    match argument.get_id().as_str() {
        "filters" => argument
            .value_name("TEST")
            .help("Path of the test without its case, or a part that no other path has"),
        "device" => argument.help(
            "Device to search on: sim, sim:CARD, cuda or cuda:N (may be repeated, for a row each)",
        ),
        _ => argument,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::{EstimatesCommand, FitArgs};
    use crate::invocation::cli::{Cli, Command};

    fn read(flags: &str) -> Result<FitArgs, String> {
        let line = format!("x fit a {flags}");
        match Cli::try_parse_from(line.split_whitespace()) {
            Ok(Cli { command: Command::Estimates(EstimatesCommand::Fit(args)) }) => Ok(args),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn a_search_needs_a_parameter_and_refuses_zero() {
        let args = read("--param batch --case dtype=f16").unwrap();
        assert_eq!((args.search.from, args.search.to), (1, 1 << 20));
        assert_eq!(args.search.case, [("dtype".to_owned(), "f16".to_owned())]);
        for (flags, expected) in [
            ("", "--param <NAME>"),
            ("--param batch --from 0", "0 is not a value to try"),
            ("--param batch --to 0", "0 is not a value to try"),
            ("--param batch --to 99999999999999999999", "from 1 to 18446744073709551615"),
            ("--param batch --from -1", "'-1'"),
            ("--param batch --from 1.5", "from 1 to"),
            ("--param batch --margin 99999999999TiB", "is not a tolerance"),
            ("--param batch --fits 99999999999TiB", "99999999999TiB"),
            ("--param batch --case dtype", "NAME=VALUE"),
            ("--param batch --margin much", "is not a tolerance"),
            ("--param batch --max-growth 1", "--max-growth"),
        ] {
            let error = read(flags).unwrap_err();
            assert!(error.contains(expected), "{flags}: {error}");
        }
    }
}
