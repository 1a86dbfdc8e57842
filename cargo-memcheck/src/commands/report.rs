//! `cargo memcheck report`: prints the results of a run again, or those of its shards as if they
//! were one run. It judges only the limits across tests, which shards leave to it.

use memcheck_core::judgement::location::Roots;

use super::earlier_output;
use crate::build::workspace::{Places, pending_of_results};
use crate::invocation::cli::ReportArgs;
use crate::invocation::options::{
    Mode, Pending, ReportContext, ReportingOptions, baselines, environment,
};
use crate::invocation::values::Format;
use crate::presentation::events::Presenter;
use crate::presentation::presenters::{self, Broadcast, JsonLines};
use crate::presentation::results::{self, MergedRun, Replayed, ResultsError};
use crate::system::error::Failure;
use crate::system::printing::Stdout;
use crate::system::process::Capture;

pub(super) fn report(args: &ReportArgs) -> Result<u8, Failure> {
    let places = places(args)?;
    // Results must not choose the files that are read, so that the folder is not that of the run.
    let baselines = baselines(&args.baselines, places.root())?;
    let roots = Roots::new(places.root(), baselines.as_deref());
    if args.merge {
        return Ok(present(merge(args, roots, &places)?, args, roots, &places));
    }
    let stored = places.results_directory();
    let folder = match args.folders.as_slice() {
        [] => &stored,
        [folder] => folder,
        folders => return Err(ResultsError::Several(folders.len()).into()),
    };
    let results = results::read_in_file(folder, roots)?;
    Ok(present(MergedRun::from(results), args, roots, &places))
}

fn present<T: Replayed>(
    whole: MergedRun<T>,
    args: &ReportArgs,
    roots: Roots<'_>,
    places: &Places,
) -> u8 {
    let reporting = ReportingOptions::read(&args.output, &args.report, &environment);
    let report_context = ReportContext {
        reporting: &reporting,
        pending: match (args.folders.first(), whole.run.mode) {
            // Joined pending snapshots are in a separate folder, not next to the tests.
            _ if args.merge => Pending::In(places.pending_directory()),
            (Some(folder), _) if whole.run.archived => Pending::In(pending_of_results(folder)),
            (None, _) if whole.run.archived => {
                Pending::In(pending_of_results(&places.results_directory()))
            }
            (_, Mode::Ci) => Pending::In(places.pending_directory()),
            (_, Mode::Local) => Pending::NextToBaselines,
        },
        roots,
        capture: Capture::Kept,
        no_tests: args.no_tests,
        // The filters of the run have selected the results, so all of them are presented.
        filters: &[],
        is_replay: true,
    };
    replay(whole, &report_context)
}

/// The current folder if an archive was run there.
fn places(args: &ReportArgs) -> Result<Places, Failure> {
    let flags = args.workspace.cargo();
    let (found, here) = (Places::find(&flags)?, Places::here(&flags));
    let has_results = |places: &Places| results::file(&places.results_directory()).is_file();
    let ran_here = args.folders.is_empty() && !has_results(&found) && has_results(&here);
    Ok(if ran_here { here } else { found })
}

fn merge(args: &ReportArgs, roots: Roots<'_>, places: &Places) -> Result<MergedRun, Failure> {
    let stored = [places.results_directory()];
    let folders = if args.folders.is_empty() { &stored[..] } else { &args.folders };
    let shards = folders.iter().map(|folder| {
        let mut results = results::read(folder)?;
        results.relocate(roots);
        Ok(results)
    });
    let mut whole = results::merge(shards.collect::<Result<Vec<_>, ResultsError>>()?)?;
    earlier_output::set_aside(&places.pending_directory(), whole.run.commit());
    results::join(&mut whole, places)?;
    results::judge_relations(&mut whole, &places.pending_directory(), roots.baselines)?;
    Ok(whole)
}

fn replay<T: Replayed>(whole: MergedRun<T>, report_context: &ReportContext<'_>) -> u8 {
    let json = report_context.reporting.format == Format::Json;
    let on_stdout = json.then(|| Box::new(JsonLines::new(Stdout)) as Box<dyn Presenter>);
    let mut broadcast = Broadcast::new(report_context, whole.legs.len(), on_stdout);
    let tally = results::replay(whole, |event| broadcast.notify(event));
    if let Some(failure) = &tally.failure {
        presenters::reported(failure);
    }
    let exit_code = tally.exit_code(report_context.no_tests);
    broadcast.finish(&tally, exit_code, None)
}
