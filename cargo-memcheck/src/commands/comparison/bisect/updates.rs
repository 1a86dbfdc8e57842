//! Finds the update of a dependency in `Cargo.lock`: the sources are those of the bad revision, and
//! half of the updates that are left are applied at each step.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use memcheck_core::input;
use memcheck_core::size::counted;

use super::super::revisions::cargo_flags;
use super::search::RevisionSearch;
use super::{BisectError, announce, bad};
use crate::build::workspace::{Places, cargo};
use crate::execution::lock_file::LockRange;
use crate::execution::revision::{Checkout, git};
use crate::invocation::cli::BisectArgs;
use crate::presentation::presenters::comparison::bisect::{
    BisectOutcome, BisectStep, Bisection, Culprits, print_step,
};
use crate::system::error::Failure;
use crate::system::files;
use crate::system::process::{self, Interrupt, ShortRun};

const LOCK_FILE: &str = "Cargo.lock";

type Applied = BTreeSet<usize>;

struct LockSearch<'a> {
    search: RevisionSearch,
    range: &'a LockRange,
    /// The lock file in the worktree.
    file: PathBuf,
    /// Flags of cargo among the arguments of `run`.
    flags: Vec<String>,
    steps: Vec<BisectStep>,
    builds: usize,
}

/// `None` after a signal.
pub(super) fn find(args: &BisectArgs, places: &Places) -> Result<Option<Bisection>, Failure> {
    let (good, bad) = (args.good.as_str(), bad(args));
    let folders = (places.own_directory(), places.root());
    let checkout = Checkout::create(bad, args.workspace.manifest_path.as_deref(), folders)?;
    let top = checkout.worktree();
    let file = checkout.lock_file()?.to_owned();
    let below = file.strip_prefix(top).unwrap_or(&file).to_string_lossy().into_owned();
    let of_good = git(top, &["show", &format!("{good}:{below}")]);
    let of_good = of_good.map_err(|_| BisectError::NoLock(good.to_owned()))?;
    // That of the working tree is the one that the user has just updated.
    let newest = if args.bad.is_some() { file.clone() } else { places.root().join(LOCK_FILE) };
    let of_bad = input::read_text(&newest, input::LOCK_FILE)
        .map_err(|_| BisectError::NoLock(bad.to_owned()))?;
    let unreadable = |why: String| BisectError::Lock(format!("{good} or {bad}"), why);
    let range = LockRange::between(&of_good, &of_bad).map_err(|it| unreadable(it.to_string()))?;
    if range.updates.is_empty() {
        return Err(BisectError::NoUpdates(good.to_owned(), bad.to_owned()).into());
    }
    let search = RevisionSearch::new(args, places.own_directory(), &checkout, "0");
    search.begin()?;
    let flags = cargo_flags(&args.run);
    let search = LockSearch { search, range: &range, file, flags, steps: vec![], builds: 0 };
    search.find(args)
}

impl LockSearch<'_> {
    fn find(mut self, args: &BisectArgs) -> Result<Option<Bisection>, Failure> {
        let (good, bad) = (args.good.as_str(), bad(args));
        let unresolved = || BisectError::Unresolved(bad.to_owned(), good.to_owned());
        let mut applied = self.resolve(&Applied::new())?.ok_or_else(unresolved)?;
        announce(args, &format!("measuring {bad} with the dependencies of {good}, which is good"));
        let code = self.search.measure("0", true)?;
        self.builds += 1;
        if Interrupt::has_come() {
            return Ok(None);
        }
        let name = format!("{bad} with the dependencies of {good}");
        self.search.check_reference((&name, code))?;
        let mut last_good = "0".to_owned();
        let mut first_bad: Option<String> = None;
        let all: Applied = (0..self.range.updates.len()).collect();
        let mut left: Vec<usize> = all.difference(&applied).copied().collect();
        let updates = counted(left.len() as u64, "update", "updates");
        announce(args, &format!("bisecting {updates} of dependencies"));
        while left.len() > 1 {
            let Some((next, step)) = self.split(&applied, &left)? else { break };
            if Interrupt::has_come() {
                return Ok(None);
            }
            match step.outcome {
                BisectOutcome::Good => {
                    last_good = step.name;
                    left.retain(|number| !next.contains(number));
                    applied = next;
                }
                _ => {
                    first_bad = Some(step.name);
                    left.retain(|number| next.contains(number));
                }
            }
        }
        let first_bad = match first_bad {
            // The last bad run had the updates that are applied and those that are left.
            Some(name) => name,
            None => {
                let whole: Applied = applied.iter().chain(&left).copied().collect();
                announce(args, &format!("measuring {bad}, which is bad"));
                let Some(step) = self.step(&whole)? else { return Err(unresolved().into()) };
                match step.outcome {
                    _ if Interrupt::has_come() => return Ok(None),
                    BisectOutcome::Bad => step.name,
                    BisectOutcome::Good => {
                        return Err(BisectError::NoChange(bad.to_owned(), name).into());
                    }
                    BisectOutcome::Skipped => {
                        return Err(BisectError::Unmeasured(bad.to_owned(), step.reason).into());
                    }
                }
            }
        };
        let (base, head) = (self.search.results(&last_good)?, self.search.results(&first_bad)?);
        let comparison = self.search.compare(&base, &head)?;
        let updates = left.iter().map(|number| self.range.updates[*number].clone()).collect();
        Ok(Some(Bisection {
            good: good.to_owned(),
            bad: bad.to_owned(),
            range: self.range.updates.len(),
            culprits: Culprits::Updates(updates),
            steps: self.steps,
            builds: self.builds,
            comparison,
        }))
    }

    /// Measures a part of the updates that are left: half of them, or if cargo does not resolve that
    /// or the tests do not run, another part. `None` if none is possible.
    fn split(
        &mut self,
        applied: &Applied,
        left: &[usize],
    ) -> Result<Option<(Applied, BisectStep)>, Failure> {
        for part in parts(left.len()) {
            let wanted = applied.iter().chain(&left[..part]).copied().collect();
            let Some(next) = self.resolve(&wanted)? else { continue };
            let new = left.iter().filter(|number| next.contains(number)).count();
            // Further updates that the wanted ones need are applied too.
            let is_part = (1..left.len()).contains(&new) && applied.is_subset(&next);
            let is_within =
                next.iter().all(|number| applied.contains(number) || left.contains(number));
            if !is_part || !is_within {
                continue;
            }
            let step = self.run(&next)?;
            if step.outcome != BisectOutcome::Skipped || Interrupt::has_come() {
                return Ok(Some((next, step)));
            }
        }
        Ok(None)
    }

    /// Writes the lock file with some updates, and returns those that cargo has kept. `None` if
    /// cargo cannot resolve it, or only with other versions than those of the two files.
    fn resolve(&self, wanted: &Applied) -> Result<Option<Applied>, Failure> {
        let text = self.range.with(wanted);
        files::replace(&self.file, text.as_bytes()).context("writing the lock file")?;
        let folder = self.file.parent().unwrap_or(Path::new("."));
        let mut command = Command::new(cargo());
        command.args(["metadata", "--format-version", "1"]).args(&self.flags).current_dir(folder);
        let output = process::short(&command, ShortRun::TRUSTED).context("starting cargo")?;
        if !output.status.success() {
            return Ok(None);
        }
        let resolved = input::read_text(&self.file, input::LOCK_FILE);
        let resolved = resolved.context("reading the lock file")?;
        let applied = self.range.applied(&resolved);
        Ok(applied.context("reading the lock file that cargo has resolved")?)
    }

    fn step(&mut self, wanted: &Applied) -> Result<Option<BisectStep>, Failure> {
        let Some(applied) = self.resolve(wanted)? else { return Ok(None) };
        self.run(&applied).map(Some)
    }

    /// Runs the tests with the lock file that is written.
    fn run(&mut self, applied: &Applied) -> Result<BisectStep, Failure> {
        let name = self.builds.to_string();
        let code = self.search.measure(&name, false)?;
        self.builds += 1;
        let subject = self.described(applied);
        if Interrupt::has_come() {
            return Ok(BisectStep {
                name,
                subject,
                outcome: BisectOutcome::Skipped,
                reason: String::new(),
            });
        }
        let (outcome, reason) = self.search.judge(&name, code)?;
        let step = BisectStep { name, subject, outcome, reason };
        self.steps.push(step.clone());
        print_step(self.steps.len(), &step);
        Ok(step)
    }

    /// `10 of 20 updates, the last is serde`.
    fn described(&self, applied: &Applied) -> String {
        let all = counted(self.range.updates.len() as u64, "update", "updates");
        let last = applied.last().map(|number| &self.range.updates[*number].package);
        let last = last.map(|name| format!(", the last one {name}")).unwrap_or_default();
        format!("{} of {all}{last}", applied.len())
    }
}

/// The sizes of a part of `count` things, the half first.
fn parts(count: usize) -> impl Iterator<Item = usize> {
    let half = count.div_ceil(2);
    let others = (1..count).flat_map(move |away| [half.checked_sub(away), half.checked_add(away)]);
    std::iter::once(Some(half))
        .chain(others)
        .flatten()
        .filter(move |part| (1..count).contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_half_is_tried_first_and_then_every_other_part() {
        assert_eq!(parts(2).collect::<Vec<_>>(), [1]);
        assert_eq!(parts(5).collect::<Vec<_>>(), [3, 2, 4, 1]);
        assert_eq!(parts(6).collect::<Vec<_>>(), [3, 2, 4, 1, 5]);
        assert_eq!(parts(1).count(), 0);
    }
}
