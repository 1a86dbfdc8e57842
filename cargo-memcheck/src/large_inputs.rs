//! Time and memory of large inputs, each of one size and of the double. `just scale` prints them.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use memcheck_core::judgement::baseline::Baseline;
use memcheck_core::judgement::finding::Code;
use memcheck_core::judgement::location::Roots;
use memcheck_core::judgement::verdict;
use memcheck_core::runs::report::Report;
use memcheck_core::space::Space;
use serde_json::{Value, json};

use crate::discovery::task::example;
use crate::presentation::presenters::every;
use crate::presentation::results::{self, MergedRun};

/// In seconds of a processor.
const MOST_SECONDS: f64 = 60.0;
const MOST_BYTES: u64 = 2 << 30;
const MOST_RATIO: f64 = 2.3;

struct Input {
    name: &'static str,
    size: usize,
    input: fn(usize) -> String,
    /// Reads the input from its folder.
    run: fn(&Path, &str),
    /// The presenters, or other steps, that are measured one by one.
    steps: fn() -> Vec<&'static str>,
}

const CASES: [Input; 4] = [
    Input { name: "tests", size: 100_000, input: stream, run: present, steps: presenters },
    Input { name: "holders", size: 1_000_000, input: holders, run: judge, steps: steps_of_report },
    Input { name: "scope depth", size: 10_000, input: deep, run: judge, steps: steps_of_report },
    Input {
        name: "survivors",
        size: 100_000,
        input: survivors,
        run: judge,
        steps: steps_of_report,
    },
];

fn presenters() -> Vec<&'static str> {
    every::names().collect()
}

/// Of the report of a test, which is judged first.
fn steps_of_report() -> Vec<&'static str> {
    ["judge", "profile"].into_iter().chain(every::names()).collect()
}

fn roots() -> Roots<'static> {
    Roots::new(Path::new("/r"), None)
}

fn present(folder: &Path, step: &str) {
    let run = results::read_in_file(folder, roots()).expect("the stream is valid");
    let whole = MergedRun::from(run);
    let written = every::present(step, |to| results::replay(whole, |event| event(to)));
    written.into_iter().for_each(|report| report.expect("a report"));
}

fn judge(folder: &Path, step: &str) {
    let text = std::fs::read(results::file(folder)).expect("the input can be read");
    let mut report: Report = serde_json::from_slice(&text).expect("the report is valid");
    drop(text);
    if step == "profile" {
        return crate::fuzzing::report::profile(&report);
    }
    judge_growth(&mut report);
    match step {
        "judge" => {}
        presenter => {
            let written = crate::fuzzing::report::present(presenter, report);
            written.into_iter().for_each(|report| report.expect("a report"));
        }
    }
}

fn judge_growth(report: &mut Report) {
    let level = |code: Code| code.default_level(false);
    let record = &report.record;
    report.verdict = verdict::judge(record, &Baseline::Off, &record.limits, level);
}

fn stream(tests: usize) -> String {
    let run = json!({"run": {
        "version": 3, "protocol": memcheck_core::wire::protocol::VERSION,
        "record": memcheck_core::measurement::record::VERSION,
        "memcheck": env!("CARGO_PKG_VERSION"), "workspace": "/w", "partition": null,
        "devices": ["cpu"], "commit": null, "mode": "Local",
    }});
    let task = example::task();
    let leg = json!({"leg": {"leg": &task.leg, "tests": tests}});
    let mut report = example::report();
    report["record"]["spaces"]["host"]["allocated"] = json!(vec![1; 10]);
    report["record"]["spaces"]["host"]["peak"] = json!(vec![2; 10]);
    let finding = json!({"code": "leak", "message": "host grows by 64 B per iteration"});
    let verdict = json!({"status": "failed", "findings": [finding], "denied": []});
    report["verdict"] = verdict.clone();
    let outcome = json!({
        "verdict": verdict, "report": report,
        "output": {"stdout": "one line\n", "stderr": ""}, "duration": {"secs": 0, "nanos": 1},
    });
    let mut task = serde_json::to_value(&task).expect("a task");
    let mut text = format!("{run}\n{leg}\n");
    for number in 0..tests {
        task["subject"]["test"]["name"] = json!(format!("a::test_{number}"));
        let test = json!({"test": {"task": task, "outcome": outcome}});
        let _ = writeln!(text, "{test}");
    }
    let end = json!({"end": {
        "selected": "", "tests": tests, "elsewhere": 0, "not_run": 0, "interrupted": false, "exit_code": 100,
        "seconds": 1.0,
    }});
    let _ = writeln!(text, "{end}");
    text
}

/// A report whose attribution has these lists.
fn report(stacks: &str, places: &str, holders: &str, survivors: &str, sizes: Value) -> String {
    let mut report = example::report();
    let host = &mut report["record"]["spaces"]["host"];
    host["survivors"] = sizes;
    host["metrics"]["growth"] = json!(1 << 30);
    host["metrics"]["peak_allocated"] = json!(4096);
    let mut text = report.to_string();
    let attribution = format!(
        "\"attribution\":{{\"stacks\":[{stacks}],\"places\":[{places}],\"retained\":[{holders}],\
         \"survivors\":[{survivors}],\"events\":1,\"peaks\":{{\"host\":{{\"bytes\":4096,\
         \"iteration\":1,\"stretch\":1,\"timeline\":[4096],\"holders\":[{holders}]}}}}}},"
    );
    let record = text.find("\"record\":{").expect("a record") + "\"record\":{".len();
    text.insert_str(record, &attribution);
    text
}

fn list(length: usize, item: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    for number in 0..length {
        if number > 0 {
            text.push(',');
        }
        text.push_str(&item(number));
    }
    text
}

fn stack(number: usize) -> String {
    format!(
        "{{\"frames\":[{{\"function\":\"candle_core::tensor::Tensor::matmul\"}},\
         {{\"function\":\"app::step\",\"file\":\"src/model.rs\",\"line\":{number}}}]}}"
    )
}

fn place(stack: usize, scope: &str) -> String {
    format!(
        "{{\"space\":\"host\",\"stack\":{stack},\"scope\":\"{scope}\",\"calls\":1,\"bytes\":64,\
         \"last_calls\":1,\"last_bytes\":64,\"last\":12}}"
    )
}

fn holder(place: usize) -> String {
    format!("{{\"place\":{place},\"kind\":\"kept\",\"bytes\":64,\"count\":1}}")
}

fn holders(length: usize) -> String {
    let places = list(length, |number| place(number % 1_000, &format!("layer{number}")));
    report(&list(1_000, stack), &places, &list(length, holder), "", json!([]))
}

fn deep(depth: usize) -> String {
    let scope = vec!["s"; depth].join(".");
    let places = list(100, |number| place(number, &format!("{scope}.{number}")));
    report(&list(100, stack), &places, &list(100, holder), "", json!([]))
}

/// Half of the call sites grow. The others hold a size that grows, and each has another size.
fn survivors(length: usize) -> String {
    let group = |block: usize, rate: usize| {
        format!(
            "{{\"block\":{block},\"births\":[1,1],\"bytes\":[{block},{block}],\"live\":[1,2],\
             \"live_bytes\":[{block},{block}],\"reading\":{{\"pattern\":\"steady\",\
             \"bytes_per_iteration\":{rate},\"period\":1,\"bytes\":8,\"last\":0,\"groups\":1}}}}"
        )
    };
    let survivor = |number: usize| {
        let group = group(number + 1, number % 2);
        format!("{{\"space\":\"host\",\"stack\":{number},\"group\":{group}}}")
    };
    let sizes = format!("[{}]", list(length / 2, |number| group(2 * number + 1, 1)));
    let sizes = serde_json::from_str(&sizes).expect("a list of groups");
    let places = list(length, |number| place(number, ""));
    report(&list(length, stack), &places, &list(length, holder), &list(length, survivor), sizes)
}

#[test]
fn a_large_input_of_each_kind_is_presented() {
    for Input { input, run, steps, .. } in CASES {
        let folder = written(input(40));
        steps().iter().for_each(|step| run(folder.path(), step));
    }
    let mut report: Report = serde_json::from_str(&survivors(40)).unwrap();
    judge_growth(&mut report);
    let leak = report.verdict.findings.iter().find(|finding| finding.space == Some(Space::Host));
    assert_eq!(leak.map(|leak| leak.sites.len()), Some(20 + 2 * 20));
}

#[test]
#[ignore = "it takes minutes, and needs an optimised build: just scale"]
fn double_inputs_take_double_the_time() {
    println!("{:12} {:>9} {:12} {:>8} {:>6} {:>8}", "", "size", "", "seconds", "ratio", "MiB");
    let mut failures = Vec::new();
    // For a look at the ratios in a build that is not optimised.
    let divisor = std::env::var("DIVISOR").ok().and_then(|divisor| divisor.parse().ok());
    for Input { name, size, input, steps, .. } in CASES {
        let size = size / divisor.unwrap_or(1);
        let [once, twice] = [size, 2 * size].map(|size| written(input(size)));
        for step in &steps() {
            let (first, few) = in_own_process(name, step, once.path());
            let (second, bytes) = in_own_process(name, step, twice.path());
            let ratio = second / first;
            for (size, seconds, ratio, bytes) in
                [(size, first, 1.0, few), (2 * size, second, ratio, bytes)]
            {
                println!(
                    "{name:12} {size:>9} {step:12} {seconds:>8.2} {ratio:>6.2} {:>8}",
                    bytes >> 20
                );
            }
            // A ratio of a few milliseconds is noise.
            if (ratio > MOST_RATIO && second > 0.1) || first > MOST_SECONDS || few > MOST_BYTES {
                failures.push(format!("{name} {step}: {first:.2} s, {ratio:.2}, {few} B"));
            }
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// The variables that ask [`one_step`] for a step of a case with the input in a folder.
const CASE: &str = "LARGE_CASE";
const STEP: &str = "LARGE_STEP";
const FOLDER: &str = "LARGE_FOLDER";

/// An allocator can keep what earlier steps have freed, which would be part of the memory.
fn in_own_process(case: &str, step: &str, folder: &Path) -> (f64, u64) {
    let executable = std::env::current_exe().expect("this program has a file");
    let output = Command::new(executable)
        .args(["large_inputs::one_step", "--exact", "--ignored", "--nocapture"])
        .envs([(CASE, case), (STEP, step)])
        .env(FOLDER, folder)
        .output()
        .expect("the test executable starts");
    assert!(output.status.success(), "{case} {step}: {}", output.status);
    let text = String::from_utf8_lossy(&output.stdout);
    let figures = text.lines().find_map(|line| line.strip_prefix("measured "));
    let (seconds, bytes) = figures.and_then(|line| line.split_once(' ')).expect("two figures");
    (seconds.parse().expect("seconds"), bytes.parse().expect("bytes"))
}

#[test]
#[ignore = "a part of double_inputs_take_double_the_time, which starts it"]
fn one_step() {
    let [case, step, folder] = [CASE, STEP, FOLDER].map(std::env::var);
    let (Ok(case), Ok(step), Ok(folder)) = (case, step, folder) else { return };
    let Input { run, .. } = CASES.into_iter().find(|known| known.name == case).expect("a case");
    let (seconds, bytes) = measured(|| run(folder.as_ref(), &step));
    println!("\nmeasured {seconds} {bytes}");
}

/// A report of one run, whose tests stay in their file. The limit is that of text for people. A
/// file of a report has the output or the data of all tests, and is made in memory.
#[test]
#[ignore = "it takes a minute, and needs an optimised build: just scale"]
fn a_report_of_twenty_thousand_tests_needs_little_memory() {
    const MOST: u64 = 256 << 20;
    // About as long as the lines of this workspace's own tests are on average.
    let folder = written(stream(20_000).replace("one line\\n", &"one line\\n".repeat(700)));
    let size = std::fs::metadata(results::file(folder.path())).expect("the input").len() >> 20;
    println!("{:12} {:>9} {:12} {:>8} {:>8}", "", "MiB", "", "seconds", "MiB");
    let mut failures = Vec::new();
    for name in every::names() {
        let (seconds, bytes) = measured(|| {
            let run = results::read_in_file(folder.path(), roots()).expect("it is valid");
            let run = MergedRun::from(run);
            let written = every::present(name, |to| results::replay(run, |event| event(to)));
            written.into_iter().for_each(|report| report.expect("a report"));
        });
        println!("{:12} {size:>9} {name:12} {seconds:>8.2} {:>8}", "report", bytes >> 20);
        if bytes > MOST && ["terminal", "annotations"].contains(&name) {
            failures.push(format!("{name}: {bytes} B"));
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// An input is in a file, as that of a run, so that its text is not part of the memory.
fn written(text: String) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(results::file(folder.path()), text).expect("the folder can be written");
    folder
}

/// The seconds of the processor that this thread used, and the peak of the process's memory.
fn measured(run: impl FnOnce()) -> (f64, u64) {
    let nanoseconds = || -> f64 {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
        text.split(' ').next().and_then(|time| time.parse().ok()).expect("nanoseconds")
    };
    // Resets the peak.
    std::fs::write("/proc/self/clear_refs", "5").expect("Linux");
    let start = nanoseconds();
    run();
    let seconds = (nanoseconds() - start) / 1e9;
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = peak.and_then(|peak| peak.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    (seconds, kibibytes.expect("a peak") << 10)
}
