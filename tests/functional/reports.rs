//! Readers of other ecosystems read the reports of a test that ran with attribution. The texts of reports are unit
//! tests of the command (`presentation/presenters/recorded`).

use std::process::Command;

use serde_json::Value;

use crate::fixture::{Programs, skip_reader};
use crate::memory_viz;
use crate::perfetto::{ERRORS, query};

fn programs() -> Programs {
    Programs::of("reports")
}

#[test]
fn a_followed_test_has_reports_that_readers_of_other_ecosystems_read() {
    let programs = programs();
    let never = programs.run("cpu", &["--explain", "never"]).exits(100);
    assert!(never.test("leaky").get("attribution").is_none());
    let kinds = [
        "trace=trace.json",
        "pprof=peak.pb.gz",
        "memory-viz=a.pickle",
        "memory-viz-json=a.json",
        "sarif=a.sarif",
    ];
    let reports: Vec<&str> = kinds.into_iter().flat_map(|kind| ["--report", kind]).collect();
    let run = programs.run("cpu", &reports).exits(100);
    assert!(run.test("clean").get("attribution").is_none(), "a passed test was followed");
    assert!(run.test("leaky")["attribution"]["events"].as_u64() > Some(24));
    let peak = &run.test("leaky")["metrics"]["host"]["peak_allocated"];
    assert_perfetto(&programs, peak);
    assert_pickle(&programs);
    memory_viz::assert_shown(&programs.path().join("a.pickle"), peak);
    assert_pprof(&programs, peak);
    assert_sarif(&programs);
}

/// The output of a program; `None` with a printed reason if this machine does not have it.
fn read_by(programs: &Programs, program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).current_dir(programs.path()).output();
    let Ok(output) = output else {
        skip_reader(&format!("this machine has no {program}"));
        return None;
    };
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).expect("text"))
}

/// The rows of Perfetto's tables.
fn assert_perfetto(programs: &Programs, peak: &Value) {
    let slices = "select thread.name as thread, slice.name as name, depth, dur from slice \
                  join thread_track on slice.track_id = thread_track.id \
                  join thread using (utid) join process using (upid) \
                  where process.name glob '* reports::leaky on *(events)' order by ts, depth";
    let counters = "select process_counter_track.name as name, max(value) as most from counter \
                    join process_counter_track on counter.track_id = process_counter_track.id \
                    join process using (upid) \
                    where process.name glob '*(events)' group by 1";
    let blocks = "select slice.name as name, dur, \
                  extract_arg(arg_set_id, 'args.bytes') as bytes from slice \
                  join process_track on slice.track_id = process_track.id \
                  where slice.category = 'blocks'";
    let trace = programs.path().join("trace.json");
    let Some(rows) = query(&trace, &[ERRORS, slices, counters, blocks]) else { return };
    let [errors, slices, counters, blocks] = rows.as_slice() else { panic!("{rows:?}") };
    assert!(errors.is_empty(), "{errors:?}");
    let of = |thread: &str| -> Vec<&Value> {
        slices.iter().filter(|row| row["thread"] == thread).map(|row| &row["name"]).collect()
    };
    let iterations = of("host: iterations");
    assert_eq!((iterations[0], iterations[12]), (&"set-up".into(), &"iteration 12".into()));
    assert!(of("host: operations").contains(&&"matmul".into()), "{slices:?}");
    assert_eq!(of("host: spans"), [&Value::from("forward"); 12]);
    assert!(slices.iter().all(|row| row["dur"].as_i64().is_some_and(|dur| dur > 0)), "{slices:?}");
    let live = counters.iter().find(|row| row["name"] == "host live").expect("the counter");
    assert_eq!(live["most"].as_u64(), peak.as_u64());
    let is_kept = |row: &&Value| row["name"] == "force_contiguous [16,64] f32";
    let kept = blocks.iter().filter(is_kept).filter(|row| row["bytes"] == 4096);
    assert_eq!(kept.count(), 12, "{blocks:?}");
    assert!(blocks.iter().all(|row| row["dur"].as_i64().is_some_and(|dur| dur > 0)), "{blocks:?}");
}

/// Python's own reader reads from the pickle what the JSON has.
fn assert_pickle(programs: &Programs) {
    let json: Value = serde_json::from_str(&programs.read("a.json")).unwrap();
    let script = "import json, pickle; print(json.dumps(pickle.load(open('a.pickle', 'rb'))))";
    let Some(pickled) = read_by(programs, "python3", &["-c", script]) else { return };
    assert_eq!(serde_json::from_str::<Value>(&pickled).unwrap(), json);
}

fn assert_pprof(programs: &Programs, peak: &Value) {
    let arguments = ["tool", "pprof", "-top", "-unit=B", "-tagfocus=host", "peak.pb.gz"];
    let Some(top) = read_by(programs, "go", &arguments) else { return };
    assert!(top.contains(&format!("{peak}B")), "{peak}: {top}");
    assert!(top.contains("host") && top.contains("matmul"), "{top}");
}

fn assert_sarif(programs: &Programs) {
    let line = programs.line("kept");
    let script = "import sarif.loader\nfor found in sarif.loader.load_sarif_file('a.sarif')\
                  .get_records(): print(found['Severity'], found['Code'], found['Location'], \
                  found['Line'], found['Tool'])";
    let has_reader = Command::new("python3").args(["-c", "import sarif.loader"]).output();
    if !has_reader.is_ok_and(|output| output.status.success()) {
        skip_reader("this machine has no reader of SARIF (pip install sarif-tools)");
        return;
    }
    let records = read_by(programs, "python3", &["-c", script]).expect("Python");
    let expected = format!("error leak {} {line} memcheck", programs.source());
    assert!(records.lines().any(|record| record == expected), "{records}");
}
