//! Collects the results of a run as a presenter, so that they can be written at the end of the run.

use std::cell::OnceCell;
use std::rc::Rc;

use anyhow::Context;
use serde::Serialize;

use super::RunDescription;
use super::line::{ResultLine, RunEnd, TestResult};
use crate::discovery::task::{Task, TestOutcome};
use crate::execution::note::Note;
use crate::invocation::devices::Leg;
use crate::presentation::events::{Presenter, ReportWriter};
use crate::presentation::tally::Tally;

#[derive(Debug, Default)]
pub(crate) struct Keeper {
    /// Complete only after all legs have been listed.
    run: Rc<OnceCell<RunDescription>>,
    lines: Vec<u8>,
    tests: usize,
    error: Option<anyhow::Error>,
}

impl Keeper {
    /// `run` must be set before the text is read.
    pub(crate) fn new(run: Rc<OnceCell<RunDescription>>) -> Self {
        Self { run, ..Self::default() }
    }

    fn line(&mut self, line: &ResultLine<impl Serialize>) {
        match text_of(line) {
            Ok(text) => self.lines.extend(text),
            Err(error) => drop(self.error.get_or_insert(error)),
        }
    }
}

fn text_of(line: &ResultLine<impl Serialize>) -> anyhow::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    Ok(text)
}

impl Presenter for Keeper {
    fn leg_started(&mut self, leg: &Leg, tests: usize) {
        self.line(&ResultLine::<()>::Leg { leg: leg.clone(), tests });
    }

    fn test_finished(&mut self, task: &Task, outcome: &TestOutcome) {
        // The text must be read now, because another device of this run may replace the file.
        let pending = outcome.pending().and_then(|path| {
            let text = std::fs::read_to_string(path).with_context(|| path.display().to_string());
            text.map_err(|error| self.error.get_or_insert(error)).ok()
        });
        self.line(&ResultLine::Test(TestResult { task, outcome, pending }));
        self.tests += 1;
    }

    fn note(&mut self, note: &Note) {
        self.line(&ResultLine::<()>::Note(Box::new(note.clone())));
    }

    fn finished(&mut self, tally: &Tally, exit_code: u8) {
        self.line(&ResultLine::<()>::End(RunEnd {
            tests: self.tests,
            elsewhere: tally.elsewhere,
            not_run: tally.not_run,
            interrupted: tally.interrupted,
            exit_code,
            failure: tally.failure.clone(),
            unstarted: tally.unstarted.clone(),
            seconds: tally.took.as_secs_f64(),
        }));
    }
}

impl ReportWriter for Keeper {
    fn text(&self) -> anyhow::Result<Vec<u8>> {
        if let Some(error) = &self.error {
            anyhow::bail!("{error:#}");
        }
        let run = self.run.get().context("the run has no first line")?;
        Ok([text_of(&ResultLine::<()>::Run(Box::new(run.clone())))?, self.lines.clone()].concat())
    }
}
