//! A task and the report of its test, for unit tests.

use std::collections::BTreeMap;

use memcheck_core::device::{Family, Need, Request};
use memcheck_core::limits::{Layer, Limits};
use memcheck_core::measurement::record;
use memcheck_core::wire::protocol::{Entry, VERSION};
use serde_json::{Value, json};

use super::{Task, TestSubject};
use crate::invocation::devices::{DeviceKind, Leg};
use crate::system::binary::Binary;

pub(crate) fn task() -> Task {
    Task {
        package: "app".to_owned(),
        folder: "/app".into(),
        candle: "0.11.1".to_owned(),
        binary: Binary {
            id: "app::mem".to_owned(),
            package: 0,
            path: "/app/mem".into(),
            environment: Vec::new(),
        },
        subject: TestSubject::Test(Box::new(Entry {
            name: "a::b".to_owned(),
            module: "mem::a".to_owned(),
            case: BTreeMap::new(),
            file: "tests/mem.rs".into(),
            line: 3,
            ignored: false,
            need: Need::Any,
            deviceless: false,
            attribute: Layer::default(),
            scaling: Vec::new(),
            manifest_dir: "/app".into(),
            snapshot: "mem__a__b".to_owned(),
        })),
        leg: Leg::new(Request::Cpu, DeviceKind::Cpu, ""),
        limits: Limits::resolve(Family::Cpu, []),
    }
}

pub(crate) fn report() -> Value {
    let limits = serde_json::to_value(Limits::resolve(Family::Cpu, [])).unwrap();
    json!({
        "version": VERSION,
        "record": {
            "version": record::VERSION, "package": "app", "test": "a::b", "device": "cpu",
            "family": "cpu", "judged": ["host"], "outcome": {"kind": "returned"},
            "iterated": true, "limits": limits, "iterations": 10, "lost_events": 0,
            "facts": {"memcheck": 1, "candle": "0.11.1", "profile": "debug",
                      "iterations": 10, "warmup": 2},
            "spaces": {"host": {
                "metrics": {"allocated": 0, "peak_allocated": 0, "setup": 0, "growth": 0,
                            "retained": 0, "allocations": 0, "allocated_total": 0},
                "allocated": [], "peak": [], "armed": true}},
        },
        "verdict": {"status": "passed", "findings": []},
    })
}
