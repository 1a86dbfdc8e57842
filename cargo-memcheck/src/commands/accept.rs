//! `cargo memcheck accept`: makes pending snapshots the baselines.

use memcheck_core::judgement::proposal::propose;
use memcheck_core::measurement::repeats::Range;
use memcheck_core::tolerance::Tolerance;
use memcheck_core::wire::exit;

use crate::baselines::{self, Body, CheckedSnapshot, selected};
use crate::invocation::cli::SnapshotArgs;
use crate::invocation::values::Verbosity;
use crate::presentation::presenters::json;
use crate::presentation::results;
use crate::system::error::Failure;
use crate::system::printing::eprint_line;

/// If one of the snapshots is invalid, none is accepted.
pub(super) fn accept(args: &SnapshotArgs) -> Result<u8, Failure> {
    let (workspace, files) = selected::select_pending(args)?;
    let checked = files
        .into_iter()
        .map(|file| baselines::check(&file.path).map(|checked| (file, checked)))
        .collect::<Result<Vec<_>, _>>()?;
    let verbosity = args.output.verbosity();
    // The results of the run are next to the pending snapshots that it wrote to their folder.
    let results = args.from.as_deref().and_then(|from| std::path::absolute(from).ok());
    let results = results.filter(|from| from.ends_with("pending"));
    let results = results.and_then(|from| Some(from.parent()?.to_owned()));
    let results = results.filter(|folder| results::file(folder).exists());
    let ranges = results::ranges(&results.unwrap_or_else(|| workspace.results_directory()));
    for (file, checked) in &checked {
        let changes =
            (verbosity == Verbosity::Verbose).then(|| baselines::diff::text(file, checked));
        baselines::accept(file, checked)?;
        json::snapshot(args.output.form.message_format, "accepted", &file.target);
        if verbosity > Verbosity::Quiet {
            eprint_line!("accepted {}", selected::shown(&file.target, &workspace));
            if let Some(proposal) = tolerance(checked, ranges.get(&file.target)) {
                eprint_line!("note: {}: {proposal}", file.test);
            }
        }
        if let Some(changes) = changes {
            eprint_line!("{changes}");
        }
    }
    Ok(exit::OK)
}

/// The tolerance that a test needs whose runs measured different figures.
fn tolerance(
    checked: &CheckedSnapshot,
    ranges: Option<&(Vec<Range>, Tolerance)>,
) -> Option<String> {
    let Body::Figures(figures, _) = &checked.body else { return None };
    let (ranges, tolerance) = ranges?;
    propose(figures, ranges, *tolerance)
}
