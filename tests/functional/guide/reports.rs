//! The rows about tables, traces and plots.

use memcheck_tests::scenarios::Family;
use memcheck_tests::training::KEPT_LOSS_BYTES;
use serde_json::Value;

use super::{device, peak};
use crate::fixture::{Run, memcheck, workspace};

fn profile(leg: Family, arguments: &[&str]) -> Run {
    let target =
        ["profile", "-p", "memcheck-tests", "--test", "workloads", "--device", device(leg)];
    memcheck(&workspace(), &[&target[..], arguments, &["--exact", "bert::forward"]].concat())
        .exits(0)
}

#[test]
fn row_01_a_table_of_operations_sorted_by_any_column_with_shapes_and_lines() {
    for column in ["peak", "bytes", "calls"] {
        let run = profile(Family::Cuda, &["--sort", column, "--message-format", "json"]);
        let table = run.json()[0]["spaces"][0]["table"].clone();
        let rows = table["rows"].as_array().expect("rows").clone();
        let values: Vec<u64> = rows.iter().map(|row| row[column].as_u64().expect(column)).collect();
        assert!(values.is_sorted_by(|a, b| a >= b), "{column}: {values:?}");
        let softmax = rows.iter().find(|row| row["name"] == "softmax").expect("a softmax");
        let shapes = softmax["shapes"].as_array().expect("shapes");
        // Batch, heads, and a score for each pair of tokens.
        let scores = serde_json::json!({"shape": [2, 4, 32, 32], "dtype": "f32"});
        assert!(shapes.iter().any(|shape| shape["tensor"] == scores), "{shapes:?}");
        let site = softmax["sites"][0].as_str().expect("a site");
        assert!(site.starts_with("tests/src/bert.rs:"), "{site}");
    }
    let people = profile(Family::Cuda, &["--sort", "peak", "--top", "3"]).stdout;
    assert!(people.contains("others: ") && people.contains("total"), "{people}");
}

#[test]
fn row_07_scopes_a_top_15_and_a_chrome_trace() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("trace.json");
    let report = format!("trace={}", path.display());
    let run = profile(Family::Cuda, &["--by", "scope", "--report", &report]);
    // The nested path of candle-transformers' own spans.
    let scope = "model.encoder.layer.attn.self-attn.softmax";
    assert!(run.stdout.contains(scope), "{}", run.stdout);
    let table = run.stdout.lines().skip_while(|line| !line.starts_with("scope ")).skip(1);
    let rows = table.take_while(|line| !line.starts_with("(others: ")).count();
    assert_eq!(rows, 15, "{}", run.stdout);

    let trace: Value = serde_json::from_slice(&std::fs::read(path).expect("a trace")).unwrap();
    let events = trace["traceEvents"].as_array().expect("events");
    let at_peak = |event: &&Value| event["ph"] == "i" && event["name"] == "peak of cuda:0";
    let mark = events.iter().find(at_peak).expect("a mark at the peak");
    let scopes = mark["args"]["scopes"].as_array().expect("scopes");
    assert!(scopes.iter().any(|one| one["scope"] == scope), "{scopes:?}");
    assert_eq!(mark["args"]["bytes"], peak("bert::forward"));
}

#[test]
fn row_15_memory_over_iterations_is_plotted_with_its_trend() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("report.html");
    let report = format!("html={}", path.display());
    let target = ["-p", "memcheck-tests", "--test", "controls", "--device", "cpu"];
    let test = ["--exact", "training_keeps_losses", "--run-ignored", "only"];
    let test = [&test[..], &["--max-iterations", "16"]].concat();
    let run = ["run", "--no-ci", "--explain", "never", "--report", &report];
    memcheck(&workspace(), &[&run[..], &target, &test].concat()).exits(100);
    let page = std::fs::read_to_string(path).expect("a page");
    let data = crate::report_data::report_data(&page);
    let iterations = &data[1]["spaces"][0]["iterations"];
    assert_eq!(iterations["slope"], KEPT_LOSS_BYTES as f64);
    assert_eq!(iterations["allocated"].as_array().expect("live bytes").len(), 10);

    // The same in a terminal: the blocks rise by one each time.
    let run = memcheck(&workspace(), &[&["profile"][..], &target, &test].concat()).exits(100);
    let sparkline = "live bytes ▁▁▂▃▄▄▅▆▇█ ";
    let slope = format!("trend +{KEPT_LOSS_BYTES}.0 B per iteration");
    assert!(run.stdout.contains(sparkline) && run.stdout.contains(&slope), "{}", run.stdout);
    // A test without growth has an even line.
    let even = profile(Family::Cpu, &[]).stdout;
    assert!(even.contains("live bytes ▁▁▁▁▁▁▁▁▁▁ ") && even.contains("trend +0.0 B"), "{even}");
}
