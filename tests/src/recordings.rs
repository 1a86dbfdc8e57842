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

fn write(folder: &Path, workload: &str, calls: &[String], maker: &Maker) -> anyhow::Result<()> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn equal_calls_have_no_difference() {
        assert_eq!(difference(&["a", "b"], &calls("a b")), None);
    }

    #[test]
    fn the_first_difference_is_shown_with_the_calls_before_it() {
        let text = difference(&["a", "b", "c"], &calls("a b d")).unwrap();
        assert_eq!(text, "call 3 of 3: recorded `c`, made `d`\n    after b\n    after a");
        let short = difference(&["a", "b"], &calls("a")).unwrap();
        assert!(short.contains("recorded `b`, made `nothing more`"), "{short}");
        let long = difference(&["a"], &calls("a b")).unwrap();
        assert!(long.contains("recorded `nothing more`, made `b`"), "{long}");
    }

    #[test]
    fn frees_in_a_row_are_compared_as_a_set() {
        let mut ordered = calls("Free.2 Free.1 Alloc.3 Free.9 Alloc.1 Alloc.0");
        order(&mut ordered);
        assert_eq!(ordered, calls("Free.1 Free.2 Alloc.3 Free.9 Alloc.1 Alloc.0"));
    }

    #[test]
    fn a_workload_without_a_recording_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let maker = Maker { device: "sim".to_owned(), facts: vec!["now".to_owned()] };
        let error = check(folder.path(), "new", calls("a"), &maker).unwrap_err();
        assert!(error.to_string().contains("no recording of `new`"), "{error}");
        write(&folder.path().join("card"), "new", &calls("a b"), &maker).unwrap();
        check(folder.path(), "new", calls("a b"), &maker).unwrap();
        let error = check(folder.path(), "new", calls("a c"), &maker).unwrap_err();
        assert!(error.to_string().contains("recorded `b`, made `c`"), "{error}");
    }
}
