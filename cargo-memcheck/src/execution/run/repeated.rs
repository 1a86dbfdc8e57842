//! `--repeat N`: runs a test several times in a row and finds the figures that differ.
//!
//! Each of the runs is a complete measurement without call sites, and has its own processes.

use std::num::NonZeroU32;

use memcheck_core::judgement::verdict::Status;
use memcheck_core::measurement::comparison;
use memcheck_core::measurement::record::Record;
use memcheck_core::runs::measured::Concluded;
use memcheck_core::runs::plan::Stage;
use memcheck_core::wire::protocol::Progress;

use super::{Runner, TestRuns};
use crate::discovery::task::Task;
use crate::system::gpus::Slot;

impl Runner<'_> {
    /// A run whose body failed or whose process left no report ends the series. `None` if one was
    /// interrupted.
    pub(super) fn repeated(
        &self,
        slot: Option<&Slot<'_>>,
        task: &Task,
        times: NonZeroU32,
        on_progress: impl Fn(Stage, Progress) + Send + Clone + 'static,
    ) -> anyhow::Result<Option<TestRuns>> {
        let measure = || self.series(slot, task, Stage::FIGURES, on_progress.clone());
        let Some(mut first) = measure()? else { return Ok(None) };
        let judged = self.judged(&first);
        let Some(record) = complete_record(&judged) else { return Ok(Some(first)) };
        let mut further = Vec::new();
        let mut failed = None;
        for number in 2..=times.get() {
            let Some(mut next) = measure()? else { return Ok(None) };
            next.series = Some(format!("in run {number} of {times}"));
            first.duration += next.duration;
            let judged = self.judged(&next);
            match complete_record(&judged) {
                Some(complete) if complete.outcome == record.outcome => {
                    further.extend(comparison::runs(complete));
                }
                _ => return Ok(Some(next)),
            }
            if judged.verdict.status == Status::Failed {
                failed.get_or_insert(next);
            }
        }
        first.test.series = Some((times.get(), further));
        Ok(Some(match failed {
            // A later run can fail because of figures that the comparison leaves out, such as those
            // of the driver's pool.
            Some(next) if self.judged(&first).verdict.status != Status::Failed => next,
            _ => first,
        }))
    }
}

fn complete_record(judged: &Concluded) -> Option<&Record> {
    let cut_short = judged.verdict.findings.iter().any(|finding| finding.code.cut_it_short());
    judged.record.as_ref().filter(|_| !cut_short)
}
