//! Findings that agree with their scenario, and findings that do not.

use memcheck_tests::scenarios::{Agreement, Family, all, named};
use serde_json::json;

#[test]
fn a_complete_finding_agrees_with_its_scenario() {
    let scenario = named("every_third_time");
    let finished = json!({"findings": [{
        "code": "leak", "bytes_per_iteration": 1024, "cause": {"code": "tensor-kept"},
        "sites": [{
            "file": "/home/me/memcheck/tests/src/scenarios/rhythms.rs",
            "line": scenario.line, "pattern": "periodic",
        }],
    }]});
    assert!(scenario.compare(Family::Cuda, &finished).is_whole());
}

#[test]
fn a_test_without_findings_disagrees_in_every_part() {
    for scenario in all() {
        let agreement = scenario.compare(Family::Cuda, &json!({"findings": []}));
        let Agreement { found, bytes, line, pattern, cause } = agreement;
        assert!(!(found || bytes || line || cause), "{}", scenario.name);
        assert_eq!(pattern, scenario.pattern.map(|_| false));
    }
}

#[test]
fn a_retained_finding_has_no_pattern() {
    let scenario = named("workspace_of_the_largest_request");
    let finished = json!({"findings": [{"code": "retained", "figure": 32768}]});
    let agreement = scenario.compare(Family::Cpu, &finished);
    assert!(agreement.found && agreement.bytes && !agreement.line && !agreement.is_whole());
}
