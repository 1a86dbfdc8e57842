//! Bodies that fork. Only the process that was started for a test may write its record: a forked
//! child that returns from the body ends without one, whatever its parent does. Also an executable
//! that is replaced while its tests run.

use crate::fixture::{Programs, Project};

/// `end_of` is the exit status of a child, and -1 if a signal ended it.
const TESTS: &str = r#"
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

fn fork() -> i32 {
    unsafe { libc::fork() }
}

fn end_of(child: i32) -> i32 {
    let mut status = 0;
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -1 }
}

fn exit_now() -> ! {
    unsafe { libc::_exit(0) }
}

fn iterate_cleanly(trial: &Trial) -> candle_core::Result<()> {
    trial.iterate(|_| Tensor::zeros(1024, DType::F32, trial.device()).map(drop))
}

fn leak(trial: &Trial) -> candle_core::Result<()> {
    trial.iterate(|_| Tensor::zeros(1024, DType::F32, trial.device()).map(std::mem::forget))
}

/// Ends the measured process without a record, after its clean child has returned.
fn leak_and_exit(trial: &Trial, child: i32) -> ! {
    leak(trial).unwrap();
    end_of(child);
    exit_now()
}

#[mem_test(max_growth = "0 B")]
fn exits_while_its_child_returns(trial: &mut Trial) -> candle_core::Result<()> {
    match fork() {
        0 => iterate_cleanly(trial),
        child => leak_and_exit(trial, child),
    }
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn exits_while_its_child_panics(trial: &mut Trial) -> candle_core::Result<()> {
    match fork() {
        0 => panic!("in the child"),
        child => leak_and_exit(trial, child),
    }
}

/// A second round follows the first one, which keeps memory.
#[mem_test(max_growth = "0 B", baseline = false)]
fn exits_in_its_second_round(trial: &mut Trial) -> candle_core::Result<()> {
    static ROUND: AtomicU32 = AtomicU32::new(0);
    if ROUND.fetch_add(1, Relaxed) == 0 {
        std::mem::forget(Tensor::zeros(1 << 20, DType::F32, trial.device())?);
        return iterate_cleanly(trial);
    }
    match fork() {
        0 => iterate_cleanly(trial),
        child => {
            end_of(child);
            exit_now()
        }
    }
}

/// The error of the child is that of a body that must be run again without memcheck's subscriber.
#[mem_test(max_growth = "0 B", baseline = false)]
fn exits_while_its_child_installs_a_subscriber(trial: &mut Trial) -> candle_core::Result<()> {
    match fork() {
        0 => {
            let _ = tracing::subscriber::set_global_default(tracing::subscriber::NoSubscriber::new());
            tracing::subscriber::set_global_default(tracing::subscriber::NoSubscriber::new()).unwrap();
            iterate_cleanly(trial)
        }
        child => leak_and_exit(trial, child),
    }
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn leaks_while_its_child_returns(trial: &mut Trial) -> candle_core::Result<()> {
    match fork() {
        0 => iterate_cleanly(trial),
        child => {
            leak(trial)?;
            end_of(child);
            Ok(())
        }
    }
}

#[mem_test(max_growth = "0 B")]
fn returns_while_its_child_leaks(trial: &mut Trial) -> candle_core::Result<()> {
    match fork() {
        0 => leak(trial),
        child => {
            iterate_cleanly(trial)?;
            assert_eq!(end_of(child), 3);
            Ok(())
        }
    }
}

#[mem_test(max_growth = "0 B")]
fn returns_while_its_child_fails(trial: &mut Trial) -> candle_core::Result<()> {
    match fork() {
        0 => trial.iterate(|index| match index {
            11 => Err(candle_core::Error::msg("in the child")),
            _ => Ok(()),
        }),
        child => {
            iterate_cleanly(trial)?;
            end_of(child);
            Ok(())
        }
    }
}

/// Each iteration starts helpers, by `fork` and by the `vfork` of the standard library.
#[mem_test(max_growth = "0 B", baseline = false)]
fn starts_helpers(trial: &mut Trial) -> candle_core::Result<()> {
    trial.iterate(|_| {
        let child = fork();
        if child == 0 {
            unsafe {
                libc::execlp(c"true".as_ptr(), c"true".as_ptr(), std::ptr::null::<libc::c_char>());
                libc::_exit(9)
            }
        }
        assert_eq!(end_of(child), 0);
        assert!(std::process::Command::new("true").status()?.success());
        Tensor::zeros(1024, DType::F32, trial.device()).map(drop)
    })
}
"#;

/// The tests whose measured process ends without a record, and with exit status 0.
const UNRECORDED: [&str; 4] = [
    "exits_while_its_child_returns",
    "exits_while_its_child_panics",
    "exits_in_its_second_round",
    "exits_while_its_child_installs_a_subscriber",
];

/// The tests whose measured process is clean. The first two have a baseline.
const CLEAN: [&str; 3] =
    ["returns_while_its_child_leaks", "returns_while_its_child_fails", "starts_helpers"];

#[test]
fn only_the_process_that_was_started_for_a_test_writes_its_record() {
    let project = Project::new(TESTS);
    for device in ["cpu", "sim"] {
        for explain in ["failed", "always"] {
            let run = ["run", "--device", device, "--no-ci", "--message-format", "json"];
            let run = project.memcheck(&[&run[..], &["--explain", explain]].concat()).exits(100);
            for test in UNRECORDED {
                assert_eq!(run.codes(test), ["not-measured"], "{device} {explain} {test}");
            }
            assert_eq!(run.codes("leaks_while_its_child_returns")[0], "leak", "{device} {explain}");
            for test in CLEAN {
                assert_ne!(run.test(test)["status"], "failed", "{device} {explain} {test}");
            }
            let pending = run.summary()["pending"].to_string();
            for test in CLEAN {
                assert_eq!(pending.contains(test), test != "starts_helpers", "{pending}");
            }
            assert!(!pending.contains("exits_"), "{pending}");
            assert!(
                run.stderr.contains("which ends here with exit code 3 and without a record"),
                "{}",
                run.stderr
            );
        }
    }
    let plain = project.cargo_test().output().expect("cargo runs");
    let text = String::from_utf8_lossy(&[plain.stdout, plain.stderr].concat()).into_owned();
    assert_eq!(plain.status.code(), Some(101), "{text}");
    for test in UNRECORDED {
        assert!(text.contains(&format!("test {test} ... FAILED")), "{test} in {text}");
        assert!(
            text.contains(&format!("the process of `{test}` ended without a record")),
            "{text}"
        );
    }
    for test in CLEAN {
        assert!(text.contains(&format!("test {test} ... ok")), "{test} in {text}");
    }
    assert!(text.contains("test leaks_while_its_child_returns ... FAILED"), "{text}");
}

#[test]
fn a_forked_child_writes_no_results_of_a_fault_sweep() {
    let run = Programs::of("forks").run("sim", &[]).exits(0);
    assert_eq!(run.test("forks")["fault_sweep"]["refused"], 2, "{}", run.test("forks"));
}

/// A build replaces the executable while its tests run. The first of these ordinary tests does so.
const REPLACED: &str = r#"
#[test]
fn a_replaces_the_executable() {
    let own = std::env::current_exe().unwrap();
    std::fs::remove_file(&own).unwrap();
    std::fs::write(&own, "not an executable").unwrap();
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn b_passes(trial: &mut Trial) -> candle_core::Result<()> {
    let comm = std::fs::read_to_string("/proc/self/comm").unwrap();
    println!("named {} {comm}", std::env::args().next().unwrap());
    trial.iterate(|_| Tensor::zeros(1024, DType::F32, trial.device()).map(drop))
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn c_leaks(trial: &mut Trial) -> candle_core::Result<()> {
    trial.iterate(|_| Tensor::zeros(1024, DType::F32, trial.device()).map(std::mem::forget))
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn d_is_started_again(trial: &mut Trial) -> candle_core::Result<()> {
    let none = tracing::subscriber::NoSubscriber::new();
    tracing::subscriber::set_global_default(none).unwrap();
    trial.iterate(|_| Tensor::zeros(1024, DType::F32, trial.device()).map(drop))
}
"#;

#[test]
fn tests_run_in_the_executable_of_their_harness_after_a_build_has_replaced_it() {
    let project = Project::new(REPLACED);
    let mut build = project.cargo_test();
    let built = build.args(["--no-run", "--message-format", "json"]).output().expect("cargo runs");
    let built = String::from_utf8_lossy(&built.stdout).into_owned();
    let mut executables = built.lines().filter_map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).ok()?;
        line["executable"].as_str().map(str::to_owned)
    });
    let copy = project.path().join("copied");
    std::fs::copy(executables.next_back().expect("an executable"), &copy).expect("it is copied");
    let mut harness = std::process::Command::new(&copy);
    harness.args(["--test-threads=1", "--nocapture"]).current_dir(project.path());
    let run = harness.env_remove("CI").env("MEMCHECK_EXPLAIN", "always").output().expect("it runs");
    let text = String::from_utf8_lossy(&[run.stdout, run.stderr].concat()).into_owned();
    assert!(text.contains("test result: FAILED. 3 passed; 1 failed"), "{text}");
    for line in [
        &format!("named {} copied", copy.display()),
        "leak: host grows by 4,096 B",
        "memcheck: the test installs its own `tracing` subscriber, so it is run again",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
}
