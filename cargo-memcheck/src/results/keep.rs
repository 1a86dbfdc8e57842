//! Keeping results: told everything like any other presenter, and written at
//! the end of the run.

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
#[derive(Debug, Default)]
pub(crate) struct Keeper {
    /// The first line, once it is known.
    run: Vec<u8>,
    /// Those behind it.
    lines: Vec<u8>,
    tests: usize,
    /// Why the file would not be whole.
    error: Option<anyhow::Error>,
}

impl Keeper {
    fn line(&mut self, line: &Line<impl Serialize>) {
        let text = self.text_of(line);
        self.lines.extend(text);
    }

    fn text_of(&mut self, line: &Line<impl Serialize>) -> Vec<u8> {
        let mut text = serde_json::to_vec(line).unwrap_or_else(|error| {
            self.error.get_or_insert(error.into());
            Vec::new()
        });
        text.push(b'\n');
        text
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

    fn selected(&mut self, run: &Run) {
        self.run = self.text_of(&Line::<()>::Run(Box::new(run.clone())));
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
            failure: tally.failure.clone(),
            unstarted: tally.unstarted.clone(),
            seconds: tally.took.as_secs_f64(),
        }));
    }
}

impl Report for Keeper {
    fn text(&self) -> anyhow::Result<Vec<u8>> {
        match &self.error {
            None if self.run.is_empty() => Err(anyhow::anyhow!("the run has no first line")),
            None => Ok([self.run.as_slice(), &self.lines].concat()),
            Some(error) => Err(anyhow::anyhow!("{error:#}")),
        }
    }
}
