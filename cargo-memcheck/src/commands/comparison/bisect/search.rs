//! The part of a bisection that does not depend on the things that are bisected: how the tests run,
//! and the rule by which a run is good or bad. `git bisect run` starts each step as a process, so
//! that the search is a file too.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use memcheck_core::input;
use memcheck_core::tolerance::Tolerance;
use memcheck_core::wire::exit;
use serde::{Deserialize, Serialize};

use super::super::revisions::{measured, run_arguments};
use super::BisectError;
use crate::comparison::bisect::Criterion;
use crate::comparison::runs::{Comparison, MeasuredTest, TestId, compare};
use crate::execution::revision::{self, Checkout, RevisionError, RunOutput};
use crate::invocation::cli::BisectArgs;
use crate::invocation::values::Verbosity;
use crate::presentation::presenters::comparison::bisect::{BisectOutcome, BisectStep, reason};
use crate::presentation::results::{self, Results, ResultsError};
use crate::system::error::Failure;
use crate::system::files;
use crate::system::process::INTERRUPTED;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RevisionSearch {
    /// The tool's folder in the target directory.
    pub(super) own: PathBuf,
    /// The current folder, in the worktree.
    folder: PathBuf,
    /// The top folder of the worktree.
    pub(super) worktree: PathBuf,
    /// The folder with the results of each run, by name.
    results: PathBuf,
    selected: Vec<String>,
    typed: Vec<String>,
    is_verbose: bool,
    criterion: Criterion,
    tolerance: Option<Tolerance>,
    /// The name of the run that is good.
    pub(super) reference: String,
}

impl RevisionSearch {
    pub(super) fn new(args: &BisectArgs, own: &Path, checkout: &Checkout, reference: &str) -> Self {
        let mut selected = vec![args.test.clone()];
        selected.extend(args.exact.then(|| "--exact".to_owned()));
        selected.extend(checkout.arguments());
        Self {
            own: own.to_owned(),
            folder: checkout.folder().to_owned(),
            worktree: checkout.worktree().to_owned(),
            results: own.join("bisect"),
            selected,
            typed: args.run.clone(),
            is_verbose: args.output.verbosity() == Verbosity::Verbose,
            criterion: Criterion { figure: args.figure.clone(), change: args.change },
            tolerance: args.tolerance,
            reference: reference.to_owned(),
        }
    }

    /// Removes the results of earlier bisections.
    pub(super) fn begin(&self) -> Result<(), Failure> {
        match std::fs::remove_dir_all(&self.results) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(anyhow::Error::from(error))
            }
            _ => Ok(()),
        }
        .with_context(|| format!("removing {}", self.results.display()))?;
        std::fs::create_dir_all(&self.results).context("creating the folder of the results")?;
        Ok(())
    }

    /// The description, for the processes of the steps.
    pub(super) fn description(&self) -> PathBuf {
        self.results.join("search.json")
    }

    pub(super) fn write(&self) -> Result<(), Failure> {
        let text = serde_json::to_vec(self).context("describing the bisection")?;
        files::replace(&self.description(), &text).context("describing the bisection")?;
        Ok(())
    }

    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let text =
            input::read(path, input::OWN).with_context(|| format!("reading {}", path.display()))?;
        Ok(serde_json::from_slice(&text).context("reading the description of the bisection")?)
    }

    pub(super) fn log(&self) -> PathBuf {
        self.results.join("steps.jsonl")
    }

    /// The steps that have ended.
    pub(super) fn steps(&self) -> Result<Vec<BisectStep>, Failure> {
        let text = input::read_text(&self.log(), input::OWN).unwrap_or_default();
        let steps: Result<Vec<BisectStep>, _> = text.lines().map(serde_json::from_str).collect();
        Ok(steps.context("reading the steps of the bisection")?)
    }

    fn output_of(&self, name: &str) -> PathBuf {
        self.results.join(format!("{name}.log"))
    }

    /// Runs the tests of the state of the worktree. Their messages are printed only if the run must
    /// succeed, or on request.
    pub(super) fn measure(&self, name: &str, must_succeed: bool) -> Result<u8, Failure> {
        let verbosity = if self.is_verbose { Verbosity::Verbose } else { Verbosity::Quiet };
        let folder = self.results.join(name);
        let arguments = run_arguments((&self.own, &folder), verbosity, &self.selected, &self.typed);
        let log = self.output_of(name);
        let is_shown = must_succeed || self.is_verbose;
        let output = if is_shown { RunOutput::Stderr } else { RunOutput::File(&log) };
        if !self.folder.is_dir() {
            return Ok(exit::METADATA);
        }
        revision::run(&self.folder, &arguments, Some(&self.own), output)
    }

    pub(super) fn results(&self, name: &str) -> Result<Results, ResultsError> {
        results::read(&self.results.join(name))
    }

    /// The tests of the good run.
    ///
    /// # Errors
    /// If that run has no tests, or lacks the figure that decides.
    pub(super) fn check_reference(&self, (name, code): (&str, u8)) -> Result<(), Failure> {
        let failed = || Failure::from(RevisionError::Run(name.to_owned(), code));
        let results = match self.results(&self.reference) {
            Ok(results) if results.incomplete.is_none() => results,
            Err(error @ (ResultsError::Io(..) | ResultsError::Damaged(..))) => {
                return Err(error.into());
            }
            Ok(_) | Err(_) => return Err(failed()),
        };
        let tests = measured(&results);
        if tests.is_empty() {
            return Err(failed());
        }
        if !tests.iter().all(|test| test.record.is_some()) {
            return Err(BisectError::NotMeasured(name.to_owned()).into());
        }
        Ok(())
    }

    /// Compares a run with another one. Tests that the good run does not have are left out.
    pub(super) fn compare(&self, base: &Results, head: &Results) -> Result<Comparison, Failure> {
        let known = self.known()?;
        let of = |results| -> Vec<MeasuredTest<'_>> {
            let tests = measured(results).into_iter();
            tests.filter(|test| known.contains(&test.id)).collect()
        };
        Ok(compare(&of(base), &of(head), self.tolerance))
    }

    fn known(&self) -> Result<Vec<TestId>, Failure> {
        let reference = self.results(&self.reference)?;
        Ok(measured(&reference).into_iter().map(|test| test.id).collect())
    }

    /// Judges a run that has ended with an exit code.
    pub(super) fn judge(&self, name: &str, code: u8) -> Result<(BisectOutcome, String), Failure> {
        let skipped = |why: &str| {
            let log = self.output_of(name);
            let place = if log.is_file() { format!(" ({})", log.display()) } else { String::new() };
            Ok((BisectOutcome::Skipped, format!("{why}{place}")))
        };
        let results = match self.results(name) {
            Ok(results) if results.incomplete.is_none() => results,
            Ok(_) | Err(ResultsError::None(_) | ResultsError::NoFolder(_)) => match code {
                exit::BUILD => return skipped("it does not build"),
                exit::METADATA => return skipped("cargo cannot read its workspace"),
                exit::NO_TESTS => return skipped("it has no such test"),
                exit::CONFIG => return skipped("its configuration is not valid"),
                // Not the fault of these sources.
                _ => return Err(RevisionError::Run(name.to_owned(), code).into()),
            },
            Err(error) => return Err(error.into()),
        };
        if code == INTERRUPTED {
            return Err(RevisionError::Run(name.to_owned(), code).into());
        }
        let known = self.known()?;
        let tests = measured(&results);
        let mut present = tests.iter().filter(|test| known.contains(&test.id)).peekable();
        if present.peek().is_none() {
            return skipped("it has no such test");
        }
        // Without a record the figure is unknown, and not the same.
        if self.criterion.figure.is_some() && present.any(|test| test.record.is_none()) {
            return skipped("the test is not measured");
        }
        let comparison = self.compare(&self.results(&self.reference)?, &results)?;
        Ok(match self.criterion.reason(&comparison) {
            Some((test, why)) => (BisectOutcome::Bad, reason(test, &why)),
            None => (BisectOutcome::Good, String::new()),
        })
    }
}
