//! User errors: each must have a clear message with its exit code, and state the next step.

use crate::documentation::{reference, section};
use crate::fixture::{CLEAN_AND_FIXED, Project, Run, memcheck_with};

#[test]
fn an_unknown_key_in_the_configuration_names_the_place() {
    let project = Project::new(CLEAN_AND_FIXED);
    project.write(".config/memcheck.toml", "[default]\nmax_grwth = \"1 KiB\"\n");
    let run = project.run(&[]).exits(96).says("max_grwth").says("memcheck.toml");
    assert_eq!(run.summary()["exit_code"], 96);
    project.write(".config/memcheck.toml", "[default]\nmax_growth = \"1 parsec\"\n");
    project.run(&[]).exits(96).says("parsec");
    for (text, said, place) in [
        ("[[override]]\ntest = \"a\"\nmax_peek = 1\n", "`max_peek`", "line 3, column 1"),
        ("[[override]]\ntest = \"a[\"\n", "has no end of `[`", "line 2, column 8"),
        ("[findings]\nleek = \"deny\"\n", "`leek`", "line 2, column 1"),
        ("[default]\niterations = 0\n", "at least 1", "line 2, column 14"),
        ("threads = 1\nrunner = \"srun 'a\"\n", "left open", "line 2, column 10"),
    ] {
        project.write(".config/memcheck.toml", text);
        let run = project.run(&[]).exits(96).says(said).says(place);
        let message = run.summary()["error"]["message"].to_string();
        assert!(message.contains(place), "{message}");
    }
}

#[test]
fn a_wrong_variable_is_named() {
    let project = Project::new(CLEAN_AND_FIXED);
    let arguments = ["run", "--device", "cpu", "--no-ci"];
    for (name, value) in
        [("MEMCHECK_MAX_GROWTH", "many"), ("MEMCHECK_DEVICE", "gpu"), ("MEMCHECK_CI", "perhaps")]
    {
        let arguments = if name == "MEMCHECK_DEVICE" { vec!["run"] } else { arguments.to_vec() };
        let arguments: Vec<&str> =
            arguments.into_iter().filter(|a| name != "MEMCHECK_CI" || *a != "--no-ci").collect();
        let run = memcheck_with(project.path(), &arguments, &[(name, value)]);
        run.exits(2).says(name);
    }
}

#[test]
fn a_variable_that_is_no_text_is_a_usage_error_and_not_unset() {
    use std::os::unix::ffi::OsStrExt;
    let project = Project::new(CLEAN_AND_FIXED);
    let value = std::ffi::OsStr::from_bytes(b"/home/andr\xe9/memcheck.toml");
    let mut command = crate::fixture::command(project.path(), &["list", "--device", "cpu"]);
    let output = command.env("MEMCHECK_CONFIG_FILE", value).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("MEMCHECK_CONFIG_FILE: it is no UTF-8"), "{said}");
}

#[test]
fn a_usage_error_is_two() {
    let project = Project::new(CLEAN_AND_FIXED);
    for wrong in [
        &["--no-such-flag"][..],
        &["--device", "gpu"],
        &["--device", "sim:h2000"],
        &["--partition", "hash:3/2"],
        &["--max-growth", "1 parsec"],
        &["-D", "leek"],
        &["-A", "leak"],
        &["--report", "html"],
    ] {
        let run = project.run(wrong);
        assert_eq!(run.code, 2, "{wrong:?}: {}", run.stderr);
        assert!(!run.stderr.is_empty(), "{wrong:?}");
    }
    project.run(&["--device", "sim:h2000"]).says("h200");
    // A machine that cannot be simulated must be rejected before the build.
    project.write("tests/mem.rs", "this is not Rust\n");
    for (machine, why) in [
        ("40xt4", "40 devices: a machine has from 1 to 32"),
        ("20xt4+13xh200", "33 devices: a machine has from 1 to 32"),
        ("0xt4", "0 devices: a machine has from 1 to 32"),
        ("h200,capacity=1025GiB", "`1025GiB` is not a capacity"),
    ] {
        project.run(&["--device", &format!("sim:{machine}")]).exits(2).says(why);
        let variable = [("MEMCHECK_SIM", machine)];
        let sim = memcheck_with(project.path(), &["run", "--device", "sim"], &variable);
        sim.exits(2).says("MEMCHECK_SIM").says(why);
        let estimate = ["estimate", "--config", "none.json", "--seq", "8", "--device", "sim"];
        let estimate = memcheck_with(project.path(), &estimate, &variable);
        estimate.exits(2).says("MEMCHECK_SIM").says(why);
    }
    project.memcheck(&["explain", "leek"]).exits(2).says("leak");
    project.memcheck(&["list", "--runner", "srun 'a"]).exits(2).says("not a command line");
    project.memcheck(&["prune", "--runner", "srun 'a"]).exits(2).says("not a command line");
    let run = project.run(&["--", "--nonsense"]).exits(2).says("has no flag `--nonsense`");
    let hint = run.summary()["error"]["hint"].as_str().expect("what is understood").to_owned();
    let (_, named) = hint.split_once("it takes ").expect("a list of flags");
    let (named, _) = named.split_once(';').expect("the end of the list");
    let reference = reference();
    let section = section(&reference, "## Behind `--`");
    for flag in named.split(", ") {
        assert!(section.contains(&format!("`{flag}`")), "{flag} is not in the reference");
    }
}

#[test]
fn a_package_without_memory_tests_is_four() {
    let project = Project::new("");
    project.run(&[]).exits(4);
    project.run(&["--no-tests", "warn"]).exits(0);
    let without = Project::bare("");
    without.run(&[]).exits(4).says("memcheck-runtime");
    let project = Project::new(CLEAN_AND_FIXED);
    let none = project.run(&["no_such_test"]).exits(4);
    none.says("no test was selected by the filter `no_such_test`");
    let mistyped = project.run(&["lsit"]).exits(4);
    mistyped.says("by the filter `lsit`").says("did you mean `cargo memcheck list`?");
}

#[test]
fn a_doctor_says_where_nothing_is_and_little_if_asked() {
    let project = Project::bare("");
    let all = project.memcheck(&["doctor", "--no-run"]).exits(0);
    assert!(all.stdout.contains("packages with memory tests: none\n"), "{}", all.stdout);
    let verbose = project.memcheck(&["doctor", "--no-run", "-v"]).exits(0);
    assert!(verbose.stdout.contains("MEMCHECK_DEVICE is not set"), "{}", verbose.stdout);
    assert_eq!(project.memcheck(&["doctor", "--no-run", "-q"]).exits(0).stdout, "");
}

#[test]
fn a_gpu_that_is_not_there_is_never_replaced_by_another_device() {
    if std::path::Path::new("/dev/nvidia0").exists() {
        eprintln!("skipped: this machine has a GPU");
        return;
    }
    let project = Project::new(CLEAN_AND_FIXED);
    let arguments = ["run", "--device", "cuda", "--message-format", "json"];
    let run = project.memcheck(&arguments).exits(105);
    assert_eq!(run.summary()["exit_code"], 105);
    assert!(run.stderr.contains("sim"), "the simulated one is suggested: {}", run.stderr);
}

#[test]
fn a_build_that_fails_is_101_and_metadata_that_fails_is_102() {
    let project = Project::new("this is not Rust\n");
    let run = project.run(&[]).exits(101);
    assert_eq!(run.summary()["exit_code"], 101);
    project.write("tests/mem.rs", "#[memcheck_runtime::mem_test(iterations = 0)]\nfn a() {}\n");
    project.run(&[]).exits(101).says("nothing would be measured");
    project.write("Cargo.toml", "[package\n");
    project.run(&[]).exits(102);
}

#[test]
fn a_target_that_a_feature_leaves_unbuilt_is_reported() {
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
fn a_report_that_cannot_be_written_is_110() {
    let project = Project::new("#[mem_test(baseline = false)]\nfn passes() {}\n");
    project.run(&["--report", "junit=/dev/null/junit.xml"]).exits(110);
    let mut kinds = vec!["junit=junit.xml", "markdown=report.md", "html=report.html"];
    kinds.extend(["trace=trace.json", "flamegraph=peak.svg"]);
    let arguments: Vec<&str> = kinds.iter().flat_map(|kind| ["--report", kind]).collect();
    project.run(&arguments).exits(0);
    assert!(project.read("report.html").contains("polyline"), "a plot for each test");
    let trace: serde_json::Value = serde_json::from_str(&project.read("trace.json")).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    assert_eq!(events.iter().filter(|event| event["name"] == "iteration").count(), 10);
    assert!(project.read("junit.xml").contains("<testcase name=\"passes\""));
    assert!(project.read("report.md").contains("passes"));
    assert!(project.read("peak.svg").contains("no test was followed: --explain always"));
}

#[test]
fn precedence_is_flag_variable_override_attribute_default() {
    let project = Project::new(
        "#[mem_test(iterations = 3, baseline = false)]\nfn told() {}\n\
         #[mem_test(baseline = false)]\nfn untold() {}\n",
    );
    let iterations = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut all = vec!["list", "--verbose", "--message-format", "json", "--device", "cpu"];
        all.extend(arguments);
        let run = memcheck_with(project.path(), &all, variables).exits(0);
        ["told", "untold"].map(|name| {
            let line = run
                .json()
                .into_iter()
                .find(|line| line["test"] == name || line["name"] == name)
                .unwrap_or_else(|| panic!("{name} is not in {}", run.stdout));
            line["limits"]["iterations"]["value"].as_u64().unwrap_or_else(|| panic!("{line}"))
        })
    };
    assert_eq!(iterations(&[], &[]), [3, 10]);
    project.write(".config/memcheck.toml", "[default]\niterations = 5\n");
    assert_eq!(iterations(&[], &[]), [3, 5]);
    project.write(
        ".config/memcheck.toml",
        "[default]\niterations = 5\n[[override]]\ntest = \"told\"\niterations = 6\n",
    );
    assert_eq!(iterations(&[], &[]), [6, 5]);
    let variables = [("MEMCHECK_ITERATIONS", "7")];
    assert_eq!(iterations(&[], &variables), [7, 7]);
    assert_eq!(iterations(&["--iterations", "8"], &variables), [8, 8]);
}

#[test]
fn an_override_that_matches_no_test_is_reported() {
    let project = Project::new("#[mem_test(baseline = false)]\nfn passes() {}\n");
    project.write(".config/memcheck.toml", "[[override]]\ntest = \"gone::*\"\niterations = 6\n");
    let said = "[[override]] 1 of the configuration matches no test";
    let unmatched = |run: &Run| -> Vec<String> {
        let lines = run.json().into_iter().filter(|line| line["type"] == "bookkeeping");
        let lines = lines.filter(|line| line["finding"]["code"] == "unmatched-override");
        lines.map(|line| line["finding"]["message"].as_str().unwrap().to_owned()).collect()
    };
    let run = project.run(&[]).exits(0).says(said);
    assert_eq!(unmatched(&run), [said]);
    assert_eq!(unmatched(&project.run(&["-D", "unmatched-override"]).exits(5)), [said]);
    assert!(unmatched(&project.run(&["-A", "unmatched-override"]).exits(0)).is_empty());
    let list = ["list", "--device", "cpu", "--message-format", "json"];
    let list = project.memcheck(&list).exits(0).says(said);
    assert_eq!(unmatched(&list), [said]);
    assert_eq!(list.summary()["tests"], 1);
    // The targets that were not listed could contain the test, so only a package that does not
    // exist is reported.
    assert!(unmatched(&project.run(&["--test", "mem"]).exits(0)).is_empty());
    project.write(
        ".config/memcheck.toml",
        "[[override]]\npackage = \"gone\"\niterations = 6\n[[override]]\ntest = \"passes\"\n",
    );
    assert_eq!(unmatched(&project.run(&["--test", "mem"]).exits(0)), [said]);
    // If a target requires a feature that is off, the test could be in that target.
    let manifest = project.read("Cargo.toml");
    let waiting = "[features]\nextra = []\n[[test]]\nname = \"extra\"\n\
                   required-features = [\"extra\"]\n[profile.dev]";
    project.write("Cargo.toml", &manifest.replace("[profile.dev]", waiting));
    project.write("tests/extra.rs", "#[memcheck_runtime::mem_test]\nfn other() {}\n");
    project.write(".config/memcheck.toml", "[[override]]\ntest = \"gone::*\"\niterations = 6\n");
    assert!(unmatched(&project.run(&[]).exits(0)).is_empty());
}
