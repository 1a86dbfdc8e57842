use std::collections::BTreeSet;

use memcheck_core::growth::survivors::{Growth, Pattern};
use memcheck_core::judgement::diagnosis::Cause;
use memcheck_core::judgement::finding::{Code, Finding, GrownHolder, HeadLine, Level, Site, Via};
use memcheck_core::judgement::rise::{Rise, RiseKind};
use memcheck_core::limits::Source;
use memcheck_core::measurement::driver::{Item, Occupant, Untracked};
use memcheck_core::measurement::fault_sweep::SweepResult;
use memcheck_core::measurement::figures::Figures;
use memcheck_core::measurement::phase::PhaseFigures;
use memcheck_core::measurement::process_memory::{MappedFile, ProcessMemory, Resident};
use memcheck_core::measurement::record::{Followed, Mark};
use memcheck_core::measurement::repeats::{Range, Repeats};
use memcheck_core::measurement::soak::Soaked;
use memcheck_core::measurement::stack::Frame;
use memcheck_core::measurement::unified::Unified;
use memcheck_core::measurement::unknown_reads::{ReadSite, UnknownReads};
use memcheck_core::space::Space;
use serde_json::{Value, json};

use super::STREAM;
use super::validator::{closed, validate};
use crate::discovery::task::{Task, TestOutcome, example};
use crate::execution::note::Note;
use crate::execution::proof::ProofResult;
use crate::execution::proof::tests::example as proof;
use crate::presentation::events::{Presenter, ReportWriter};
use crate::presentation::presenters::JsonLines;
use crate::presentation::presenters::example::leaky;
use crate::presentation::presenters::recorded::{RECORDINGS, stream};
use crate::presentation::tally::{Repeated, Tally};
use crate::system::error::Reported;
use crate::system::gpus::RanOn;

fn schema() -> Value {
    serde_json::from_str(STREAM).unwrap()
}

fn range() -> Range {
    let metric = "setup".to_owned();
    Range { space: Space::Host, metric, least: 1, greatest: 2, values: vec![1, 2] }
}

fn finding() -> Finding {
    let some = || Some("x".to_owned());
    let via = Via { file: "y".to_owned(), line: 2, function: "f".to_owned() };
    let site = Site {
        function: some(),
        file: some(),
        line: Some(1),
        via: Some(via),
        scope: some(),
        operation: some(),
        tensor: some(),
        block: Some(4),
        pattern: Some(Pattern::Steady),
        note: some(),
        stack: vec![Frame { function: "f".to_owned(), file: some(), line: Some(1) }],
        ..Site::default()
    };
    let holder = || GrownHolder {
        holder: "h".to_owned(),
        was_tensor: some(),
        place: some(),
        then: 0,
        now: 1,
        is_unlisted: true,
        is_setup: true,
    };
    let text = || "x".to_owned();
    Finding {
        space: Some(Space::Cuda(1)),
        bytes_per_iteration: Some(1),
        figure: Some(1),
        phase: some(),
        limit: Some(1),
        baseline: Some(1),
        range: Some(range()),
        hint: some(),
        longer_run: some(),
        keeps_at: Some(HeadLine { file: text(), line: 1, function: some() }),
        iterates: true,
        kept_through: Some(HeadLine { file: text(), line: 1, function: some() }),
        sites: vec![site],
        grown: vec![holder()],
        shrunk: vec![holder()],
        other_holders: Some(holder()),
        rise: Some(Rise { kind: RiseKind::New, cause: text(), remedy: text() }),
        cause: Some(Cause { code: text(), title: text(), evidence: text(), remedy: text() }),
        ..Finding::new(Code::Leak, "message")
    }
}

/// A test with every field that a line can have.
fn full() -> (Task, TestOutcome) {
    let text = || "x".to_owned();
    let some = || Some(text());
    let mut task = example::task();
    task.limits.iterations.source = Source::Override(1);
    if let crate::discovery::task::TestSubject::Test(entry) = &mut task.subject {
        entry.case.insert("batch".to_owned(), "8".to_owned());
    }
    let mut outcome = leaky();
    outcome.gpu = Some(RanOn { index: Some(1), name: text(), uuid: some() });
    outcome.verdict.findings.push(finding());
    outcome.verdict.denied.push(Code::MissingBaseline);
    let law = json!({
        "space": "host", "metric": "setup", "law": "1 + 2*seq", "order": "seq", "allowed": "seq",
        "few": {"seq": 2},
        "fits": [{"size": "seq", "upto": 3, "with": {"batch": 1}, "room": "8 GiB", "bytes": 8}],
    });
    outcome.across.laws.push(serde_json::from_value(law).unwrap());
    let report = outcome.report.as_mut().unwrap();
    report.snapshot = Some("a.snap".into());
    report.pending = Some("a.snap.new".into());
    let record = &mut report.record;
    let host = record.spaces.get_mut(&Space::Host).unwrap();
    host.metrics.reserved = Some(1);
    host.phases.insert("load".to_owned(), PhaseFigures::default());
    host.metrics.peak_reserved = Some(1);
    host.metrics.device_used = Some(1);
    record.driver.simulated = true;
    let items = vec![Item { holder: text(), bytes: 1, blocks: 1 }];
    let (space, bytes) = (Space::Cuda(0), Some(1));
    record.driver.untracked =
        Some(Untracked { space, bytes, items, rest: Some(1), reason: some() });
    let (name, maybe_own) = (some(), true);
    record.driver.others = vec![Occupant { space, pid: 1, name, bytes, maybe_own }];
    let live = [(Space::Host, 1)];
    let resident = Resident { rss_anon: 1, rss_file: 2, swap: 3 };
    let (label, process) = (text(), Some(resident));
    record.marks =
        vec![Mark { label, allocated: live.into(), peak_allocated: live.into(), process }];
    record.process = Some(ProcessMemory {
        iterations: vec![resident],
        files: vec![MappedFile { path: text(), bytes: 2, resident: 1, copied: 1 }],
        ..ProcessMemory::default()
    });
    record.spaces.insert(Space::Process, record.spaces[&Space::Host].clone());
    record.soaked = Some(Soaked { ended: some(), iterations: 1, ..Soaked::default() });
    record.notes.push(text());
    let (card, capacity) = (text(), 1);
    record.unified = Some(Unified { space, card, capacity, peak_allocated: 1 });
    let (seconds, ended) = (0.5, some());
    record.followed =
        Some(Followed { iterations: 9, seconds, decided: true, disturbed: false, ended: some() });
    let sites = vec![ReadSite { at: some(), element: some(), reads: 1 }];
    record.values = Some(UnknownReads { reads: 1, bytes: 4, further: 1, sites, unresolved: None });
    record.fault_sweep = Some(SweepResult { ended, ..SweepResult::default() });
    let run = |value: u64| Figures([(Space::Host, [("setup".to_owned(), value)].into())].into());
    record.repeats = Some(Repeats { asked: Some(2), runs: vec![run(1), run(2)] });
    (task, outcome)
}

/// All kinds of lines with all of their fields.
fn lines() -> Vec<Value> {
    let mut stream = JsonLines::new(Vec::new());
    let (task, mut outcome) = full();
    stream.run_started(&crate::presentation::origin::example());
    stream.leg_started(&task.leg, 1);
    stream.proof(&task.leg, &proof(&["candle has changed"]));
    let mut failed = proof(&[]);
    failed.proof.result = ProofResult::Failure("no finding".to_owned());
    stream.proof(&task.leg, &failed);
    let undecided = serde_json::from_value(json!({
        "undecided": {"open": "slows", "bytes": 1, "iterations": 2},
    }));
    for growth in [
        Growth::Unknown,
        Growth::Quiet { iterations: 1 },
        Growth::Found { whole: true, exact: true, iterations: 1 },
        undecided.unwrap(),
    ] {
        let record = &mut outcome.report.as_mut().unwrap().record;
        record.spaces.get_mut(&Space::Host).unwrap().growth = growth;
        stream.test_finished(&task, &outcome);
    }
    stream.test_finished(&example::task(), &TestOutcome::ignored());
    let finding = finding();
    let path = Some("a.snap".into());
    stream.note(&Note { package: "app".to_owned(), path, finding, level: Level::Deny });
    let hint = Some("a hint".to_owned());
    let failure = Reported { exit_code: 101, message: "the build failed".to_owned(), hint };
    let repeated = Some(Repeated { runs: 2, tests: 1, identical: 1 });
    let tally = Tally { failure: Some(failure), repeated, ..Tally::default() };
    stream.finished(&tally, 101);
    stream.finished(&Tally::default(), 0);
    let text = String::from_utf8(stream.text().unwrap()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_line_fits_the_schema_and_has_no_other_field() {
    let schema = closed(schema());
    for line in lines() {
        validate(&schema, &line).unwrap_or_else(|why| panic!("{why}\n{line}"));
    }
}

#[test]
fn the_streams_of_recorded_runs_fit_the_schema() {
    let schema = closed(schema());
    for recording in RECORDINGS {
        for line in stream(recording) {
            validate(&schema, &line).unwrap_or_else(|why| panic!("{recording}: {why}\n{line}"));
        }
    }
}

#[test]
fn a_missing_field_a_wrong_type_and_another_field_are_refused() {
    let (open, closed) = (schema(), closed(schema()));
    let open = |line: &Value| validate(&open, line).is_ok();
    let closed = |line: &Value| validate(&closed, line).is_ok();
    let first = lines().remove(0);
    let changed = |change: &dyn Fn(&mut serde_json::Map<String, Value>)| {
        let mut line = first.clone();
        change(line.as_object_mut().unwrap());
        line
    };
    assert!(open(&first));
    assert!(!open(&changed(&|line| drop(line.remove("tests")))));
    assert!(!open(&changed(&|line| line["tests"] = json!("12"))));
    assert!(!open(&changed(&|line| line["version"] = json!(2))));
    let newer = changed(&|line| drop(line.insert("later".to_owned(), json!(1))));
    assert!(open(&newer) && !closed(&newer));
}

/// Notes each property of the schema that `value` has.
fn visit(root: &Value, schema: &Value, value: &Value, seen: &mut BTreeSet<String>) {
    if let Some(name) = schema["$ref"].as_str() {
        let path = name.trim_start_matches('#');
        return visit(root, root.pointer(path).unwrap(), value, seen);
    }
    for option in schema["oneOf"].as_array().into_iter().flatten() {
        let mut alone = option.clone();
        alone["$defs"] = root["$defs"].clone();
        if validate(&alone, value).is_ok() {
            visit(root, option, value, seen);
        }
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if let Some(field) = value.get(name) {
            seen.insert(format!("{name}: {property}"));
            visit(root, property, field, seen);
        }
    }
    for item in value.as_array().into_iter().flatten().filter(|_| schema["items"].is_object()) {
        visit(root, &schema["items"], item, seen);
    }
    if schema["additionalProperties"].is_object() {
        for field in value.as_object().into_iter().flat_map(|map| map.values()) {
            visit(root, &schema["additionalProperties"], field, seen);
        }
    }
}

fn properties(schema: &Value, all: &mut BTreeSet<String>) {
    if let Some(map) = schema["properties"].as_object() {
        all.extend(map.iter().map(|(name, property)| format!("{name}: {property}")));
    }
    match schema {
        Value::Object(map) => map.values().for_each(|value| properties(value, all)),
        Value::Array(values) => values.iter().for_each(|value| properties(value, all)),
        _ => {}
    }
}

#[test]
fn every_field_of_the_schema_is_written() {
    let root = schema();
    let (mut seen, mut all) = (BTreeSet::new(), BTreeSet::new());
    for line in lines() {
        visit(&root, &root, &line, &mut seen);
    }
    properties(&root, &mut all);
    let missing: Vec<&String> = all.difference(&seen).collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn the_schema_has_the_version_of_the_stream() {
    let version = crate::presentation::presenters::json::VERSION;
    let schema = schema();
    assert_eq!(schema["$id"], format!("urn:memcheck:stream:{version}"));
    assert_eq!(schema["$defs"]["run-started"]["properties"]["version"]["const"], version);
}
