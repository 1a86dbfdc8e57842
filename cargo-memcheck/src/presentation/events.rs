//! The events of a run, which presenters display and results store.

use std::io::Write;

use memcheck_core::runs::plan::Stage;
use memcheck_core::wire::protocol::Progress;

use crate::build::leg::Leg;
use crate::discovery::task::{Task, TestOutcome};
use crate::execution::note::Note;
use crate::execution::proof::CheckedProof;
use crate::presentation::origin::RunOrigin;
use crate::presentation::tally::Tally;

pub(crate) trait Presenter {
    /// Comes first. Results of an earlier version do not have it.
    fn run_started(&mut self, _run: &RunOrigin) {}
    fn leg_started(&mut self, _leg: &Leg, _tests: usize) {}
    /// Follows the start of its leg, if `doctor` has run on such a device.
    fn proof(&mut self, _leg: &Leg, _proof: &CheckedProof) {}
    fn test_started(&mut self, _task: &Task) {}
    /// The stage is that of the run which reports.
    fn progress(&mut self, _task: &Task, _stage: Stage, _progress: &Progress) {}
    fn test_finished(&mut self, _task: &Task, _outcome: &TestOutcome) {}
    fn leg_finished(&mut self, _leg: &Leg, _tally: &Tally) {}
    fn note(&mut self, _note: &Note) {}
    fn finished(&mut self, _tally: &Tally, _exit_code: u8) {}
}

/// Receives all events; its text is read at the end. The text must show an error that ended the
/// run.
pub(crate) trait ReportWriter: Presenter {
    fn text(&self) -> anyhow::Result<Vec<u8>>;

    /// Lines of the sources refer to an editor instead of the web. `template` has `{path}` and `{line}`.
    fn link_to_editor(&mut self, _template: &str) {}

    /// Writes the text. A report that can be larger than the memory must not make it as a whole.
    fn write_to(&self, to: &mut dyn Write) -> anyhow::Result<()> {
        Ok(to.write_all(&self.text()?)?)
    }
}
