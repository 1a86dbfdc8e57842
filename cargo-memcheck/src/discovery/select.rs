//! Selects the tests that run on a leg, and gives the reason for leaving out the others.

use memcheck_core::wire::protocol::Entry;

use crate::build::leg::Leg;
use crate::invocation::options::Selection;
use crate::invocation::values::RunIgnored;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    Run,
    Ignored,
    Elsewhere,
    Filtered,
}

pub(crate) fn choose(selection: &Selection, leg: &Leg, package: &str, entry: &Entry) -> Choice {
    let named = |pattern: &String| {
        if selection.exact { entry.name == *pattern } else { entry.name.contains(pattern) }
    };
    if !selection.filters.is_empty() && !selection.filters.iter().any(named) {
        return Choice::Filtered;
    }
    if selection.skip.iter().any(named) {
        return Choice::Filtered;
    }
    if selection.partition.is_some_and(|partition| !partition.contains_test(package, &entry.name)) {
        return Choice::Filtered;
    }
    if !entry.need.admits(leg.family()) {
        return Choice::Elsewhere;
    }
    match (selection.ignored, entry.ignored) {
        (RunIgnored::Default, true) => Choice::Ignored,
        (RunIgnored::Only, false) => Choice::Filtered,
        _ => Choice::Run,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::leg::DeviceKind;
    use memcheck_core::device::{Need, Request};

    fn entry(name: &str) -> Entry {
        Entry {
            name: name.to_owned(),
            module: "app".to_owned(),
            case: Default::default(),
            file: "src/lib.rs".into(),
            line: 1,
            ignored: false,
            need: Need::Any,
            deviceless: false,
            attribute: memcheck_core::limits::Layer::default(),
            scaling: Vec::new(),
            manifest_dir: "/app".into(),
            snapshot: "app__x".to_owned(),
        }
    }

    fn selection(filters: &[&str]) -> Selection {
        Selection {
            filters: filters.iter().map(|&filter| filter.to_owned()).collect(),
            exact: false,
            skip: Vec::new(),
            ignored: RunIgnored::Default,
            partition: None,
        }
    }

    fn cpu() -> Leg {
        Leg::new(Request::Cpu, DeviceKind::Cpu, "")
    }

    #[test]
    fn a_filter_is_a_substring_unless_it_is_exact() {
        let chosen = |selection: &Selection, name| choose(selection, &cpu(), "app", &entry(name));
        let substring = selection(&["kv", "bert"]);
        assert_eq!(chosen(&substring, "llama::kv_cache"), Choice::Run);
        assert_eq!(chosen(&substring, "llama::prefill"), Choice::Filtered);
        let exact = Selection { exact: true, ..selection(&["kv"]) };
        assert_eq!(chosen(&exact, "llama::kv_cache"), Choice::Filtered);
        assert_eq!(chosen(&exact, "kv"), Choice::Run);
        let skipping = Selection { skip: vec!["kv".to_owned()], ..selection(&[]) };
        assert_eq!(chosen(&skipping, "llama::kv_cache"), Choice::Filtered);
    }

    #[test]
    fn ignored_tests_are_counted_and_can_be_run() {
        let test = Entry { ignored: true, ..entry("a") };
        let with = |ignored| choose(&Selection { ignored, ..selection(&[]) }, &cpu(), "app", &test);
        assert_eq!(with(RunIgnored::Default), Choice::Ignored);
        assert_eq!(with(RunIgnored::Only), Choice::Run);
        assert_eq!(with(RunIgnored::All), Choice::Run);
    }

    #[test]
    fn a_test_for_another_device_is_counted_as_such() {
        let test = Entry { need: Need::Cuda, ..entry("a") };
        assert_eq!(choose(&selection(&[]), &cpu(), "app", &test), Choice::Elsewhere);
    }
}
