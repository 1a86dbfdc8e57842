//! Recordings of the driver's allocation calls, and the comparison with them.
//!
//! `tests/recordings/DEVICE/WORKLOAD.calls` lists the allocation calls of a workload on a device. A
//! workload must make the same calls on every device, because the simulated device is useful only
//! as far as it agrees with real ones.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};

/// With the value `write`, a run is recorded instead of compared. With a path, it is compared with
/// the recordings in that folder.
pub const VARIABLE: &str = "FIDELITY_RECORDINGS";

const WRITE: &str = "write";

/// The number of calls shown around the first one that differs.
const AROUND: usize = 3;

/// The device and driver of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Maker {
    /// The folder of the recording: `sim`, or the card.
    pub device: String,
    /// The lines at the head of the file: card and driver.
    pub facts: Vec<String>,
}

/// The recordings of this package, or those that [`VARIABLE`] names.
pub fn folder() -> PathBuf {
    match std::env::var_os(VARIABLE).filter(|value| value != WRITE) {
        Some(folder) => folder.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings"),
    }
}

/// Compares the calls of a workload with every recording of it, or records them.
///
/// # Errors
///
/// When the workload has no recording, or the calls differ from one. The error shows the first call
/// that differs and those around it.
pub fn check(
    folder: &Path,
    workload: &str,
    mut calls: Vec<String>,
    maker: &Maker,
) -> anyhow::Result<()> {
    order(&mut calls);
    let calls = &calls;
    if std::env::var_os(VARIABLE).is_some_and(|value| value == WRITE) {
        return write(&folder.join(&maker.device), workload, calls, maker);
    }
    let mut compared = 0;
    let entries = std::fs::read_dir(folder)
        .with_context(|| format!("cannot read the recordings in {}", folder.display()))?;
    for entry in entries {
        let file = entry?.path().join(format!("{workload}.calls"));
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        let recorded: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        if let Some(difference) = difference(&recorded, calls) {
            bail!("{} differs from {}:\n{difference}", maker.device, file.display());
        }
        compared += 1;
    }
    ensure!(compared > 0, "no recording of `{workload}`: run once with {VARIABLE}=write");
    Ok(())
}

/// Sorts successive frees. candle drops gradients in the order of a hash map, which differs in
/// every process. No figure depends on that order.
fn order(calls: &mut [String]) {
    let is_free = |call: &str| call.contains("Free");
    for frees in calls.chunk_by_mut(|one, two| is_free(one) && is_free(two)) {
        frees.sort();
    }
}

/// Writes the recording of a workload to `folder`, which is that of one device.
///
/// # Errors
///
/// When the file cannot be written.
pub fn write(folder: &Path, workload: &str, calls: &[String], maker: &Maker) -> anyhow::Result<()> {
    let facts = maker.facts.iter().map(|fact| format!("# {fact}\n"));
    let lines = calls.iter().map(|call| format!("{call}\n"));
    std::fs::create_dir_all(folder)?;
    std::fs::write(
        folder.join(format!("{workload}.calls")),
        facts.chain(lines).collect::<String>(),
    )?;
    Ok(())
}

/// The first call that differs, or `None`.
fn difference(recorded: &[&str], calls: &[String]) -> Option<String> {
    let length = recorded.len().max(calls.len());
    let at =
        (0..length).find(|&at| recorded.get(at).copied() != calls.get(at).map(String::as_str))?;
    let name = |call: Option<&str>| call.unwrap_or("nothing more").to_owned();
    let (was, is) = (name(recorded.get(at).copied()), name(calls.get(at).map(String::as_str)));
    let mut text = format!("call {} of {}: recorded `{was}`, made `{is}`", at + 1, length);
    for before in calls[at.saturating_sub(AROUND)..at].iter().rev() {
        let _ = write!(text, "\n    after {before}");
    }
    Some(text)
}
