//! An executable that is replaced while its tests run.

use crate::fixture::Project;

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
