//! The measurement and the report of a passed test as JSON, which the unit tests of several crates change and parse.

use serde_json::{Value, json};

use super::protocol::VERSION;
use crate::device::Family;
use crate::limits::Limits;
use crate::measurement::record;

/// A report of the test `a::b` of the package `app` on the CPU.
pub fn report() -> Value {
    let mut report = measurement();
    report["verdict"] = json!({"status": "passed", "findings": []});
    report
}

/// What the process of that test leaves.
pub fn measurement() -> Value {
    json!({
        "version": VERSION,
        "record": {
            "version": record::VERSION, "package": "app", "test": "a::b", "device": "cpu",
            "family": "cpu", "judged": ["host"], "outcome": {"kind": "returned"},
            "iterated": true, "limits": Limits::resolve(Family::Cpu, []), "iterations": 10,
            "lost_events": 0,
            "facts": {"memcheck": 1, "candle": "0.11.1", "profile": "debug",
                      "iterations": 10, "warmup": 2},
            "spaces": {"host": {
                "metrics": {"allocated": 0, "peak_allocated": 0, "setup": 0, "growth": 0,
                            "retained": 0, "allocations": 0, "allocated_total": 0},
                "allocated": [], "peak": [], "armed": true}},
        },
    })
}
