//! Merges the shards of a run, after a check that they are complete and belong together.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use memcheck_core::judgement::verdict::Status;

use super::line::file;
use super::{Results, ResultsError, RunDescription, Test};
use crate::build::leg::Leg;
use crate::discovery::task::{Task, TestOutcome};
use crate::execution::note::Note;
use crate::execution::proof::{CheckedProof, ProofState};
use crate::invocation::options::Partition;
use crate::presentation::tally::Tally;
use crate::system::error::Failure;

const SHOWN: usize = 8;

/// In the form that a single machine would have produced. `T` is as in [`Results`].
#[derive(Debug)]
pub(crate) struct MergedRun<T = Test> {
    pub(crate) run: RunDescription,
    pub(crate) legs: Vec<(Leg, usize)>,
    /// By the name of the leg; only if every shard has one.
    pub(crate) proofs: BTreeMap<String, CheckedProof>,
    /// Sorted by device, package, binary and name. Ignored tests come first.
    pub(crate) tests: Vec<T>,
    /// Tests that were running when the run was killed.
    pub(crate) killed: Vec<(Task, TestOutcome)>,
    /// Without duplicates.
    pub(crate) notes: Vec<Note>,
    /// With the wall time of the longest run.
    pub(crate) tally: Tally,
}

impl<T> From<Results<T>> for MergedRun<T> {
    fn from(results: Results<T>) -> Self {
        let Results { folder, run, legs, proofs, tests, notes, end, incomplete, killed } = results;
        let error = incomplete.map(|why| incomplete_error(&folder, &run, why));
        let tally = Tally {
            elsewhere: end.elsewhere,
            not_run: end.not_run,
            interrupted: end.interrupted,
            failure: end.failure.or_else(|| Some((&Failure::from(error?)).into())),
            unstarted: end.unstarted,
            not_started: end.not_started,
            took: Duration::try_from_secs_f64(end.seconds).unwrap_or_default(),
            ..Tally::default()
        };
        Self { run, legs, proofs, tests, killed, notes, tally }
    }
}

fn incomplete_error(folder: &Path, run: &RunDescription, why: String) -> ResultsError {
    let command = run.origin.as_ref().map(|origin| origin.command.clone());
    ResultsError::Incomplete { file: file(folder), why, command }
}

/// The shards' paths must be relocated to the same workspace.
pub(crate) fn merge(shards: Vec<Results>) -> Result<MergedRun, ResultsError> {
    check(&shards)?;
    let mut shards = shards.into_iter();
    let mut whole = MergedRun::from(shards.next().expect("the command line names a folder"));
    for shard in shards {
        // The shards are complete, so that no test was killed.
        let MergedRun { run: _, legs, proofs, tests, killed: _, notes, tally } =
            MergedRun::from(shard);
        whole.proofs = weakest(std::mem::take(&mut whole.proofs), proofs);
        for ((_, count), (_, more)) in whole.legs.iter_mut().zip(legs) {
            *count = count.saturating_add(more);
        }
        whole.tests.extend(tests);
        whole.notes.extend(notes);
        // Shards run at the same time on different machines, so that the longest time counts
        // instead of the sum.
        let took = whole.tally.took.max(tally.took);
        whole.tally.join(tally);
        whole.tally.took = took;
    }
    let devices = whole.run.devices.clone();
    let place = |test: &Test| devices.iter().position(|device| *device == test.task.leg.name());
    whole.tests.sort_by_key(|test| {
        let is_run = test.outcome.verdict.status != Status::Ignored;
        (place(test), is_run, id(test))
    });
    let mut notes: Vec<Note> = Vec::new();
    for note in whole.notes.drain(..) {
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    whole.notes = notes;
    Ok(whole)
}

/// The shards ran on different machines: one that is not proven makes the whole run unproven.
fn weakest(
    one: BTreeMap<String, CheckedProof>,
    mut other: BTreeMap<String, CheckedProof>,
) -> BTreeMap<String, CheckedProof> {
    let both = one.into_iter().filter_map(|(leg, one)| {
        let other = other.remove(&leg)?;
        let proof = if one.state() == ProofState::Current { other } else { one };
        Some((leg, proof))
    });
    both.collect()
}

fn id(test: &Test) -> (String, String, String) {
    let task = &test.task;
    (task.package.clone(), task.binary.id.clone(), task.name().to_owned())
}

fn check(shards: &[Results]) -> Result<(), ResultsError> {
    // The missing tests can have failed.
    for Results { folder, run, incomplete, .. } in shards {
        if let Some(why) = incomplete {
            return Err(incomplete_error(folder, run, why.clone()));
        }
    }
    let Some((first, others)) = shards.split_first() else { return Ok(()) };
    if let (true, Some(cut)) =
        (!others.is_empty(), shards.iter().find(|shard| !shard.end.unstarted.is_empty()))
    {
        let devices = cut.end.unstarted.join(", ");
        return Err(ResultsError::Unstarted(cut.folder.clone(), devices));
    }
    if let Some(whole) = shards.iter().find(|shard| shard.run.partition.is_none()) {
        return match others {
            [] => Ok(()),
            _ => Err(ResultsError::Whole(whole.folder.clone())),
        };
    }
    for other in others {
        if let Some(what) = difference(first, other) {
            let (a, b) = (first.folder.clone(), other.folder.clone());
            return Err(ResultsError::Different(a, b, what));
        }
    }
    let mut parts = BTreeMap::new();
    for shard in shards {
        let Some(part) = shard.run.partition else { continue };
        if let Some(other) = parts.insert(part, &shard.folder) {
            return Err(ResultsError::Twice(part, other.clone(), shard.folder.clone()));
        }
    }
    let all = || first.run.partition.into_iter().flat_map(Partition::all);
    let missing = || all().filter(|part| !parts.contains_key(part));
    let (shown, count) = (missing().take(SHOWN), missing().count());
    if count > 0 {
        let mut shown: Vec<String> = shown.map(|part| part.to_string()).collect();
        if count > shown.len() {
            shown.push(format!("and {} more", count - shown.len()));
        }
        return Err(ResultsError::Missing(shown.join(", ")));
    }
    let mut seen: BTreeMap<_, &PathBuf> = BTreeMap::new();
    for (shard, test) in shards.iter().flat_map(|s| s.tests.iter().map(move |test| (s, test))) {
        let device = test.task.leg.name();
        if let Some(other) = seen.insert((device.clone(), id(test)), &shard.folder) {
            return Err(ResultsError::SameTest {
                test: format!("{} {}", test.task.binary.id, test.task.name()),
                device,
                a: other.clone(),
                b: shard.folder.clone(),
            });
        }
    }
    Ok(())
}

fn difference(one: &Results, other: &Results) -> Option<String> {
    let (a, b) = (&one.run, &other.run);
    // The pattern names every field, so that a new field cannot be forgotten. The versions were
    // already compared when the files were read.
    let RunDescription {
        version: _,
        protocol: _,
        record: _,
        memcheck: _,
        workspace: _,
        baselines,
        partition: _,
        devices,
        commit,
        uncommitted,
        mode,
        archived: _,
        levels: _,
        origin: _,
    } = a;
    let of = |run: &RunDescription| run.partition.map(|part| part.all().count());
    if *devices != b.devices {
        return Some(format!("devices {} and {}", devices.join(", "), b.devices.join(", ")));
    }
    if of(a) != of(b) {
        let shown =
            |run: &RunDescription| run.partition.map(|part| part.to_string()).unwrap_or_default();
        return Some(format!("parts {} and {}", shown(a), shown(b)));
    }
    // The workspace of a shard can be no repository.
    if let (Some(commit), Some(other)) = (commit, &b.commit) {
        if commit != other {
            return Some(format!("commits {commit} and {other}"));
        }
        if *uncommitted != b.uncommitted {
            return Some(format!("uncommitted changes to commit {commit}"));
        }
    }
    if *baselines != b.baselines {
        let shown = |folder: &Option<PathBuf>| match folder {
            Some(folder) => folder.display().to_string(),
            None => "the workspace".to_owned(),
        };
        let (a, b) = (shown(baselines), shown(&b.baselines));
        return Some(format!("baselines in {a} and in {b}; --baselines states one folder"));
    }
    // The mode comes before the hash of the selection, which also depends on it.
    if *mode != b.mode {
        return Some(format!("modes {} and {}", mode.flag(), b.mode.flag()));
    }
    (one.end.selected != other.end.selected).then(|| "different tests, limits or levels".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execution::proof::tests::example;

    #[test]
    fn a_shard_that_is_not_proven_makes_the_whole_run_unproven() {
        let of = |proofs: &[(&str, CheckedProof)]| -> BTreeMap<String, CheckedProof> {
            proofs.iter().map(|(leg, proof)| ((*leg).to_owned(), proof.clone())).collect()
        };
        let current = || of(&[("cpu", example(&[])), ("sim:h200", example(&[]))]);
        let stale = of(&[("cpu", example(&["candle has changed"]))]);
        for (one, other) in [(current(), stale.clone()), (stale, current())] {
            let merged = weakest(one, other);
            assert_eq!(merged.len(), 1);
            assert_eq!(merged["cpu"].state(), ProofState::Stale);
        }
        assert_eq!(weakest(current(), current()), current());
    }
}
