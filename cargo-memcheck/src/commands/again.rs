//! `run` with what surrounds it: the choice of the tests that failed last (`--failed`), and a review of
//! the new figures (`--review`).

use super::{review, run};
use crate::build::workspace::Places;
use crate::invocation::cli::{RunArgs, SelectFlags, SnapshotArgs};
use crate::invocation::values::{Format, Verbosity};
use crate::presentation::results;
use crate::system::error::Failure;
use crate::system::printing::eprint_line;
use crate::system::process::INTERRUPTED;

pub(super) fn run(args: &RunArgs) -> Result<u8, Failure> {
    let code = run::run(&chosen(args))?;
    if args.review && code != INTERRUPTED {
        let mut output = args.output.clone();
        // The stream of JSON has ended with the summary of the run, which counts the pending snapshots.
        output.form.message_format = Format::Human;
        review::review(&SnapshotArgs {
            filters: args.select.filters.clone(),
            baselines: args.baselines.clone(),
            packages: args.cargo.packages.clone(),
            manifest_path: args.cargo.manifest_path.clone(),
            output,
            ..SnapshotArgs::default()
        })?;
    }
    Ok(code)
}

/// The tests that failed last, instead of the filters that select them. All tests if none has failed,
/// as with `pytest --last-failed`: a loop of `--failed` must not become blind to new failures.
fn chosen(args: &RunArgs) -> RunArgs {
    if !args.failed {
        return args.clone();
    }
    let folder = || Places::guess(&args.cargo).results_directory();
    let folder = args.results.clone().unwrap_or_else(folder);
    let fits = |name: &String| {
        let filters = &args.select.filters;
        filters.is_empty() || filters.iter().any(|filter| name.contains(filter.as_str()))
    };
    let filters: Vec<String> = results::failed_tests(&folder).into_iter().filter(fits).collect();
    if filters.is_empty() {
        if folder.is_dir() && args.output.verbosity() > Verbosity::Quiet {
            let which = if args.select.filters.is_empty() { "all" } else { "the selected" };
            eprint_line!("no test failed last: {which} tests run");
        }
        return args.clone();
    }
    let select = SelectFlags { filters, exact: true, ..args.select.clone() };
    RunArgs { select, ..args.clone() }
}
