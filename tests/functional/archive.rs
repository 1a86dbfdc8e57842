//! Archives: tests that were built on one machine run on another, which has neither cargo nor rustc
//! nor the sources. Here the sources are moved away, and those programs are scripts that leave a
//! mark if they are started.

use std::fs;

use serde_json::Value;

use crate::fixture::{CLEAN_AND_LEAKY, Project, Run, memcheck, remove_process};
use crate::machine::Machine;

/// A cargo in the folder of another workspace.
const OTHER_WORKSPACE: &str = r#"#!/bin/sh
echo '{"packages":[],"workspace_members":[],"resolve":null,"version":1,"workspace_root":"/elsewhere","target_directory":"/elsewhere/target","metadata":null}'
"#;

/// Moves the sources of a project away, together with its baselines.
fn hide(project: &Project) {
    let hidden = project.path().join("hidden");
    fs::create_dir(&hidden).unwrap();
    for name in ["src", "tests", "Cargo.toml", "Cargo.lock"] {
        fs::rename(project.path().join(name), hidden.join(name)).unwrap();
    }
}

fn restore(project: &Project) {
    for entry in fs::read_dir(project.path().join("hidden")).unwrap() {
        let entry = entry.unwrap();
        fs::rename(entry.path(), project.path().join(entry.file_name())).unwrap();
    }
}

/// The reports of the tests, without the fields that differ from run to run.
fn comparable_lines(run: &Run) -> Vec<Value> {
    let mut lines = run.json();
    lines.retain(|line| line["type"] == "test-finished");
    for line in &mut lines {
        remove_process(line);
        let line = line.as_object_mut().unwrap();
        line.remove("seconds");
        if let Some(followed) = line.get_mut("followed") {
            followed.as_object_mut().expect("an object").remove("seconds");
        }
        // The paths differ, because the folders do.
        assert!(line.remove("snapshot").is_some());
    }
    lines.sort_by_key(|line| line["test"].as_str().unwrap().to_owned());
    lines
}

/// The messages about stale baselines.
fn stale(run: &Run) -> Vec<String> {
    let lines = run.json().into_iter().filter(|line| line["type"] == "bookkeeping");
    let findings = lines.map(|line| line["finding"].clone());
    let stale = findings.filter(|finding| finding["code"] == "stale-baseline");
    stale.map(|finding| finding["message"].as_str().unwrap().to_owned()).collect()
}

fn sites(run: &Run) -> Value {
    run.test("leaky")["findings"][0]["sites"].clone()
}

#[test]
fn an_archive_runs_on_a_machine_without_cargo_and_without_sources() {
    let project = Project::new(&format!("{CLEAN_AND_LEAKY}#[cfg(any())]\nfn left_out() {{}}\n"));
    project.write(".config/memcheck.toml", "[default]\nmax_peak = \"1 GiB\"\n");
    project.run(&[]).exits(100);
    project.memcheck(&["accept"]).exits(0);
    // One baseline belongs to a deleted test. The other belongs to a test that this build leaves
    // out.
    for name in ["gone", "left_out"] {
        let baseline = project.read("tests/snapshots/mem__clean@cpu.snap");
        project.write(&format!("tests/snapshots/mem__{name}@cpu.snap"), &baseline);
    }
    let direct = project.run(&[]).exits(100);
    assert_eq!(stale(&direct), ["tests/snapshots/mem__gone@cpu.snap belongs to no test"]);
    assert_eq!(direct.codes("clean"), [""; 0], "it has a baseline");
    let site = sites(&direct)[0].clone();
    assert_eq!(site["file"], "tests/mem.rs", "{site}");

    let packed = memcheck(
        project.path(),
        &["archive", "--archive-file", "a.tar.zst", "--device", "cpu", "--message-format", "json"],
    )
    .exits(0)
    .prints("packed 1 test executable and 3 baselines");
    let file = &packed.json()[0];
    assert_eq!((&file["type"], &file["kind"]), (&"file".into(), &"archive".into()));
    let size = fs::metadata(project.path().join("a.tar.zst")).unwrap().len();
    assert_eq!(file["bytes"], size);
    let apart = ["archive", "--archive-file", "s.tar.zst", "--line-tables", "lines.tar.zst"];
    project
        .memcheck(&[&apart[..], &["--device", "cpu"]].concat())
        .exits(0)
        .prints("line-tables: lines");
    let stripped = fs::metadata(project.path().join("s.tar.zst")).unwrap().len();
    assert!(stripped < size, "{stripped} < {size}");

    let machine = Machine::new();
    for file in ["a.tar.zst", "s.tar.zst", "lines.tar.zst"] {
        machine.copy_from(&project, file);
    }
    hide(&project);

    // Figures, findings, sites and baselines must be the same. The devices are those of the
    // archive.
    let run = machine.run(&[]).exits(100).prints("device: cpu").prints("archive: built for cpu");
    assert_eq!(comparable_lines(&run), comparable_lines(&direct));
    assert_eq!(
        stale(&run),
        stale(&direct),
        "the archive lists the tests that its build leaves out"
    );
    let left = fs::read_dir(machine.path().join("tmp")).unwrap().count();
    assert_eq!(left, 0, "extracted files are left behind");

    // Results can be reported again, and merged, on this machine too.
    let again = machine.without_cargo(&["report", "--message-format", "json"]).exits(100);
    assert_eq!(comparable_lines(&again), comparable_lines(&direct));
    for part in ["1", "2"] {
        let arguments = [
            &format!("--partition=hash:{part}/2"),
            &format!("--results={part}"),
            "--no-tests=pass",
        ];
        machine.run(&arguments);
    }
    let merged = ["report", "--merge", "1", "2", "--message-format", "json"];
    assert_eq!(
        comparable_lines(&machine.without_cargo(&merged).exits(100)),
        comparable_lines(&direct)
    );

    // The tests of an archive can be listed, selected, limited, and started by a launcher.
    let list = ["list", "--archive-file", "a.tar.zst", "--verbose"];
    let listed = machine.memcheck(&list).exits(0);
    assert!(
        listed.stdout.contains("[default]"),
        "the configuration of the archive: {}",
        listed.stdout
    );
    // The archive has the same list, so that its programs need not be started.
    for form in ["human", "json"] {
        let list = ["list", "--archive-file", "a.tar.zst", "--message-format", form];
        let started = machine.memcheck(&list).exits(0);
        let table = machine.memcheck(&[&list[..], &["--no-run"]].concat()).exits(0);
        assert_eq!(table.stdout, started.stdout);
    }
    machine.memcheck(&["list", "--no-run"]).exits(2).prints("--archive-file");
    assert_eq!(
        machine.run(&["clean", "--max-peak", "1 KiB"]).exits(100).codes("clean"),
        ["peak-limit"]
    );
    let launched =
        machine.run(&["--runner", "/usr/bin/env A=1", "--extract-to", "there", "clean"]).exits(0);
    assert_eq!(launched.test("clean")["status"], "passed");
    let elsewhere = machine.run(&["--runner", "/usr/bin/env A=1", "clean"]).exits(0);
    elsewhere.prints("--extract-to names one that others see");
    assert!(
        machine.path().join("there/workspace/tests/snapshots").is_dir(),
        "the extracted files are gone"
    );
    machine.run(&["--extract-to", "there"]).exits(2).prints("not empty");

    // A test of the archive can be profiled. A program is not in the archive.
    let profile = ["profile", "--archive-file", "a.tar.zst", "--device", "cpu"];
    let profiled = machine.memcheck(&[&profile[..], &["leaky"]].concat()).exits(100).stdout;
    assert!(profiled.contains("leaky on cpu") && profiled.contains("tests/mem.rs"), "{profiled}");
    machine.memcheck(&[&profile[..], &["--bin", "tool"]].concat()).exits(2).prints("no programs");

    // Without line tables the report names functions. With line tables it names lines as usual.
    let stripped = |more: &[&str]| {
        let all = ["run", "--archive-file", "s.tar.zst", "--message-format", "json", "--no-ci"];
        machine.memcheck(&[&all[..], more].concat())
    };
    let site = sites(&stripped(&[]).exits(100))[0].clone();
    assert!(
        site["line"].is_null() && site["function"].as_str().unwrap().contains("leaky"),
        "{site}"
    );
    let with_lines = stripped(&["--line-tables", "lines.tar.zst"]).exits(100);
    assert_eq!(sites(&with_lines), sites(&direct));
    machine.run(&["--line-tables", "lines.tar.zst"]).exits(2).prints("of another archive");

    // Files that are not complete archives, and arguments that an archive cannot have.
    machine.run(&["--device", "sim"]).exits(105).prints("the archive was built for cpu");
    machine.run(&["--device", "cuda"]).exits(105).prints("the archive was built for cpu");
    machine.run(&["--package", "app"]).exits(2).prints("the archive is built already");
    machine.memcheck(&["run", "--archive-file", "gone.tar.zst"]).exits(2);
    machine.memcheck(&["run", "--archive-file", "bin/cargo"]).exits(2).prints("is not an archive");
    machine
        .memcheck(&["run", "--archive-file", "lines.tar.zst"])
        .exits(2)
        .prints("is not an archive");
    machine.memcheck(&["run", "--extract-to", "x"]).exits(2).prints("--archive-file");
    machine.without_cargo(&["run"]).exits(102).prints("--archive-file");

    // The command must find results even if cargo fails, or answers for another workspace.
    machine.run(&["a_filter_of_none", "--no-tests", "pass"]).exits(0);
    machine.with_programs_in("bin", &["report", "--no-tests", "pass"]).exits(0);
    fs::write(machine.path().join("bin/cargo"), OTHER_WORKSPACE).unwrap();
    machine.with_programs_in("bin", &["report", "--no-tests", "pass"]).exits(0);
}

#[test]
fn one_file_cannot_be_both_archive_and_line_tables() {
    let project = Project::new("#[mem_test(baseline = false)]\nfn a() {}\n");
    for tables in ["a.tar.zst", "./a.tar.zst", "src/../a.tar.zst"] {
        let arguments = ["archive", "--device", "cpu", "--archive-file", "a.tar.zst"];
        let arguments = [&arguments[..], &["--line-tables", tables]].concat();
        let run = project.memcheck(&arguments);
        assert_eq!(run.code, 2, "{tables}: {}", run.stderr);
        assert!(!project.has("a.tar.zst"), "{tables}");
    }
}

#[test]
fn new_figures_of_an_archive_are_accepted_in_the_source_tree() {
    let project = Project::new(
        "#[mem_test(max_growth = \"0 B\")]\nfn fresh(device: &Device) -> candle_core::Result<()> {
    Tensor::zeros(1024, DType::F32, device)?.affine(2.0, 1.0)?;
    Ok(())\n}\n",
    );
    let devices = ["--device", "sim:t4", "--device", "cpu"];
    let archive = ["archive", "--archive-file", "a.tar.zst"];
    project.memcheck(&[&archive[..], &devices].concat()).exits(0);
    let machine = Machine::new();
    machine.copy_from(&project, "a.tar.zst");
    hide(&project);
    let results = machine.path().join("results");
    let run = machine.run(&["--results", "results"]).exits(0).prints("device: sim:t4");
    assert_eq!(
        (run.summary()["new"].clone(), run.summary()["passed"].clone()),
        (2.into(), 2.into())
    );
    let simulated = run.json().into_iter().find(|line| line["leg"] == "sim:t4").unwrap();
    assert!(
        simulated["metrics"]["cuda:0"]["device_used"].is_u64(),
        "NVML is in the archive: {simulated}"
    );
    machine.run(&["--results", "results", "--device", "cpu"]).exits(0);
    restore(&project);
    let from = results.join("pending");
    project.memcheck(&["accept", "--from", from.to_str().unwrap()]).exits(0);
    let of_archive = ["cpu", "cuda"]
        .map(|family| project.read(&format!("tests/snapshots/mem__fresh@{family}.snap")));
    // The baselines must be byte for byte those of a run with cargo.
    fs::remove_dir_all(project.path().join("tests/snapshots")).unwrap();
    let direct = ["run", "--no-ci", "--message-format", "json"];
    memcheck(project.path(), &[&direct[..], &devices].concat()).exits(0);
    project.memcheck(&["accept"]).exits(0);
    let of_cargo = ["cpu", "cuda"]
        .map(|family| project.read(&format!("tests/snapshots/mem__fresh@{family}.snap")));
    assert_eq!(of_archive, of_cargo);
    // The results can be reported again in the folder of the sources.
    let report = ["report", results.to_str().unwrap(), "--message-format", "json"];
    project.memcheck(&report).exits(0).prints("results/pending");
}

#[test]
fn a_test_of_an_archive_finds_source_files_and_files_of_build_scripts() {
    let project = Project::new(
        "#[mem_test(baseline = false)]
fn reads_a_file() {
    assert_eq!(std::fs::read_to_string(\"data/tokens.txt\").unwrap(), \"1 2 3\\n\");
    let folder = std::env::var(\"CARGO_MANIFEST_DIR\").unwrap();
    assert!(std::path::Path::new(&folder).join(\"data/tokens.txt\").is_file());
}
#[mem_test(baseline = false)]
fn reads_what_its_build_script_wrote() {
    let text = |path: String| std::fs::read_to_string(path).unwrap();
    assert_eq!(text(std::env::var(\"MADE\").unwrap()), \"made\");
    assert_eq!(text(std::env::var(\"OUT_DIR\").unwrap() + \"/below/made\"), \"made\");
}
",
    );
    project.write(
        "build.rs",
        "fn main() {
    let folder = std::env::var(\"OUT_DIR\").unwrap() + \"/below\";
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(format!(\"{folder}/made\"), \"made\").unwrap();
    println!(\"cargo::rustc-env=MADE={folder}/made\");
}
",
    );
    project.write("data/tokens.txt", "1 2 3\n");
    project.memcheck(&["archive", "--archive-file", "a.tar.zst", "--device", "cpu"]).exits(0);
    let machine = Machine::new();
    machine.copy_from(&project, "a.tar.zst");
    fs::create_dir_all(machine.path().join("sources/data")).unwrap();
    fs::rename(
        project.path().join("data/tokens.txt"),
        machine.path().join("sources/data/tokens.txt"),
    )
    .unwrap();
    let without = machine.run(&[]).exits(100);
    assert_eq!(without.codes("reads_a_file"), ["test-failed"]);
    assert_eq!(without.test("reads_what_its_build_script_wrote")["status"], "passed");
    machine.run(&["--workspace-remap", "sources"]).exits(0);
    machine.run(&["--workspace-remap", "gone"]).exits(2).prints("gone is not a directory");
}
