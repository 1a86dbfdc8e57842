//! The reports about a test that ran with attribution: the JSON stream, the HTML page and the
//! trace.

use std::process::Command;

use serde_json::Value;

use crate::fixture::{Programs, skip_reader};
use crate::memory_viz;
use crate::perfetto::{ERRORS, query};
use crate::report_data::report_data;

fn programs() -> Programs {
    Programs::of("reports")
}

fn sum(holders: &Value) -> u64 {
    holders.as_array().unwrap().iter().map(|holder| holder["bytes"].as_u64().unwrap()).sum()
}

#[test]
fn json_reports_the_holders_of_memory_in_a_followed_test() {
    let programs = programs();
    let run = programs.run("cpu", &[]).exits(100);
    assert!(run.test("clean").get("attribution").is_none(), "a passed test was followed");
    let leaky = run.test("leaky");
    let host = &leaky["attribution"]["spaces"][0];
    assert_eq!(host["peak"], leaky["metrics"]["host"]["peak_allocated"]);
    assert_eq!(sum(&host["holders"]), host["peak"].as_u64().unwrap());
    assert_eq!(sum(&host["kinds"]), host["peak"].as_u64().unwrap());
    let holders = host["holders"].as_array().unwrap();
    let kept = holders.iter().find(|holder| holder["kind"] == "kept").unwrap();
    assert_eq!(
        (&kept["scope"], &kept["count"], &kept["bytes"]),
        (&"forward".into(), &11.into(), &(11 * 4096).into())
    );
    let survivors = &host["survivors"][0];
    assert_eq!((&survivors["pattern"], &survivors["bytes"]), (&"steady".into(), &40_960.into()));
    assert_eq!(survivors["bytes_per_iteration"], 4096);
    assert!(leaky["attribution"]["events"].as_u64().unwrap() > 24);
    let never = programs.run("cpu", &["--explain", "never"]).exits(100);
    assert!(never.test("leaky").get("attribution").is_none());
    let always = programs.run("cpu", &["--explain", "always", "reports::clean"]).exits(0);
    let clean = &always.test("clean")["attribution"]["spaces"][0];
    assert_eq!(sum(&clean["holders"]), clean["peak"].as_u64().unwrap());
    assert_eq!(clean["survivors"], serde_json::json!([]));
}

#[test]
fn html_shows_sites_causes_the_peak_scopes_and_a_chart() {
    let programs = programs();
    programs.run("cpu", &["--explain", "always", "--report", "html=out/report.html"]).exits(100);
    let page = programs.read("out/report.html");
    let line = format!("<strong>line: </strong><code>{}:", programs.source());
    for part in [
        "<span class=\"code\">leak</span> host grows by 4.0 KiB per iteration",
        "<strong>cause: </strong>",
        "<strong>remedy: </strong>",
        &line,
        "<code class=\"source\">kept.push(",
    ] {
        assert!(page.contains(part), "`{part}` is not in\n{page}");
    }
    let data = report_data(&page);
    let test = |name: &str| {
        data.iter().find(|test| test["test"] == format!("reports::{name}")).expect("the test")
    };
    let (clean, leaky) = (test("clean"), test("leaky"));
    let held = &leaky["spaces"][0]["held"];
    assert!(held["when"].as_str().unwrap().starts_with(", in iteration "), "{held}");
    assert!(held["kinds"].to_string().contains("activations"), "{held}");
    assert_eq!(held["survivors"][0]["note"], "steady, 4,096 B (4.0 KiB) per iteration");
    assert_eq!(leaky["spaces"][0]["tables"][2]["by"], "scope");
    assert!(leaky["spaces"][0]["tables"][2]["rows"].to_string().contains("forward"));
    assert_eq!(clean["spaces"][0]["held"]["growth"], "no growth: no block survives 10 iterations");
    assert_blocks_add_up(held);
}

/// At each event the live blocks are those that a reader can count, and their most bytes the peak.
fn assert_blocks_add_up(held: &Value) {
    let lifetimes = &held["lifetimes"];
    let column = |name: &str| -> Vec<u64> {
        let column = lifetimes[name].as_array().expect(name).iter();
        column.map(|value| value.as_u64().expect(name)).collect()
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
fn a_trace_has_the_events_and_a_mark_at_the_peak() {
    let programs = programs();
    let mut kinds = vec!["trace=trace.json", "flamegraph=peak.svg", "pprof=peak.pb.gz"];
    kinds.extend(["memory-viz=a.pickle", "memory-viz-json=a.json", "sarif=a.sarif"]);
    let reports: Vec<&str> = kinds.into_iter().flat_map(|kind| ["--report", kind]).collect();
    let run = programs.run("cpu", &reports).exits(100);
    let peak = &run.test("leaky")["metrics"]["host"]["peak_allocated"];
    let trace: Value = serde_json::from_str(&programs.read("trace.json")).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let name = |event: &&Value| {
        event["args"]["name"].as_str().is_some_and(|name| name.ends_with("(events)"))
    };
    let processes: Vec<&Value> = events.iter().filter(name).collect();
    let [process] = processes.as_slice() else { panic!("{processes:#?}") };
    let events_of = |phase: &str| -> Vec<&Value> {
        let is_phase = |event: &&Value| event["pid"] == process["pid"] && event["ph"] == phase;
        events.iter().filter(is_phase).collect()
    };
    let highest =
        events_of("C").into_iter().max_by_key(|event| event["args"]["live"].as_u64()).unwrap();
    assert_eq!(highest["args"]["live"], *peak);
    let mark = events_of("i")[0];
    assert_eq!((&mark["name"], &mark["args"]["bytes"]), (&"peak of host".into(), peak));
    assert_eq!(mark["ts"], highest["ts"]);
    assert_eq!(sum(&mark["args"]["holders"]), peak.as_u64().unwrap());
    assert_eq!(mark["args"]["scopes"][0]["scope"], "forward");
    // The frame of the space is as wide as its peak, in bytes, and directly above the frame of the
    // test.
    let graph = programs.read("peak.svg");
    let bytes = |frame: &str| -> u64 {
        let titles = graph.split("<title>").filter_map(|title| title.split_once("</title>"));
        let title = titles.map(|(title, _)| title).find(|title| title.contains(frame));
        let title = title.unwrap_or_else(|| panic!("no frame {frame} in\n{graph}"));
        let (bytes, _) = title.rsplit_once('(').unwrap().1.split_once(" bytes").unwrap();
        bytes.replace(',', "").parse().unwrap()
    };
    assert_eq!(bytes("host at its peak"), peak.as_u64().unwrap());
    assert!(bytes("in forward") > 0);
    assert_perfetto(&programs, peak);
    assert_snapshots(&programs, peak);
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

/// Adds up the blocks of a trace as PyTorch's viewer does, and compares the snapshots with each
/// other: a pickle is read by Python's own reader.
fn assert_snapshots(programs: &Programs, peak: &Value) {
    let json: Value = serde_json::from_str(&programs.read("a.json")).unwrap();
    let (mut live, mut most) = (0, 0);
    for event in json["device_traces"][0].as_array().unwrap() {
        let size = event["size"].as_i64().unwrap();
        live += match event["action"].as_str().unwrap() {
            "alloc" => size,
            "free_completed" => -size,
            _ => 0,
        };
        most = most.max(live);
    }
    assert_eq!(most, peak.as_i64().unwrap());
    let segments = json["segments"].as_array().unwrap();
    let of_host = segments.iter().filter(|segment| segment["device"] == 0);
    assert_eq!(of_host.map(|it| it["total_size"].as_i64().unwrap()).sum::<i64>(), live);
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

/// The leak is at its line, as a person and as a reader of code scanning find it.
fn assert_sarif(programs: &Programs) {
    let sarif: Value = serde_json::from_str(&programs.read("a.sarif")).unwrap();
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    let leak = results.iter().find(|result| result["ruleId"] == "leak").expect("a leak");
    let place = &leak["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], programs.source());
    let line = place["region"]["startLine"].as_u64().unwrap();
    assert_eq!(line, programs.line("kept"));
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
