//! Sentences about parts of a record, for every form of output.

use super::{MappedFile, Outcome, Record};
use crate::device::Family;
use crate::size::both;

impl Record {
    /// A sentence about the fault sweep of the test, or about the reason why the sweep that it asks
    /// for has no effect; `None` if it asks for none.
    pub fn fault_sweep_note(&self) -> Option<String> {
        if let Some(sweep) = &self.fault_sweep {
            return Some(format!("fault sweep: {}", sweep.sentence()));
        }
        if !self.limits.fault_sweep.value.is_on() {
            return None;
        }
        let why = match (self.family, &self.outcome) {
            (Family::Cpu, _) => "it refuses device allocations, and this test runs on the CPU",
            (_, Outcome::Returned) if !self.iterated => "the body does not call `Trial::iterate`",
            (_, Outcome::Failed { .. } | Outcome::Panicked { .. }) => "the body did not return",
            (_, Outcome::Returned) => return None,
        };
        Some(format!("`fault_sweep` had no effect: {why}"))
    }

    /// A sentence about each mapped file whose content is on the device too, if both share one
    /// memory.
    pub fn files_held_twice(&self) -> Vec<String> {
        let Some(unified) = &self.unified else { return Vec::new() };
        let files = self.process.iter().flat_map(|memory| &memory.files);
        let copied = files.filter(|file| file.copied > 0);
        let sentence = |file: &MappedFile| {
            format!(
                "{} are held twice: in the mapped file {} and on {}, and {} has one memory for both",
                both(file.copied),
                file.path,
                unified.space,
                unified.card
            )
        };
        copied.map(sentence).collect()
    }
}
