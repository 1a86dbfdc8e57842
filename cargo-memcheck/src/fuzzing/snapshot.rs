//! A snapshot file, accepted or pending.

use std::cell::RefCell;
use std::path::PathBuf;

use crate::baselines::{SnapshotFile, check, diff};

thread_local! {
    static FOLDER: RefCell<Option<tempfile::TempDir>> = const { RefCell::new(None) };
}

/// Checks the snapshot, and compares it with itself and with a valid one in both directions.
pub fn snapshot(input: &[u8]) {
    const VALID: &[u8] = include_bytes!("../../../fuzz/corpus/snapshot/figures.snap");
    let [new, old] = FOLDER.with_borrow_mut(|folder| {
        let folder = folder.get_or_insert_with(|| tempfile::tempdir().expect("a temporary folder"));
        ["a.snap.new", "a.snap"].map(|name| folder.path().join(name))
    });
    for (pending, accepted) in [(input, VALID), (VALID, input), (input, input)] {
        std::fs::write(&new, pending).expect("the folder can be written");
        std::fs::write(&old, accepted).expect("the folder can be written");
        compare(new.clone(), old.clone());
    }
}

fn compare(path: PathBuf, target: PathBuf) {
    let Ok(checked) = check(&path) else { return };
    let file = SnapshotFile { path, target, test: "mem::a".to_owned(), family: None };
    let _ = diff::text(&file, &checked);
    let _ = checked.body.to_yaml();
}
