//! The exit code of each kind of failure that a user can cause. Each must have a clear message and
//! state the next step.

use crate::documentation::{reference, section};
use crate::fixture::{Programs, Project, memcheck, memcheck_with};

#[test]
fn a_usage_error_exits_with_2() {
    let programs = Programs::of("exit_codes");
    for arguments in [
        &["--no-such-flag"][..],
        &["--device", "gpu"],
        &["--device", "sim:h2000"],
        &["--partition", "hash:3/2"],
        &["--max-growth", "1 parsec"],
        &["-D", "leek"],
        &["-A", "leak"],
        &["--report", "junit"],
    ] {
        let run = programs.run("cpu", arguments);
        assert_eq!(run.code, 2, "{arguments:?}: {}", run.stderr);
        assert!(!run.stderr.is_empty(), "{arguments:?}");
    }
    programs.run("cpu", &["--device", "sim:h2000"]).prints("h200");
    // A machine that cannot be simulated must be rejected before the build.
    let project = Project::new("this is not Rust\n");
    for (machine, expected) in [
        ("40xt4", "a machine has 1 to 32 devices, not 40"),
        ("20xt4+13xh200", "a machine has 1 to 32 devices, not 33"),
        ("0xt4", "a machine has 1 to 32 devices, not 0"),
        ("h200,capacity=1025GiB", "`1025GiB` is not a capacity"),
    ] {
        project.run(&["--device", &format!("sim:{machine}")]).exits(2).prints(expected);
        let variable = [("MEMCHECK_SIM", machine)];
        let sim = memcheck_with(project.path(), &["run", "--device", "sim"], &variable);
        sim.exits(2).prints("MEMCHECK_SIM").prints(expected);
        let estimate = ["estimate", "--config", "none.json", "--seq", "8", "--device", "sim"];
        let estimate = memcheck_with(project.path(), &estimate, &variable);
        estimate.exits(2).prints("MEMCHECK_SIM").prints(expected);
    }
    memcheck(programs.path(), &["explain", "leek"]).exits(2).prints("leak");
    programs.memcheck(&["list", "--runner", "srun 'a"]).exits(2).prints("not a command line");
    project.memcheck(&["prune", "--runner", "srun 'a"]).exits(2).prints("not a command line");
    let run =
        programs.run("cpu", &["--", "--nonsense"]).exits(2).prints("has no flag `--nonsense`");
    let hint = run.summary()["error"]["hint"].as_str().expect("a hint").to_owned();
    let (_, named) = hint.split_once("it accepts ").expect("a list of flags");
    let (named, _) = named.split_once(';').expect("the end of the list");
    let reference = reference();
    let section = section(&reference, "## Behind `--`");
    for flag in named.split(", ") {
        assert!(section.contains(&format!("`{flag}`")), "{flag} is not in the reference");
    }
}

#[test]
fn a_run_without_memory_tests_exits_with_4() {
    let project = Project::new("");
    project.run(&[]).exits(4);
    project.run(&["--no-tests", "warn"]).exits(0);
    let without = Project::bare("");
    without.run(&[]).exits(4).prints("memcheck-runtime");
    assert_doctor_obeys_verbose_and_quiet(&without);
    let programs = Programs::of("exit_codes");
    let none = programs.run("cpu", &["exit_codes::no_such_test"]).exits(4);
    none.prints("no test was selected by the filter `exit_codes::no_such_test`");
    let mistyped = ["run", "--device", "cpu", "--message-format", "json", "--no-ci", "lsit"];
    let mistyped = programs.memcheck(&mistyped).exits(4);
    mistyped.prints("by the filter `lsit`").prints("did you mean `cargo memcheck list`?");
}

fn assert_doctor_obeys_verbose_and_quiet(without_memory_tests: &Project) {
    let doctor = |more: &[&str]| {
        let arguments = [&["doctor", "--no-run"], more].concat();
        without_memory_tests.memcheck(&arguments).exits(0).stdout
    };
    let all = doctor(&[]);
    assert!(all.contains("packages with memory tests: none\n"), "{all}");
    let verbose = doctor(&["-v"]);
    assert!(verbose.contains("MEMCHECK_DEVICE is not set"), "{verbose}");
    assert_eq!(doctor(&["-q"]), "");
}

#[test]
fn a_missing_gpu_exits_with_105_and_is_never_replaced_by_another_device() {
    if std::path::Path::new("/dev/nvidia0").exists() {
        eprintln!("skipped: this machine has a GPU");
        return;
    }
    let run = Programs::of("exit_codes").run("cuda", &[]).exits(105);
    assert_eq!(run.summary()["exit_code"], 105);
    assert!(
        run.stderr.contains("sim"),
        "the hint does not suggest the simulated GPU: {}",
        run.stderr
    );
}

#[test]
fn a_failed_build_exits_with_101_and_failed_metadata_with_102() {
    let project = Project::new("this is not Rust\n");
    let run = project.run(&[]).exits(101);
    assert_eq!(run.summary()["exit_code"], 101);
    project.write("tests/mem.rs", "#[memcheck_runtime::mem_test(iterations = 0)]\nfn a() {}\n");
    project.run(&[]).exits(101).prints("nothing would be measured");
    project.write("Cargo.toml", "[package\n");
    project.run(&[]).exits(102);
}

#[test]
fn a_target_whose_required_feature_is_off_is_reported_as_not_built() {
    let project = Project::bare(
        "[features]\nextra = []\n[dev-dependencies]\nmemcheck-runtime = { path = \"RUNTIME\" }\n\
         [[test]]\nname = \"extra\"\nrequired-features = [\"extra\"]\n",
    );
    project.write("tests/extra.rs", "#[memcheck_runtime::mem_test]\nfn a() {}\n");
    project.write("tests/mem.rs", "#[memcheck_runtime::mem_test(baseline = false)]\nfn b() {}\n");
    let run = project.run(&[]).exits(0);
    assert!(format!("{}{}", run.stdout, run.stderr).contains("not-built"), "{}", run.stderr);
    project.run(&["-D", "not-built"]).exits(5);
    let all = project.run(&["--all-features"]).exits(0);
    assert_eq!(all.test("a")["status"], "passed");
}

#[test]
fn a_report_that_cannot_be_written_exits_with_110() {
    let programs = Programs::of("exit_codes");
    programs.run("cpu", &["--report", "junit=/dev/null/junit.xml"]).exits(110);
    let mut kinds = vec!["junit=junit.xml", "markdown=report.md", "html=report.html"];
    kinds.extend(["trace=trace.json", "flamegraph=peak.svg"]);
    let arguments: Vec<&str> = kinds.iter().flat_map(|kind| ["--report", kind]).collect();
    programs.run("cpu", &arguments).exits(0);
    let data = crate::report_data::report_data(&programs.read("report.html"));
    let iterations = &data[1]["spaces"][0]["iterations"]["allocated"];
    assert_eq!(iterations.as_array().unwrap().len(), 10, "the report has no plot");
    let trace: serde_json::Value = serde_json::from_str(&programs.read("trace.json")).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let is_iteration = |event: &&serde_json::Value| {
        event["name"].as_str().is_some_and(|name| name.starts_with("iteration "))
    };
    assert_eq!(events.iter().filter(is_iteration).count(), 10);
    assert!(programs.read("junit.xml").contains("<testcase name=\"exit_codes::passes\""));
    assert!(programs.read("report.md").contains("passes"));
    assert!(
        programs
            .read("peak.svg")
            .contains("no test was run with call stacks: use --explain always")
    );
}
