//! Profiles of recorded runs. Three of the tests prove a row of `docs/guide.md`.

use console::strip_ansi_codes;
use memcheck_core::presentation::profile::{By, Sort};
use serde_json::Value;

use super::super::recorded::{self, data, sum};
use super::*;
use crate::invocation::values::{ExportKind, ReportKind};

const LEAKY: &str = "profile::layers_leaky";
const BERT: &str = "bert::forward";

fn profiler(layout: (&str, &str, usize), format: Format, verbosity: Verbosity) -> Profiler {
    let (by, sort) = (layout.0.parse::<By>().unwrap(), layout.1.parse::<Sort>().unwrap());
    Profiler { layout: ProfileLayout { by, sort, top: layout.2 }, format, verbosity, width: None }
}

/// The first space of the JSON of a profile.
fn space(recording: &str, test: &str, by: &str, sort: &str) -> Value {
    let (task, outcome) = recorded::test(recording, test);
    let profiler = profiler((by, sort, 15), Format::Json, Verbosity::Normal);
    let profiles = profiler.profiles(&outcome.report.as_ref().unwrap().record);
    serde_json::to_value(json::line(&task, &outcome, &profiles)).unwrap()["spaces"][0].clone()
}

/// The text for people.
fn shown(recording: &str, test: &str, layout: (&str, &str, usize), verbosity: Verbosity) -> String {
    let (task, outcome) = recorded::test(recording, test);
    let profiler = profiler(layout, Format::Human, verbosity);
    let lines = profiler.text(&task, &outcome, &outcome.report.as_ref().unwrap().record);
    strip_ansi_codes(&lines.join("\n")).into_owned()
}

fn named<'a>(rows: &'a Value, name: &str) -> &'a Value {
    let rows = rows.as_array().unwrap();
    rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name}: {rows:#?}"))
}

#[test]
fn the_rows_of_a_profile_add_up_to_the_figures_of_the_test() {
    let metrics = recorded::line("cpu", LEAKY)["metrics"]["host"].clone();
    let host = space("cpu", LEAKY, "op", "peak");
    assert_eq!(host["window"]["iteration"], 12);
    let table = &host["table"];
    // Weights and input, twelve kept blocks, and the output of the twelfth iteration.
    let least = 2 * (64 << 10) + 12 * (4 << 10) + (16 << 10);
    assert!(host["peak_allocated"].as_u64().unwrap() >= least, "{host}");
    for total in [&host["peak_allocated"], &metrics["peak_allocated"], &table["total"]["peak"]] {
        assert_eq!(*total, sum(&table["rows"], "peak"));
    }
    assert_eq!(table["total"]["calls"], metrics["allocations"]);
    assert_eq!(table["total"]["bytes"], metrics["allocated_total"]);
    assert_eq!(sum(&host["kinds"], "bytes"), host["peak_allocated"].as_u64().unwrap());
    assert_eq!(sum(&host["holders"], "bytes"), host["peak_allocated"].as_u64().unwrap());
    let matmul = named(&table["rows"], "matmul");
    assert_eq!(matmul["scopes"][0], "forward");
    assert_eq!(matmul["shapes"][0]["tensor"]["shape"], serde_json::json!([64, 64]));
    assert_eq!(named(&table["rows"], "zeros")["phase"], "setup");
    // Ten measured iterations. Their blocks are freed when the body returns.
    assert_eq!(sum(&table["rows"], "surviving"), 10 * 4096);
    assert_eq!(metrics["retained"], sum(&table["rows"], "retained"));
    assert_eq!(host["growth"]["bytes_per_iteration"], 4096);
    assert_eq!(host["growth"]["survivors"][0]["pattern"], "steady");
    assert!(host["growth"]["cause"]["code"].is_string(), "{host}");
}

#[test]
fn the_table_of_scopes_has_figures_with_and_without_nested_scopes() {
    let people = shown("cpu", LEAKY, ("scope", "peak", 15), Verbosity::Normal);
    for part in ["in all", "surviving: allocated in measured iterations", "40.0 KiB", "forward"] {
        assert!(people.contains(part), "`{part}` is not in\n{people}");
    }
    let rows = &space("cpu", LEAKY, "scope", "peak")["table"]["rows"];
    let (outer, inner) = (named(rows, "forward"), named(rows, "forward.keep"));
    assert_eq!((&outer["surviving"], &inner["surviving"]), (&0.into(), &40_960.into()));
    assert_eq!(outer["in_all"]["surviving"], 40_960);
    let peak = |row: &Value| row["peak"].as_u64().unwrap();
    assert_eq!(outer["in_all"]["peak"], peak(outer) + peak(inner));
    assert_eq!(inner["in_all"]["peak"], peak(inner));
}

#[test]
fn people_see_a_table_the_peak_a_chart_and_the_growth() {
    let all = ("op", "peak", 15);
    let leaky = shown("cpu", LEAKY, all, Verbosity::Normal);
    for part in [
        "profile::layers_leaky on cpu, host: peak ",
        "matmul",
        "zeros (set-up)",
        "total",
        "at the peak, in iteration 12",
        "largest holders",
        "live bytes over allocations and frees",
        "▲",
        "growth: 4,096 B (4.00 KiB) per iteration, over 10",
        "steady, 4,096 B (4.00 KiB) per iteration",
        "cause: ",
    ] {
        assert!(leaky.contains(part), "`{part}` is not in\n{leaky}");
    }
    let clean = shown("cpu", "profile::layers", all, Verbosity::Normal);
    assert!(clean.contains("no growth: no block survives 10 iterations"), "{clean}");
    let sites = shown("cpu", LEAKY, ("site", "peak", 15), Verbosity::Normal);
    assert!(sites.contains("tests/programs/profile.rs:"), "{sites}");
    let quiet = shown("cpu", "profile::layers", ("op", "peak", 1), Verbosity::Quiet);
    assert!(quiet.contains("(others: 1)") && !quiet.contains("largest holders"), "{quiet}");
    let beyond = shown("sim", "hardware::ten_mebibytes", all, Verbosity::Normal);
    for part in
        ["beyond the pool of cuda:0", "libcublas.so.13, 1 block", "(an estimate: the device"]
    {
        assert!(beyond.contains(part), "`{part}` is not in\n{beyond}");
    }
}

#[test]
fn row_01_a_table_of_operations_sorted_by_any_column_with_shapes_and_lines() {
    for column in ["peak", "bytes", "calls"] {
        let rows = space("bert", BERT, "op", column)["table"]["rows"].clone();
        let rows = rows.as_array().unwrap();
        let values: Vec<u64> = rows.iter().map(|row| row[column].as_u64().unwrap()).collect();
        assert!(values.is_sorted_by(|a, b| a >= b), "{column}: {values:?}");
        let softmax = rows.iter().find(|row| row["name"] == "softmax").expect("a softmax");
        let shapes = softmax["shapes"].as_array().unwrap();
        // Batch, heads, and a score for each pair of tokens.
        let scores = serde_json::json!({"shape": [2, 4, 32, 32], "dtype": "f32"});
        assert!(shapes.iter().any(|shape| shape["tensor"] == scores), "{shapes:?}");
        let site = softmax["sites"][0].as_str().unwrap();
        assert!(site.starts_with("tests/src/bert.rs:"), "{site}");
    }
    let people = shown("bert", BERT, ("op", "peak", 3), Verbosity::Normal);
    assert!(people.contains("others: ") && people.contains("total"), "{people}");
}

#[test]
fn row_07_scopes_a_top_15_and_a_chrome_trace() {
    let people = shown("bert", BERT, ("scope", "peak", 15), Verbosity::Normal);
    // The nested path of candle-transformers' own spans.
    let scope = "model.encoder.layer.attn.self-attn.softmax";
    assert!(people.contains(scope), "{people}");
    let table = people.lines().skip_while(|line| !line.starts_with("scope ")).skip(1);
    let rows = table.take_while(|line| !line.starts_with("(others: ")).count();
    assert_eq!(rows, 15, "{people}");

    let trace = recorded::json(ReportKind::Export(ExportKind::Trace), "bert");
    let events = trace["traceEvents"].as_array().unwrap();
    let at_peak = |event: &&Value| event["ph"] == "i" && event["name"] == "peak of cuda:0";
    let mark = events.iter().find(at_peak).expect("a mark at the peak");
    let scopes = mark["args"]["scopes"].as_array().unwrap();
    assert!(scopes.iter().any(|one| one["scope"] == scope), "{scopes:?}");
    let metrics = &recorded::line("bert", BERT)["metrics"]["cuda:0"];
    assert_eq!(mark["args"]["bytes"], metrics["peak_allocated"]);
}

#[test]
fn row_15_memory_over_iterations_is_plotted_with_its_trend() {
    let training = "gradients_are_kept";
    let leak = recorded::line("endings", training)["findings"][0]["bytes_per_iteration"].clone();
    let iterations = data("endings", training)["spaces"][0]["iterations"].clone();
    assert_eq!(iterations["slope"].as_f64(), leak.as_f64());
    assert_eq!(iterations["allocated"].as_array().unwrap().len(), 10);

    // In a terminal, the blocks rise by one each time. A test without growth has an even line.
    let all = ("op", "peak", 15);
    let shown = |recording, test| shown(recording, test, all, Verbosity::Normal);
    let (leaky, even) = (shown("cpu", LEAKY), shown("bert", BERT));
    let trend = "trend +4.00 KiB per iteration";
    assert!(leaky.contains("live bytes ▁▁▂▃▄▄▅▆▇█ ") && leaky.contains(trend), "{leaky}");
    assert!(
        even.contains("live bytes ▁▁▁▁▁▁▁▁▁▁ ") && even.contains("trend 0 B per iteration"),
        "{even}"
    );
}

#[test]
fn small_blocks_have_a_profile_if_they_stay_or_if_it_is_asked_for() {
    let (task, outcome) = recorded::test("cpu", LEAKY);
    let is_titled = |record: &Record, verbosity| {
        let profiler = profiler(("op", "peak", 15), Format::Human, verbosity);
        let text = profiler.text(&task, &outcome, record).join("\n");
        let text = strip_ansi_codes(&text).into_owned();
        let is_named = text.contains("host/small (blocks below 1 KiB): peak ");
        assert_ne!(is_named, text.contains("on cpu, host/small: peak "), "{text}");
        !is_named
    };
    let mut record = outcome.report.clone().unwrap().record;
    assert!(is_titled(&record, Verbosity::Normal), "small blocks of each iteration stay");
    record.attribution.as_mut().unwrap().survivors.clear();
    assert!(!is_titled(&record, Verbosity::Normal));
    assert!(is_titled(&record, Verbosity::Verbose));
    record.judged.retain(|space| *space == Space::HostSmall);
    assert!(is_titled(&record, Verbosity::Normal), "there is nothing else");
}
