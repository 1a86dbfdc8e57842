//! Eight runs at the same time in one tree. They share the build, the results and the pending
//! snapshots, and each must have the result that it has alone. `just concurrent` repeats them a
//! hundred times, and `CONCURRENT_ROUNDS=20 just concurrent` twenty times.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::fixture::{Project, Run, command};

const RUNS: usize = 8;

const TESTS: &str = "
#[mem_test]
fn passes() {
    drop(std::hint::black_box(vec![1_u8; 5_000]));
}

#[mem_test(max_growth = \"0 B\", baseline = false)]
fn leaks(trial: &mut Trial) {
    let mut kept = Vec::with_capacity(1_000);
    trial.iterate(|_| kept.push(vec![1_u8; 4_096]));
}
";

fn arguments(number: usize) -> Vec<String> {
    let words = ["run", "--device", "cpu", "--no-ci", "--message-format", "json", "--report"];
    let words = words.into_iter().map(str::to_owned);
    words.chain([format!("json=out/{number}.json")]).collect()
}

/// Files of the tool in the target directory that a run leaves only if it was killed.
fn temporary_folders(project: &Project) -> Vec<String> {
    let own = command(project.path(), &[]);
    let target = own.get_envs().find(|(name, _)| *name == "CARGO_TARGET_DIR");
    let target = target.and_then(|(_, value)| value).expect("a target directory");
    let folder = std::path::Path::new(target).join("memcheck");
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("run-") || name.contains(".part")).collect()
}

/// The duration of the slowest round.
fn rounds(project: &Project, count: usize) -> Duration {
    let snapshot = "tests/snapshots/mem__passes@cpu.snap.new";
    let alone = project.run(&[]).exits(100);
    let figures = |run: &Run, test: &str| -> Value {
        let line = run.test(test);
        serde_json::json!([line["status"], run.exact_metrics(test), line["findings"]])
    };
    let pending = project.read(snapshot);
    let mut slowest = Duration::ZERO;
    for round in 1..=count {
        let _ = std::fs::remove_file(project.path().join(snapshot));
        let _ = std::fs::remove_dir_all(project.path().join("out"));
        let began = Instant::now();
        let start = |number| {
            let words = arguments(number);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let mut command = command(project.path(), &words);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
        };
        let children: Vec<_> = (0..RUNS).map(start).collect();
        for (number, child) in children.into_iter().enumerate() {
            let run = Run::from_output(&child.wait_with_output().expect("it ends")).exits(100);
            for test in ["passes", "leaks"] {
                assert_eq!(figures(&run, test), figures(&alone, test), "round {round}: {test}");
            }
            let summary = run.summary();
            assert_eq!((&summary["passed"], &summary["failed"]), (&1.into(), &1.into()));
            assert_eq!(project.read(&format!("out/{number}.json")), run.stdout, "round {round}");
            assert!(!run.stderr.contains("warning: "), "round {round}: {}", run.stderr);
        }
        slowest = slowest.max(began.elapsed());
        assert_eq!(project.read(snapshot), pending, "round {round}");
        let left = temporary_folders(project);
        assert!(left.is_empty(), "round {round}: {left:?}");
        // The stored results are those of one of the runs, and whole.
        let report = project.memcheck(&["report", "--message-format", "json"]).exits(100);
        assert_eq!(figures(&report, "leaks"), figures(&alone, "leaks"), "round {round}");
    }
    slowest
}

#[test]
#[ignore = "slow: just all"]
fn eight_runs_in_one_tree_do_not_disturb_each_other() {
    rounds(&Project::new(TESTS), 2);
}

/// Run by recipes of the justfile, once a week.
mod weekly {
    use super::*;

    #[test]
    #[ignore = "takes minutes: just concurrent"]
    fn eight_runs_in_one_tree_a_hundred_times() {
        let count = std::env::var("CONCURRENT_ROUNDS").ok().and_then(|count| count.parse().ok());
        let count = count.unwrap_or(100);
        let slowest = rounds(&Project::new(TESTS), count);
        println!("{count} rounds of {RUNS} runs; the slowest took {:.1} s", slowest.as_secs_f64());
    }
}
