//! The file with the proofs of all devices, in the folder of the command's own files.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use memcheck_core::input;
use serde::{Deserialize, Serialize};

use super::{CheckedProof, Identity, Proof, Versions};
use crate::system::files;

const FILE: &str = "proof.json";
const VERSION: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
struct ProofFile {
    version: u32,
    /// By the name of the device.
    devices: BTreeMap<String, StoredProof>,
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredProof {
    proof: Proof,
    identity: Identity,
}

/// Replaces the proof of its device.
///
/// # Errors
/// If the file cannot be written.
pub(crate) fn store(folder: &Path, proof: Proof, identity: Identity) -> anyhow::Result<()> {
    let path = folder.join(FILE);
    let mut file = load(&path).unwrap_or(ProofFile { version: VERSION, devices: BTreeMap::new() });
    file.devices.insert(proof.device.clone(), StoredProof { proof, identity });
    let text = serde_json::to_vec(&file)?;
    files::replace(&path, &text).with_context(|| path.display().to_string())
}

/// The proofs of all devices, compared with the versions that `now` returns. It is called only if
/// there is a proof. A file that cannot be read is no proof.
pub(crate) fn read(
    folder: &Path,
    now: impl FnOnce() -> Versions,
) -> BTreeMap<String, CheckedProof> {
    let Some(file) = load(&folder.join(FILE)) else { return BTreeMap::new() };
    let now = now();
    let checked = |StoredProof { proof, identity }: StoredProof| {
        let changed = identity.changes(&now);
        CheckedProof { proof, changed }
    };
    file.devices.into_iter().map(|(device, stored)| (device, checked(stored))).collect()
}

fn load(path: &Path) -> Option<ProofFile> {
    let text = input::read(path, input::OWN).ok()?;
    let file: ProofFile = serde_json::from_slice(&text).ok()?;
    (file.version == VERSION && !file.devices.is_empty()).then_some(file)
}

#[cfg(test)]
mod tests {
    use super::super::ProofState;
    use super::super::identity::tests::identity;
    use super::super::tests::example;
    use super::*;

    #[test]
    fn a_stored_proof_is_current_until_its_executable_changes() {
        let folder = tempfile::tempdir().unwrap();
        let planted = folder.path().join("planted");
        std::fs::write(&planted, "1").unwrap();
        let identity = identity(&planted, &planted);
        let versions = identity.versions.clone();
        let own = folder.path();
        let never = || panic!("there is no proof");
        assert!(read(own, never).is_empty());
        store(own, example(&[]).proof, identity.clone()).unwrap();
        let cpu = Proof { device: "cpu".to_owned(), ..example(&[]).proof };
        store(own, cpu, identity).unwrap();
        let state = || read(own, || versions.clone())["sim:h200"].state();
        assert_eq!((state(), read(own, Versions::default).len()), (ProofState::Current, 2));
        std::fs::write(&planted, "22").unwrap();
        assert_eq!(state(), ProofState::Stale);
        std::fs::write(own.join(FILE), "{").unwrap();
        assert!(read(own, never).is_empty());
    }
}
