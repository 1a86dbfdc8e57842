//! `compare --update`: a revision, and the same sources after updates of dependencies.

use super::{CompareError, Operand, announce, base, places, run, side};
use crate::build::workspace::uncommitted;
use crate::commands::comparison::revisions::{cargo_flags, measured};
use crate::comparison::runs::{Comparison, compare};
use crate::execution::revision::{self, Checkout, LockUpdate};
use crate::invocation::cli::CompareArgs;
use crate::presentation::presenters::comparison::compare::{ComparedRuns, Side, UpdateReport};
use crate::system::error::Failure;

/// Both runs are made in one worktree, whose lock file changes in between.
pub(super) fn compare_update(args: &CompareArgs) -> Result<ComparedRuns, Failure> {
    let name = base(args);
    if let Ok(Operand::Results(_)) = Operand::read(name) {
        return Err(CompareError::NotARevision(name.to_owned()).into());
    }
    let places = places(args)?;
    let manifest = args.workspace.manifest_path.as_deref();
    let folders = (places.own_directory(), places.root());
    let checkout = Checkout::create(name, manifest, folders)?;
    if args.base.is_none() && uncommitted(places.root()).is_some() {
        announce(args, &format!("uncommitted changes are left out: both runs are of {name}"));
    }
    let update = revision::update(&checkout, &args.update, &cargo_flags(&args.run))?;
    let report = report(args, &update);
    let commit = Some(checkout.commit().to_owned());
    let updated = format!("{name} with {}", report.described());
    if update.changes.is_empty() {
        let side = |name: &str| Side { name: name.to_owned(), commit: commit.clone(), tests: 0 };
        let (base, head) = (side(name), side(&updated));
        let comparison = Comparison::default();
        return Ok(ComparedRuns { base, head, update: Some(report), comparison });
    }
    update.revert(&checkout)?;
    let folder = run(args, &places, Some(&checkout), (name, "base"))?;
    let (base_results, base) = side(&folder, name, commit.clone())?;
    update.apply(&checkout)?;
    let folder = run(args, &places, Some(&checkout), (&updated, "head"))?;
    let (head_results, head) = side(&folder, &updated, commit)?;
    let comparison = compare(&measured(&base_results), &measured(&head_results), args.tolerance);
    Ok(ComparedRuns { base, head, update: Some(report), comparison })
}

fn report(args: &CompareArgs, update: &LockUpdate) -> UpdateReport {
    let is_requested = |package: &str| args.update.iter().any(|it| it.name == package);
    let (requested, along) =
        update.changes.iter().cloned().partition(|change| is_requested(&change.package));
    let typed = args.update.iter().map(ToString::to_string).collect();
    UpdateReport { typed, requested, along }
}
