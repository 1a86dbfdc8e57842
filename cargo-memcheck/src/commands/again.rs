//! `run` with what surrounds it: the choice of the tests that failed last (`--failed`), and a review of
//! the new figures (`--review`).

use super::{review, run};
use crate::build::workspace::Places;
use crate::invocation::cli::{RunArgs, SelectFlags, SnapshotArgs};
use crate::invocation::values::{Format, Verbosity};
use crate::presentation::presenters::style;
use crate::presentation::results;
use crate::system::error::Failure;
use crate::system::printing::eprint_line;
use crate::system::process::INTERRUPTED;

pub(super) fn run(args: &RunArgs) -> Result<u8, Failure> {
    let code = match chosen(args) {
        Some(args) => run::run(&args)?,
        None => {
            if args.output.verbosity() > Verbosity::Quiet {
                let all = style::hint("cargo memcheck");
                eprint_line!("no test failed in the last run: {all} runs all");
            }
            run::end_without_tests(args)
        }
    };
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

/// The tests of the last run that failed, instead of the filters that select them. `None` if no test
/// failed. Without a last run all tests are run, because none of them is known to pass.
fn chosen(args: &RunArgs) -> Option<RunArgs> {
    let folder = || Places::guess(&args.cargo).results_directory();
    let folder = args.results.clone().unwrap_or_else(folder);
    if !args.failed || !results::file(&folder).is_file() {
        return Some(args.clone());
    }
    let fits = |name: &String| {
        let filters = &args.select.filters;
        filters.is_empty() || filters.iter().any(|filter| name.contains(filter.as_str()))
    };
    let filters: Vec<String> = results::failed_tests(&folder).into_iter().filter(fits).collect();
    let select = SelectFlags { filters, exact: true, ..args.select.clone() };
    (!select.filters.is_empty()).then(|| RunArgs { select, ..args.clone() })
}
