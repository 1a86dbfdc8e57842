//! A task for unit tests. [`report`] is the report of its test.

use std::collections::BTreeMap;

use memcheck_core::device::{Family, Need, Request};
use memcheck_core::limits::{Layer, Limits};
use memcheck_core::wire::protocol::Entry;

#[cfg(test)]
pub(crate) use memcheck_core::wire::example::report;

use super::{Task, TestSubject};
use crate::build::leg::{DeviceKind, Leg};
use crate::system::binary::Binary;

pub(crate) fn task() -> Task {
    Task {
        package: "app".to_owned(),
        folder: "/app".into(),
        candle: "0.11.1".to_owned(),
        features: None,
        binary: Binary::new("app::mem".to_owned(), 0, "/app/mem".into(), Vec::new()),
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
