//! The configuration file and the variables: the order of precedence, and the messages about
//! invalid values.

use crate::fixture::{Programs, Project, Run, command, memcheck_with, workspace};

fn programs() -> Programs {
    Programs::of("configuration")
}

#[test]
fn an_invalid_configuration_is_reported_with_its_line() {
    let programs = programs();
    programs.configure("[default]\nmax_grwth = \"1 KiB\"\n");
    let run = programs.run("cpu", &[]).exits(96).prints("max_grwth").prints("memcheck.toml");
    assert_eq!(run.summary()["exit_code"], 96);
    programs.configure("[default]\nmax_growth = \"1 parsec\"\n");
    programs.run("cpu", &[]).exits(96).prints("parsec");
    for (text, expected, place) in [
        ("[[override]]\ntest = \"a\"\nmax_peek = 1\n", "`max_peek`", "line 3, column 1"),
        ("[[override]]\ntest = \"a[\"\n", "does not close `[`", "line 2, column 8"),
        ("[findings]\nleek = \"deny\"\n", "`leek`", "line 2, column 1"),
        ("[default]\niterations = 0\n", "at least 1", "line 2, column 14"),
        ("threads = 1\nrunner = \"srun 'a\"\n", "left open", "line 2, column 10"),
    ] {
        programs.configure(text);
        let run = programs.run("cpu", &[]).exits(96).prints(expected).prints(place);
        let message = run.summary()["error"]["message"].to_string();
        assert!(message.contains(place), "{message}");
    }
}

#[test]
fn an_invalid_variable_is_reported_by_name() {
    let programs = programs();
    let arguments = ["run", "configuration::", "--device", "cpu", "--no-ci"];
    for (name, value) in
        [("MEMCHECK_MAX_GROWTH", "many"), ("MEMCHECK_DEVICE", "gpu"), ("MEMCHECK_CI", "perhaps")]
    {
        let arguments =
            if name == "MEMCHECK_DEVICE" { arguments[..2].to_vec() } else { arguments.to_vec() };
        let arguments: Vec<&str> =
            arguments.into_iter().filter(|a| name != "MEMCHECK_CI" || *a != "--no-ci").collect();
        let run = programs.memcheck_with(&arguments, &[(name, value)]);
        run.exits(2).prints(name);
    }
}

#[test]
fn an_unknown_variable_is_refused_before_the_build_and_by_a_plain_harness() {
    let mut harness = programs().cargo_test();
    harness.args(["--", "configuration::"]).env("MEMCHECK_MAX_PEEK", "1GB");
    let harness = harness.output().expect("it runs");
    let text = String::from_utf8_lossy(&harness.stdout).into_owned();
    assert_eq!(harness.status.code(), Some(101), "{text}");
    assert_eq!(text.matches("hint: did you mean `MEMCHECK_MAX_PEAK`?").count(), 2, "{text}");
    let project = Project::new("this is not Rust\n");
    let run = |name| memcheck_with(project.path(), &["run", "--device", "cpu"], &[(name, "1GB")]);
    let near = run("MEMCHECK_MAX_PEEK").exits(2);
    near.prints("environment variable MEMCHECK_MAX_PEEK: memcheck has no variable of this name")
        .prints("hint: did you mean `MEMCHECK_MAX_PEAK`?");
    // A service of this name in a cluster sets it.
    run("MEMCHECK_SERVICE_HOST").exits(2).prints("must not begin with MEMCHECK_");
}

#[test]
fn a_variable_that_is_not_utf_8_is_a_usage_error() {
    use std::os::unix::ffi::OsStrExt;
    let programs = programs();
    let value = std::ffi::OsStr::from_bytes(b"/home/andr\xe9/memcheck.toml");
    let mut command = command(programs.path(), &["list", "--device", "cpu"]);
    let output = command.env("MEMCHECK_CONFIG_FILE", value).output().expect("it runs");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("MEMCHECK_CONFIG_FILE: it is not UTF-8"), "{stderr}");
}

#[test]
fn precedence_is_flag_variable_override_attribute_default() {
    let programs = programs();
    let iterations = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut all = vec![
            "list",
            "configuration::",
            "--verbose",
            "--message-format",
            "json",
            "--device",
            "cpu",
        ];
        all.extend(arguments);
        let run = programs.memcheck_with(&all, variables).exits(0);
        ["configuration::with_attribute", "configuration::without_attribute"].map(|name| {
            let line = run
                .json()
                .into_iter()
                .find(|line| line["test"] == name || line["name"] == name)
                .unwrap_or_else(|| panic!("{name} is not in {}", run.stdout));
            line["limits"]["iterations"]["value"].as_u64().unwrap_or_else(|| panic!("{line}"))
        })
    };
    assert_eq!(iterations(&[], &[]), [3, 10]);
    programs.configure("[default]\niterations = 5\n");
    assert_eq!(iterations(&[], &[]), [3, 5]);
    programs.configure(
        "[default]\niterations = 5\n[[override]]\ntest = \"configuration::with_attribute\"\niterations = 6\n",
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
    let expected = "[[override]] 1 of the configuration matches no test";
    let unmatched = |run: &Run| -> Vec<String> {
        let lines = run.json().into_iter().filter(|line| line["type"] == "bookkeeping");
        let lines = lines.filter(|line| line["finding"]["code"] == "unmatched-override");
        lines.map(|line| line["finding"]["message"].as_str().unwrap().to_owned()).collect()
    };
    let run = project.run(&[]).exits(0).prints(expected);
    assert_eq!(unmatched(&run), [expected]);
    assert_eq!(unmatched(&project.run(&["-D", "unmatched-override"]).exits(5)), [expected]);
    assert!(unmatched(&project.run(&["-A", "unmatched-override"]).exits(0)).is_empty());
    let list = ["list", "--device", "cpu", "--message-format", "json"];
    let list = project.memcheck(&list).exits(0).prints(expected);
    assert_eq!(unmatched(&list), [expected]);
    assert_eq!(list.summary()["tests"], 1);
    // The targets that were not listed could contain the test, so only a package that does not
    // exist is reported.
    assert!(unmatched(&project.run(&["--test", "mem"]).exits(0)).is_empty());
    project.write(
        ".config/memcheck.toml",
        "[[override]]\npackage = \"gone\"\niterations = 6\n[[override]]\ntest = \"passes\"\n",
    );
    assert_eq!(unmatched(&project.run(&["--test", "mem"]).exits(0)), [expected]);
    // If a target requires a feature that is off, the test could be in that target.
    let manifest = project.read("Cargo.toml");
    let waiting = "[features]\nextra = []\n[[test]]\nname = \"extra\"\n\
                   required-features = [\"extra\"]\n[profile.dev]";
    project.write("Cargo.toml", &manifest.replace("[profile.dev]", waiting));
    project.write("tests/extra.rs", "#[memcheck_runtime::mem_test]\nfn other() {}\n");
    project.write(".config/memcheck.toml", "[[override]]\ntest = \"gone::*\"\niterations = 6\n");
    assert!(unmatched(&project.run(&[]).exits(0)).is_empty());
}

#[test]
fn the_compute_capability_of_the_user_is_kept_for_the_simulated_device() {
    for (value, kept) in [("86", "86"), ("", "90")] {
        let run = memcheck_with(&workspace(), &["env"], &[("CUDA_COMPUTE_CAP", value)]).exits(0);
        let line = format!("export CUDA_COMPUTE_CAP='{kept}'\n");
        assert!(run.stdout.contains(&line), "{}", run.stdout);
    }
}
