//! The proof that memory is measured correctly on this machine. `doctor` runs planted leaks and
//! their clean twin, and stores the evidence with its date and its versions. A run reads it again:
//! it is out of date as soon as a version, the command, the instrument or the planted executable
//! has changed.

mod file;
mod identity;
mod watched;

use std::collections::BTreeMap;

use memcheck_core::size::{counted, exact};
use memcheck_core::space::Space;
use serde::{Deserialize, Serialize};

pub(crate) use file::{read, store};
pub(crate) use identity::Identity;

use crate::build::leg::{DeviceKind, Leg};
use crate::discovery::session::Session;
use crate::invocation::printed::PrintedCommand;

/// The result of `doctor` on one device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Proof {
    /// As RFC 3339 in UTC.
    pub(crate) time: String,
    pub(crate) device: String,
    pub(crate) versions: Versions,
    #[serde(flatten)]
    pub(crate) result: ProofResult,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ProofResult {
    Evidence(ProofEvidence),
    /// The reason why the device is not proven to be measured.
    Failure(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProofEvidence {
    /// The spaces whose probe saw the canary come and go in every run.
    pub(crate) canary: Vec<Space>,
    pub(crate) leak: FoundLeak,
    pub(crate) exactness: Exactness,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FoundLeak {
    pub(crate) planted_bytes_per_iteration: u64,
    pub(crate) found_bytes_per_iteration: u64,
    /// `src/lib.rs:12`. `None` if the build has no line tables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<String>,
}

/// All figures were identical in all runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Exactness {
    pub(crate) runs: usize,
    /// Of all planted tests.
    pub(crate) figures: usize,
}

/// The versions that the proof is valid for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Versions {
    pub(crate) memcheck: String,
    pub(crate) runtime: String,
    pub(crate) candle: String,
    pub(crate) rustc: String,
    pub(crate) profile: String,
}

/// A stored proof, compared with the present state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CheckedProof {
    #[serde(flatten)]
    pub(crate) proof: Proof,
    /// Empty if the proof is up to date.
    #[serde(default)]
    pub(crate) changed: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ProofState {
    Current,
    Stale,
    Failed,
}

/// The proofs of this machine for the legs of a session. An archive was built elsewhere, so that no
/// proof of this machine is about it.
pub(crate) fn of(session: &Session) -> BTreeMap<String, CheckedProof> {
    if session.source.archive().is_some() {
        return BTreeMap::new();
    }
    let Session { workspace, options, legs, .. } = session;
    let stored = read(&workspace.own_directory(), || Versions::of(workspace, &options.cargo));
    legs.iter().filter_map(|leg| Some((leg.name(), matching(&stored, leg)?.clone()))).collect()
}

/// All simulated machines share one build and one instrument.
fn matching<'a>(stored: &'a BTreeMap<String, CheckedProof>, leg: &Leg) -> Option<&'a CheckedProof> {
    let is_simulated = |proof: &&CheckedProof| {
        leg.kind == DeviceKind::Sim && proof.proof.device.starts_with("sim")
    };
    stored.get(&leg.name()).or_else(|| stored.values().find(is_simulated))
}

impl CheckedProof {
    pub(crate) fn state(&self) -> ProofState {
        match (&self.proof.result, self.changed.as_slice()) {
            // First, because a failure of other versions is out of date too.
            (_, [_, ..]) => ProofState::Stale,
            (ProofResult::Failure(_), []) => ProofState::Failed,
            (ProofResult::Evidence(_), []) => ProofState::Current,
        }
    }

    /// One sentence for people, without the device of the run.
    pub(crate) fn text(&self) -> String {
        let Proof { time, device, versions, result } = &self.proof;
        let Versions { memcheck, runtime: _, candle, rustc, profile } = versions;
        let built = format!("memcheck {memcheck}, candle {candle}, {rustc}, profile {profile}");
        match (self.state(), result) {
            (ProofState::Stale, _) => format!(
                "the proof of {time} is out of date, because {}; run {}",
                self.changed.join(", and "),
                PrintedCommand::CheckDevice.quoted(["--device", device]),
            ),
            (_, ProofResult::Failure(why)) => format!("not proven at {time}: {why} ({built})"),
            (_, ProofResult::Evidence(evidence)) => {
                format!("proven at {time} on {device}: {} ({built})", evidence.lines().join("; "))
            }
        }
    }
}

impl ProofEvidence {
    /// Canary, planted leak and exactness.
    pub(crate) fn lines(&self) -> [String; 3] {
        let spaces: Vec<String> = self.canary.iter().map(Space::to_string).collect();
        let leak = &self.leak;
        let line = leak.line.as_ref().map(|line| format!(" at {line}")).unwrap_or_default();
        let Exactness { runs, figures } = self.exactness;
        [
            format!("the canary was seen in {} in every run", spaces.join(", ")),
            format!(
                "the planted leak of {} B per iteration was found to the byte{line}, and its clean \
                 twin passed",
                exact(leak.found_bytes_per_iteration)
            ),
            format!(
                "{} identical in {}",
                match figures {
                    1 => "1 figure was".to_owned(),
                    _ => format!("{figures} figures were"),
                },
                counted(runs as u64, "run", "runs")
            ),
        ]
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn example(changed: &[&str]) -> CheckedProof {
        let text = |text: &str| text.to_owned();
        let versions = Versions {
            memcheck: text("0.1.0"),
            runtime: text("0.1.0"),
            candle: text("0.11.0"),
            rustc: text("rustc 1.95.0"),
            profile: text("dev"),
        };
        let evidence = ProofEvidence {
            canary: vec![Space::Cuda(0)],
            leak: FoundLeak {
                planted_bytes_per_iteration: 1 << 20,
                found_bytes_per_iteration: 1 << 20,
                line: Some(text("src/lib.rs:12")),
            },
            exactness: Exactness { runs: 5, figures: 12 },
        };
        let proof = Proof {
            time: text("2026-11-23T06:00:00Z"),
            device: text("sim:h200"),
            versions,
            result: ProofResult::Evidence(evidence),
        };
        CheckedProof { proof, changed: changed.iter().map(|&it| it.to_owned()).collect() }
    }

    #[test]
    fn a_proof_names_its_evidence_and_a_changed_version_makes_it_stale() {
        let current = example(&[]);
        assert_eq!(current.state(), ProofState::Current);
        assert_eq!(
            current.text(),
            "proven at 2026-11-23T06:00:00Z on sim:h200: the canary was seen in cuda:0 in every \
             run; the planted leak of 1,048,576 B per iteration was found to the byte at \
             src/lib.rs:12, and its clean twin passed; 12 figures were identical in 5 runs \
             (memcheck 0.1.0, candle 0.11.0, rustc 1.95.0, profile dev)"
        );
        let stale = example(&["the command has changed"]);
        assert_eq!(stale.state(), ProofState::Stale);
        assert!(stale.text().contains("is out of date, because the command has changed; run"));
        let mut failed = example(&[]);
        failed.proof.result = ProofResult::Failure("no finding".to_owned());
        assert_eq!(failed.state(), ProofState::Failed);
        assert!(failed.text().starts_with("not proven at 2026-11-23T06:00:00Z: no finding ("));
    }

    #[test]
    fn a_proof_is_read_back_from_results() {
        for proof in [example(&[]), example(&["the command has changed"])] {
            let text = serde_json::to_string(&proof).unwrap();
            assert_eq!(serde_json::from_str::<CheckedProof>(&text).unwrap(), proof);
        }
    }
}
