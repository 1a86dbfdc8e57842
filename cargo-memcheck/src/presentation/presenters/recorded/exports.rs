//! The holders of memory of a followed test, in each report. Readers of other ecosystems read the reports in
//! `tests/functional/reports.rs`.

use serde_json::{Value, json};

use super::super::every;
use super::super::exports::html::without_assets;
use super::{data, json, line, marked, report, sum, test, text};
use crate::invocation::values::{ExportKind, ReportKind};
use crate::system::printing::lines_for_people;

const LEAKY: &str = "profile::layers_leaky";
const SOURCE: &str = "tests/programs/profile.rs";

fn peak() -> u64 {
    line("cpu", LEAKY)["metrics"]["host"]["peak_allocated"].as_u64().unwrap()
}

#[test]
fn json_has_the_holders_of_the_peak_and_the_survivors() {
    let leaky = line("cpu", LEAKY);
    let host = &leaky["attribution"]["spaces"][0];
    assert_eq!(host["peak"], leaky["metrics"]["host"]["peak_allocated"]);
    assert_eq!((sum(&host["holders"], "bytes"), sum(&host["kinds"], "bytes")), (peak(), peak()));
    let holders = host["holders"].as_array().unwrap();
    let kept = holders.iter().find(|holder| holder["kind"] == "kept").unwrap();
    let found = (&kept["scope"], &kept["count"], &kept["bytes"]);
    assert_eq!(found, (&"forward.keep".into(), &11.into(), &(11 * 4096).into()));
    let survivors = &host["survivors"][0];
    assert_eq!((&survivors["pattern"], &survivors["bytes"]), (&"steady".into(), &40_960.into()));
    assert_eq!(survivors["bytes_per_iteration"], 4096);
    assert!(leaky["attribution"]["events"].as_u64().unwrap() > 24);
    let clean = &line("cpu", "profile::layers")["attribution"]["spaces"][0];
    assert_eq!(sum(&clean["holders"], "bytes"), clean["peak"].as_u64().unwrap());
    assert_eq!(clean["survivors"], json!([]));
}

#[test]
fn the_page_has_sites_causes_the_peak_and_scopes() {
    let page = without_assets(&text(ReportKind::Export(ExportKind::Html), "cpu"));
    for part in [
        "<span class=\"code\">leak</span> host grows by 4.00 KiB per iteration",
        "<strong>cause: </strong>",
        "<strong>remedy: </strong>",
        &format!("<strong>allocated at: </strong><code>{SOURCE}:"),
        "<mark class=\"line\">",
        "kept.push(",
    ] {
        assert!(page.contains(part), "`{part}` is not in\n{page}");
    }
    let leaky = data("cpu", LEAKY);
    let held = &leaky["spaces"][0]["held"];
    assert!(held["when"].as_str().unwrap().starts_with(", in iteration "), "{held}");
    assert!(held["kinds"].to_string().contains("activations"), "{held}");
    assert_eq!(held["survivors"][0]["note"], "steady, 4,096 B (4.00 KiB) per iteration");
    let scopes = &leaky["spaces"][0]["tables"][2];
    assert_eq!(scopes["by"], "scope");
    assert!(scopes["rows"].to_string().contains("forward"), "{scopes}");
    let clean = data("cpu", "profile::layers");
    assert_eq!(clean["spaces"][0]["held"]["growth"], "no growth: no block survives 10 iterations");
    assert_blocks_add_up(held);
}

/// At each event the live blocks are those that a reader can count, and their most bytes the peak.
fn assert_blocks_add_up(held: &Value) {
    let lifetimes = &held["lifetimes"];
    let column = |name: &str| -> Vec<u64> {
        lifetimes[name].as_array().unwrap().iter().map(|value| value.as_u64().unwrap()).collect()
    };
    let (births, lived, bytes) = (column("born"), column("events_lived"), column("bytes"));
    let mut changes: Vec<(u64, i64)> = Vec::new();
    let mut born = 0;
    for ((birth, lived), bytes) in births.iter().zip(&lived).zip(&bytes) {
        born += birth;
        changes.push((born, *bytes as i64));
        if *lived > 0 {
            changes.push((born + lived, -(*bytes as i64)));
        }
    }
    changes.sort_unstable();
    assert_eq!(changes.len() as u64, lifetimes["events"].as_u64().unwrap(), "{lifetimes}");
    let (mut live, mut most) = (0, (0, 0));
    for (event, change) in changes {
        live += change;
        most = most.max((live, -(event as i64)));
    }
    assert_eq!(most.0, held["peak"].as_i64().unwrap());
    assert_eq!(-most.1, lifetimes["peak"].as_i64().unwrap());
    assert_eq!(lifetimes["iterations"].as_array().unwrap().len(), 12);
}

#[test]
fn a_trace_has_the_events_of_a_test_and_a_mark_at_its_peak() {
    let trace = json(ReportKind::Export(ExportKind::Trace), "cpu");
    let events = trace["traceEvents"].as_array().unwrap();
    let is_named = |event: &&Value| {
        let name = event["args"]["name"].as_str().unwrap_or_default();
        name.contains(" profile::layers_leaky on ") && name.ends_with(", host (events)")
    };
    let processes: Vec<&Value> = events.iter().filter(is_named).collect();
    let [process] = processes.as_slice() else { panic!("{processes:#?}") };
    let of_phase = |phase: &'static str| {
        let is_phase = move |event: &&Value| event["pid"] == process["pid"] && event["ph"] == phase;
        events.iter().filter(is_phase)
    };
    let highest = of_phase("C").max_by_key(|event| event["args"]["live"].as_u64()).unwrap();
    assert_eq!(highest["args"]["live"], peak());
    let mark = of_phase("i").next().unwrap();
    assert_eq!((&mark["name"], &mark["args"]["bytes"]), (&"peak of host".into(), &peak().into()));
    assert_eq!(mark["ts"], highest["ts"]);
    assert_eq!(sum(&mark["args"]["holders"], "bytes"), peak());
    assert_eq!(mark["args"]["scopes"][0]["scope"], "forward");
}

/// The frame of the space is as wide as its peak, in bytes.
#[test]
fn a_flame_graph_has_the_bytes_of_the_peak() {
    let graph = text(ReportKind::Export(ExportKind::FlameGraph), "cpu");
    let frames = graph.split("<title>").filter_map(|title| title.split_once("</title>"));
    let bytes: Vec<(&str, u64)> = frames
        .filter_map(|(title, _)| {
            let (name, rest) = title.rsplit_once(": ")?;
            let (bytes, _) = rest.split_once(" B")?;
            Some((name, bytes.replace(',', "").parse().unwrap()))
        })
        .collect();
    let widths = |part: &str| -> Vec<u64> {
        let found = bytes.iter().filter(|(name, _)| name.contains(part));
        found.map(|(_, width)| *width).collect()
    };
    assert!(widths("host at its peak").contains(&peak()), "{bytes:?}");
    let scope = widths("in forward");
    assert!(!scope.is_empty() && !scope.contains(&0), "{bytes:?}");
}

/// The blocks of the device of each test, added up as PyTorch's viewer does.
#[test]
fn a_snapshot_adds_up_to_the_peak_and_to_its_segments() {
    let snapshot = json(ReportKind::Export(ExportKind::MemoryVizJson), "cpu");
    let mut peaks = Vec::new();
    for (device, events) in snapshot["device_traces"].as_array().unwrap().iter().enumerate() {
        let (mut live, mut most) = (0, 0);
        for event in events.as_array().unwrap() {
            let size = event["size"].as_i64().unwrap();
            live += match event["action"].as_str().unwrap() {
                "alloc" => size,
                "free_completed" => -size,
                _ => 0,
            };
            most = most.max(live);
        }
        peaks.push(most);
        let segments = snapshot["segments"].as_array().unwrap();
        let own = segments.iter().filter(|segment| segment["device"] == device);
        let sizes: i64 = own.map(|segment| segment["total_size"].as_i64().unwrap()).sum();
        assert_eq!(sizes, live, "device {device}");
    }
    assert!(peaks.contains(&(peak() as i64)), "{peaks:?}");
}

/// The leak is at its line, as a person and as a reader of code scanning find it.
#[test]
fn sarif_has_the_leak_at_its_line() {
    let sarif = json(ReportKind::Export(ExportKind::Sarif), "cpu");
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    let place = |result: &Value| result["locations"][0]["physicalLocation"].clone();
    let leaks = results.iter().filter(|result| result["ruleId"] == "leak").map(place);
    let leak = leaks.into_iter().find(|place| place["artifactLocation"]["uri"] == SOURCE).unwrap();
    assert_eq!(leak["region"]["startLine"], marked(SOURCE, "kept"));
}

/// Memory that the program did not request is an estimate on a simulated device.
#[test]
fn every_report_marks_estimates() {
    let (task, outcome) = test("sim", "hardware::ten_mebibytes");
    let terminal = lines_for_people(&every::terminal().result(&task, &outcome));
    let page = data("sim", "hardware::ten_mebibytes").to_string();
    let texts = [ReportKind::Junit, ReportKind::Json, ReportKind::Export(ExportKind::Markdown)];
    let texts = texts.map(|kind| String::from_utf8(report(kind, "sim")).unwrap());
    for text in texts.iter().chain([&terminal, &page]) {
        for name in ["reserved", "peak_reserved", "device_used", "estimate"] {
            assert!(text.contains(name), "{name} is not in\n{text}");
        }
    }
}
