//! Finds the commit with `git bisect run`, in a worktree, whose state of the bisection is not that
//! of the repository.

use std::path::Path;

use anyhow::Context;
use memcheck_core::size::counted;

use super::search::RevisionSearch;
use super::{BisectError, announce, bad};
use crate::build::workspace::Places;
use crate::execution::revision::{self, Checkout, RevisionError, git};
use crate::invocation::cli::BisectArgs;
use crate::presentation::presenters::comparison::bisect::{
    BisectOutcome, Bisection, Commit, Culprits,
};
use crate::system::error::Failure;
use crate::system::process::Interrupt;

/// The exit code of `git bisect run` if only skipped commits are left.
const ONLY_SKIPPED: u8 = 2;

/// `None` after a signal.
pub(super) fn find(args: &BisectArgs, places: &Places) -> Result<Option<Bisection>, Failure> {
    let bad_name = bad(args);
    let unknown = || RevisionError::Unknown(bad_name.to_owned());
    let bad = revision::resolve(bad_name).ok_or_else(unknown)?;
    let folders = (places.own_directory(), places.root());
    let manifest = args.workspace.manifest_path.as_deref();
    let checkout = Checkout::create(&args.good, manifest, folders)?;
    let good = checkout.commit().to_owned();
    let top = checkout.worktree();
    let range = format!("{good}..{bad}");
    let range: usize = ask(top, &["rev-list", "--count", &range])?.parse().unwrap_or(0);
    if range == 0 {
        return Err(BisectError::NoCommits(args.good.clone(), bad_name.to_owned()).into());
    }
    let search = RevisionSearch::new(args, places.own_directory(), &checkout, &good);
    search.begin()?;
    search.write()?;
    announce(args, &format!("measuring {}, which is good", args.good));
    let code = search.measure(&good, true)?;
    if Interrupt::has_come() {
        return Ok(None);
    }
    search.check_reference((&args.good, code))?;
    let mut culprits = vec![bad.clone()];
    if range > 1 {
        let commits = counted(range as u64, "commit", "commits");
        announce(args, &format!("bisecting {commits} up to {bad_name}"));
        ask(top, &["reset", "--quiet", "--hard"])?;
        ask(top, &["bisect", "start", &bad, &good])?;
        let description = search.description();
        let step = ["bisect-step", &description.to_string_lossy()];
        let code = revision::bisect_run(top, &step)?;
        if Interrupt::has_come() {
            return Ok(None);
        }
        let left = ["rev-list", "refs/bisect/bad", "--not", "--glob=refs/bisect/good-*"];
        culprits = ask(top, &left)?.lines().map(str::to_owned).collect();
        if !matches!((code, culprits.len()), (0, 1) | (ONLY_SKIPPED, 2..)) {
            return Err(BisectError::Git(code).into());
        }
    }
    finish(args, &search, (&good, &bad), range, &culprits)
}

fn finish(
    args: &BisectArgs,
    search: &RevisionSearch,
    (good, bad): (&str, &str),
    range: usize,
    culprits: &[String],
) -> Result<Option<Bisection>, Failure> {
    let top = &search.worktree;
    let steps = search.steps()?;
    let has = |commit: &str, outcome| {
        steps.iter().any(|step| step.name == commit && step.outcome == outcome)
    };
    // The newest of the commits that can be the culprit is bad in any case.
    let first_bad = culprits.first().map_or(bad, String::as_str);
    let mut builds = steps.len() + 1;
    if !has(first_bad, BisectOutcome::Bad) {
        announce(args, &format!("measuring {}, which is bad", super::bad(args)));
        ask(top, &["checkout", "--quiet", "--force", "--detach", first_bad])?;
        let code = search.measure(first_bad, true)?;
        builds += 1;
        if Interrupt::has_come() {
            return Ok(None);
        }
        let name = super::bad(args).to_owned();
        match search.judge(first_bad, code)? {
            (BisectOutcome::Bad, _) => {}
            (BisectOutcome::Good, _) => {
                return Err(BisectError::NoChange(name, args.good.clone()).into());
            }
            (BisectOutcome::Skipped, why) => return Err(BisectError::Unmeasured(name, why).into()),
        }
    }
    let parent = git(top, &["rev-parse", "--verify", "--quiet", &format!("{first_bad}^")]);
    let parent = parent.ok().filter(|parent| has(parent, BisectOutcome::Good));
    let base = search.results(parent.as_deref().unwrap_or(good))?;
    let comparison = search.compare(&base, &search.results(first_bad)?)?;
    let commits: Result<_, Failure> =
        culprits.iter().map(|commit| described(top, commit)).collect();
    Ok(Some(Bisection {
        good: args.good.clone(),
        bad: super::bad(args).to_owned(),
        range,
        culprits: Culprits::Commits(commits?),
        steps,
        builds,
        comparison,
    }))
}

fn described(top: &Path, commit: &str) -> Result<Commit, Failure> {
    let text = ask(top, &["show", "--no-patch", "--format=%s%n%an%n%as", commit])?;
    let mut lines = text.lines().map(str::to_owned);
    let mut line = || lines.next().unwrap_or_default();
    let (subject, author, date) = (line(), line(), line());
    Ok(Commit { commit: commit.to_owned(), subject, author, date })
}

fn ask(top: &Path, arguments: &[&str]) -> Result<String, Failure> {
    let name = arguments.first().copied().unwrap_or_default();
    git(top, arguments)
        .map_err(anyhow::Error::msg)
        .with_context(|| format!("git {name}"))
        .map_err(Failure::Internal)
}
