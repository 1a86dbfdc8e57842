//! The section of the first page with the evidence that figures are right: the canaries of this run,
//! and the proof of `doctor` for each device.

use maud::{Markup, html};
use memcheck_core::size::exact;

use crate::build::leg::Leg;
use crate::discovery::task::TestOutcome;
use crate::execution::proof::{CheckedProof, ProofState};
use crate::invocation::printed::PrintedCommand;

#[derive(Debug, Default)]
pub(super) struct Proofs {
    legs: Vec<(String, Option<CheckedProof>)>,
    /// Tests with a record.
    measured: u64,
    /// Tests whose probes saw the canary in each judged space.
    seen: u64,
}

impl Proofs {
    pub(super) fn add_leg(&mut self, leg: &Leg) {
        let name = leg.name();
        if self.legs.iter().all(|(known, _)| *known != name) {
            self.legs.push((name, None));
        }
    }

    pub(super) fn add(&mut self, leg: &Leg, proof: &CheckedProof) {
        let name = leg.name();
        let known = self.legs.iter_mut().find(|(known, _)| *known == name);
        if let Some((_, place)) = known {
            *place = Some(proof.clone());
        }
    }

    pub(super) fn add_canary(&mut self, outcome: &TestOutcome) {
        let Some(report) = &outcome.report else { return };
        let record = &report.record;
        let is_armed = |space| record.spaces.get(space).is_some_and(|measured| measured.armed);
        self.measured += 1;
        self.seen += u64::from(!record.judged.is_empty() && record.judged.iter().all(is_armed));
    }

    pub(super) fn section(&self) -> Markup {
        html! {
            @if !self.legs.is_empty() {
                h2 { "Are the figures right?" }
                ul.proofs {
                    li {
                        "this run: before the body of a test, memcheck allocates a block of a known size in each "
                        "memory space; it was counted in "
                        (exact(self.seen)) " of " (exact(self.measured)) " measured tests"
                    }
                    @for (leg, proof) in &self.legs { (line(leg, proof.as_ref())) }
                }
            }
        }
    }
}

fn line(leg: &str, proof: Option<&CheckedProof>) -> Markup {
    let (state, text) = match proof {
        Some(proof) => {
            let state = match proof.state() {
                ProofState::Current => "current",
                ProofState::Stale => "stale",
                ProofState::Failed => "failed",
            };
            (state, proof.text())
        }
        None => {
            let doctor = PrintedCommand::CheckDevice.quoted(["--device", leg]);
            let text = format!("no planted leak was run: {doctor}");
            ("absent", text)
        }
    };
    html! { li data-proof=(state) { span.device { (leg) } ": " (super::markup::prose(&text)) } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::task::example::task;
    use crate::execution::proof::tests::example;
    use crate::presentation::presenters::example::leaky;

    #[test]
    fn a_report_states_what_proves_its_figures() {
        let leg = task().leg;
        let page = |proof: Option<CheckedProof>, armed: bool| {
            let mut outcome = leaky();
            let record = &mut outcome.report.as_mut().unwrap().record;
            record.spaces.values_mut().for_each(|measured| measured.armed = armed);
            let mut proofs = Proofs::default();
            proofs.add_leg(&leg);
            if let Some(proof) = proof {
                proofs.add(&leg, &proof);
            }
            proofs.add_canary(&outcome);
            proofs.section().into_string()
        };
        let current = page(Some(example(&[])), true);
        assert!(current.contains("1 of 1 measured tests"), "{current}");
        assert!(current.contains("<li data-proof=\"current\">"), "{current}");
        assert!(current.contains("12 figures were identical in 5 runs"), "{current}");
        let stale = page(Some(example(&["the command has changed"])), true);
        assert!(stale.contains("<li data-proof=\"stale\">"), "{stale}");
        let absent = page(None, false);
        assert!(absent.contains("0 of 1 measured tests"), "{absent}");
        assert!(absent.contains("<li data-proof=\"absent\">"), "{absent}");
        assert!(absent.contains("<code>cargo memcheck doctor --device cpu</code>"), "{absent}");
    }
}
