//! Checks that the table of scenarios is complete and consistent with the sources.

mod clean;
mod compare;
mod line;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use memcheck_core::judgement::diagnosis::RULES;
use memcheck_tests::scenarios::{Family, Scenario, all, named, shapes, small_bytes};

#[test]
fn scenario_names_are_unique() {
    let names: BTreeSet<_> = all().map(|scenario| scenario.name).collect();
    assert_eq!(names.len(), all().count());
    assert!(all().count() >= 57);
    assert_eq!((named("four_bytes_in_a_list").bytes)(Family::Cuda), 4);
}

#[test]
fn every_cause_has_at_least_three_scenarios() {
    let mut causes: BTreeMap<&str, usize> = BTreeMap::new();
    let remarked = shapes::REMARKED.iter().map(|remarked| remarked.cause);
    for cause in all().map(|scenario| scenario.cause).chain(remarked) {
        *causes.entry(cause).or_default() += 1;
    }
    let known: BTreeSet<&str> = RULES.iter().map(|rule| rule.code).collect();
    assert_eq!(causes.keys().copied().collect::<BTreeSet<_>>(), known);
    assert!(causes.values().all(|&count| count >= 3), "{causes:?}");
}

#[test]
fn every_line_is_the_statement_below_its_comment() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for Scenario { name, file, line, .. } in all() {
        let source = std::fs::read_to_string(workspace.join(file)).unwrap();
        let lines: Vec<_> = source.lines().collect();
        let (comment, statement) = (lines[*line as usize - 2], lines[*line as usize - 1]);
        assert!(comment.trim_start().starts_with("// leaks: "), "{name}: {comment}");
        assert!(comment.contains(name), "{name}: {comment}");
        assert!(!statement.trim_start().starts_with("//"), "{name}: {statement}");
        assert!(statement.contains(['(', '[']), "{name} allocates nothing: {statement}");
    }
}

#[test]
fn a_scenario_of_the_host_is_judged_there_on_every_leg() {
    let host = named("one_kib_in_a_static");
    assert_eq!(host.judged_on(Family::Cuda), Some(Family::Cpu));
    assert_eq!(named("four_bytes_in_a_list").judged_on(Family::Cpu), None);
    assert_eq!(named("results_in_a_static").judged_on(Family::Cuda), Some(Family::Cuda));
    assert_eq!((host.bytes)(Family::Cpu), 1024);
    assert_eq!((small_bytes(Family::Cpu, 12), small_bytes(Family::Cuda, 12)), (0, 12));
}
