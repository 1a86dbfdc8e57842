//! `--repeat N`: runs a test several times in a row and finds the figures that differ.
//!
//! Each of the runs is a complete measurement without call sites, and has its own processes.

use std::num::NonZeroU32;

use memcheck_core::judgement::verdict::Status;
use memcheck_core::measurement::comparison;
use memcheck_core::measurement::record::Record;
use memcheck_core::runs::explain::{self, Stage};
use memcheck_core::wire::protocol::Progress;

use super::{Runner, names};
use crate::discovery::task::{Task, TestOutcome};
use crate::system::gpus::Slot;

impl Runner<'_> {
    /// A run whose body failed or whose process left no report ends the series. `None` if one was
    /// interrupted.
    pub(super) fn repeated(
        &self,
        slot: Option<&Slot<'_>>,
        task: &Task,
        times: NonZeroU32,
        on_progress: impl Fn(Progress) + Send + Clone + 'static,
    ) -> anyhow::Result<Option<TestOutcome>> {
        let measure = || self.measured(slot, task, &Stage::FIGURES, on_progress.clone());
        let Some(mut first) = measure()? else { return Ok(None) };
        let Some(record) = complete_record(&first) else { return Ok(Some(first)) };
        let ended = record.outcome.clone();
        let mut further = Vec::new();
        let mut failed = None;
        for number in 2..=times.get() {
            let Some(next) = measure()? else { return Ok(None) };
            first.duration += next.duration;
            match complete_record(&next) {
                Some(record) if record.outcome == ended => further.extend(comparison::runs(record)),
                _ => return Ok(Some(in_run(next, number, times))),
            }
            if next.verdict.status == Status::Failed {
                failed.get_or_insert((next, number));
            }
        }
        let Some(report) = first.report.take() else { return Ok(Some(first)) };
        let baseline = names::baseline(&report);
        let report = explain::together(report, further, times.get(), &baseline, self.level());
        let judged = explain::concluded(first.take_judged(), report, self.level());
        let outcome = self.finished(first, judged);
        Ok(Some(match failed {
            // A later run can fail because of figures that the comparison leaves out, such as those
            // of the driver's pool.
            Some((next, number)) if outcome.verdict.status != Status::Failed => {
                in_run(next, number, times)
            }
            _ => outcome,
        }))
    }
}

fn complete_record(outcome: &TestOutcome) -> Option<&Record> {
    let cut_short = outcome.verdict.findings.iter().any(|finding| finding.code.cut_it_short());
    outcome.report.as_ref().filter(|_| !cut_short).map(|report| &report.record)
}

fn in_run(mut outcome: TestOutcome, number: u32, times: NonZeroU32) -> TestOutcome {
    let findings = outcome.verdict.findings.iter_mut();
    for finding in findings {
        finding.message = format!("in run {number} of {times}: {}", finding.message);
    }
    outcome
}
