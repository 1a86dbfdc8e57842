//! A trace in the Chrome format, which Perfetto and `chrome://tracing` open:
//! one process a test, one counter a space, one step of time an iteration.
//!
//! There is no clock in it: a millisecond stands for an iteration, so that two
//! runs of the same code give the same file.

use serde_json::{Value, json};

use super::{Presenter, Report};
use crate::run::{Outcome, Task};

/// Microseconds that stand for one iteration.
const ITERATION: usize = 1_000;

/// Collects the events.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    events: Vec<Value>,
    tests: usize,
}

impl Presenter for Trace {
    fn test_finished(&mut self, task: &Task, outcome: &Outcome) {
        let Some(report) = &outcome.report else { return };
        self.tests += 1;
        let process = self.tests;
        let name = format!("{} {} on {}", task.binary.id, task.entry.name, task.leg.name());
        self.events.push(json!({
            "ph": "M", "name": "process_name", "pid": process, "args": {"name": name},
        }));
        for (space, measured) in &report.record.spaces {
            let series = measured.allocated.iter().zip(&measured.peak).enumerate();
            for (iteration, (allocated, peak)) in series {
                self.events.push(json!({
                    "ph": "C", "name": space, "pid": process, "ts": iteration * ITERATION,
                    "args": {"allocated": allocated, "peak": peak},
                }));
            }
        }
        let judged = report.record.judged.first();
        let iterations = judged.and_then(|space| report.record.spaces.get(space));
        for iteration in 0..iterations.map_or(0, |measured| measured.allocated.len()) {
            self.events.push(json!({
                "ph": "X", "name": "iteration", "pid": process, "tid": 1,
                "ts": iteration * ITERATION, "dur": ITERATION, "args": {"iteration": iteration},
            }));
        }
    }
}

impl Report for Trace {
    fn text(&self) -> anyhow::Result<Vec<u8>> {
        Ok(serde_json::to_vec(&json!({"traceEvents": self.events, "displayTimeUnit": "ms"}))?)
    }
}
