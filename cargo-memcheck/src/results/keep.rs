//! Keeping results: told everything like any other presenter, and written at
//! the end of the run.

use std::time::Instant;

use anyhow::Context;
use serde::Serialize;

use super::Run;
use super::line::{End, Kept, Line};
use crate::devices::Leg;
use crate::note::Note;
use crate::presenter::{Presenter, Report};
use crate::tally::Tally;
use crate::task::{Outcome, Task};

/// Collects the lines of the file.
#[derive(Debug)]
pub(crate) struct Keeper {
    lines: Vec<u8>,
    tests: usize,
    started: Instant,
    /// Why the file would not be whole.
    error: Option<anyhow::Error>,
}

impl Keeper {
    /// Begins with what the run is.
    pub(crate) fn new(run: &Run) -> Self {
        let mut keeper = Self { lines: Vec::new(), tests: 0, started: Instant::now(), error: None };
        keeper.line(&Line::<()>::Run(Box::new(run.clone())));
        keeper
    }

    fn line(&mut self, line: &Line<impl Serialize>) {
        if let Err(error) = serde_json::to_writer(&mut self.lines, line) {
            self.error.get_or_insert(error.into());
        }
        self.lines.push(b'\n');
    }
}

impl Presenter for Keeper {
    fn leg_started(&mut self, leg: &Leg, tests: usize) {
        self.line(&Line::<()>::Leg { leg: leg.clone(), tests });
    }

    fn test_finished(&mut self, task: &Task, outcome: &Outcome) {
        // Now: another device of this run may replace it.
        let pending = outcome.pending().and_then(|path| {
            let text = std::fs::read_to_string(path).with_context(|| path.display().to_string());
            text.map_err(|error| self.error.get_or_insert(error)).ok()
        });
        self.line(&Line::Test(Kept { task, outcome, pending }));
        self.tests += 1;
    }

    fn note(&mut self, note: &Note) {
        self.line(&Line::<()>::Note(Box::new(note.clone())));
    }

    fn finished(&mut self, tally: &Tally, exit_code: u8) {
        self.line(&Line::<()>::End(End {
            tests: self.tests,
            elsewhere: tally.elsewhere,
            not_run: tally.not_run,
            interrupted: tally.interrupted,
            exit_code,
            seconds: self.started.elapsed().as_secs_f64(),
        }));
    }
}

impl Report for Keeper {
    fn text(&self) -> anyhow::Result<Vec<u8>> {
        match &self.error {
            None => Ok(self.lines.clone()),
            Some(error) => Err(anyhow::anyhow!("{error:#}")),
        }
    }
}
