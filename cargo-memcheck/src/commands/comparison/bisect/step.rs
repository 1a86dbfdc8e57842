//! One step of `git bisect run`: runs the tests of the commit that git has checked out.

use memcheck_core::wire::exit;

use super::search::RevisionSearch;
use crate::execution::revision::git;
use crate::invocation::cli::BisectStepArgs;
use crate::presentation::presenters::comparison::bisect::{BisectOutcome, BisectStep, print_step};
use crate::presentation::presenters::json;
use crate::system::error::Failure;
use crate::system::files;

/// The exit codes by which `git bisect run` goes on. It stops at 128 and above.
const BAD: u8 = 1;
const SKIP: u8 = 125;
const STOP: u8 = 128;

pub(in crate::commands::comparison) fn step(args: &BisectStepArgs) -> Result<u8, Failure> {
    let search = RevisionSearch::read(&args.description)?;
    match run(&search) {
        Ok(BisectOutcome::Good) => Ok(exit::OK),
        Ok(BisectOutcome::Bad) => Ok(BAD),
        Ok(BisectOutcome::Skipped) => Ok(SKIP),
        Err(failure) => {
            crate::presentation::presenters::failure(&failure);
            Ok(STOP.max(failure.exit_code()))
        }
    }
}

fn run(search: &RevisionSearch) -> Result<BisectOutcome, Failure> {
    prefer_newer(search);
    let ask = |arguments: &[&str]| git(&search.worktree, arguments).map_err(anyhow::Error::msg);
    let commit = ask(&["rev-parse", "HEAD"])?;
    let subject = ask(&["log", "--max-count=1", "--format=%s"])?;
    let code = search.measure(&commit, false)?;
    // A build can change files, such as the lock file, that git must check out.
    ask(&["reset", "--quiet", "--hard"])?;
    let (outcome, reason) = search.judge(&commit, code)?;
    let step = BisectStep { name: commit, subject, outcome, reason };
    let line = json::text(&step) + "\n";
    files::append(&search.log(), line.as_bytes()).map_err(anyhow::Error::from)?;
    print_step(search.steps()?.len(), &step);
    Ok(outcome)
}

/// If two commits split the range alike, git checks out the older one. The newer one saves a build
/// if the last commit of the range is the culprit, because that one is measured only then. git
/// takes whichever commit is checked out.
fn prefer_newer(search: &RevisionSearch) {
    let git = |arguments: &[&str]| git(&search.worktree, arguments);
    if git(&["for-each-ref", "refs/bisect/skip-*"]).is_ok_and(|skipped| !skipped.is_empty()) {
        return;
    }
    let range =
        ["rev-list", "--bisect-all", "refs/bisect/bad", "--not", "--glob=refs/bisect/good-*"];
    let (Ok(all), Ok(own)) = (git(&range), git(&["rev-parse", "HEAD"])) else { return };
    // The largest distance comes first.
    let by_distance: Vec<(&str, &str)> = all.lines().filter_map(distance).collect();
    let Some((_, most)) = by_distance.first() else { return };
    let best = by_distance.iter().filter(|(_, distance)| distance == most);
    let newer = best.map(|(commit, _)| *commit).find(|commit| {
        *commit != own && git(&["merge-base", "--is-ancestor", &own, commit]).is_ok()
    });
    if let Some(newer) = newer {
        // Without it the older commit is as good.
        let _ = git(&["checkout", "--quiet", "--detach", newer]);
    }
}

/// The commit and the distance of a line `COMMIT (main, dist=3)`.
fn distance(line: &str) -> Option<(&str, &str)> {
    let (commit, names) = line.split_once(' ')?;
    Some((commit, names.rsplit_once("dist=")?.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_of_a_commit_is_found_among_its_names() {
        assert_eq!(distance("0123 (dist=12)"), Some(("0123", "12)")));
        assert_eq!(distance("0123 (HEAD -> a, dist=3)"), Some(("0123", "3)")));
        assert_eq!(distance(""), None);
    }
}
