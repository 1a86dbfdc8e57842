//! Shards of one run that `report --merge` joins. The report must be the same as that of one
//! complete run, and shards of different runs must be refused.

use serde_json::Value;

use crate::fixture::{Programs, Project, Run, memcheck, remove_process};

/// Tests of several outcomes, in two binaries. Their names are unique, because the projects share a
/// folder for pending snapshots.
fn project() -> Project {
    let tests: String = ["anna", "bert", "cora", "dirk"]
        .map(|name| {
            format!(
                "#[mem_test(max_growth = \"0 B\")]
fn {name}_of_shards(device: &Device) -> candle_core::Result<()> {{
    println!(\"the test {name} runs\");
    Tensor::zeros(1024, DType::F32, device)?.affine(2.0, 1.0)?;
    Ok(())
}}
"
            )
        })
        .concat();
    let project = Project::new(&format!(
        "{tests}
#[mem_test(max_growth = \"0 B\", baseline = false)]
fn leaks(trial: &mut Trial) -> candle_core::Result<()> {{
    println!(\"before the leak\");
    let device = trial.device().clone();
    let mut kept = Vec::new();
    trial.iterate(|_| {{
        kept.push(Tensor::zeros(1024, DType::F32, &device)?);
        Ok(())
    }})
}}
#[mem_test(baseline = false)]
#[ignore = \"later\"]
fn ignored() {{}}
#[mem_test(baseline = false, device = \"cuda\")]
fn elsewhere() {{}}
#[mem_test(baseline = false)]
fn leaves() {{
    std::process::exit(0)
}}
"
    ));
    let other = "#[memcheck_runtime::mem_test(baseline = false, max_retained = \"0 B\")]
fn small() {
    std::hint::black_box(vec![0u8; 8192]);
}
";
    project.write("tests/other.rs", other);
    // A stale baseline.
    let stale = "---\nsource: tests/mem.rs\ninfo:\n  memcheck: 1\n  candle: 0.11.1\n  profile: debug\n  iterations: 10\n  warmup: 2\n---\nhost:\n  growth: 0\n";
    project.write("tests/snapshots/mem__gone@cpu.snap", stale);
    project
}

const RUN: [&str; 8] =
    ["run", "--device", "cpu", "--message-format", "json", "--ci", "--test-threads", "1"];

/// Runs a part of the tests, or all of them, and keeps the results in `results`.
fn run(project: &Project, part: &str, results: &str, arguments: &[&str]) -> Run {
    let part: &[&str] = if part.is_empty() { &[] } else { &["--partition", part] };
    let all = [&RUN[..], part, &["--results", results], arguments].concat();
    memcheck(project.path(), &all)
}

/// Reports these folders, with a separate target directory.
fn report(project: &Project, folders: &[&str], arguments: &[&str]) -> Run {
    let all = [&["report", "--message-format", "json", "--target-dir", "out"], folders, arguments];
    memcheck(project.path(), &all.concat())
}

/// The lines of a run, sorted, without the fields that differ from run to run.
fn comparable_lines(run: &Run) -> Vec<Value> {
    let mut lines = run.json();
    for line in &mut lines {
        remove_process(line);
        let line = line.as_object_mut().expect("an object");
        line.remove("seconds");
        // The number of further iterations of a quiet test depends on the speed of the machine.
        line.remove("followed");
        // The commands differ.
        line.remove("run");
        for pending in line.get_mut("pending").into_iter() {
            match pending {
                Value::Array(several) => several.iter_mut().for_each(strip_target_directory),
                one => strip_target_directory(one),
            }
        }
    }
    lines.sort_by_key(ToString::to_string);
    lines
}

/// Removes the target directory from a path, because the two runs have different ones.
fn strip_target_directory(path: &mut Value) {
    let text = path.as_str().expect("a path");
    let (_, rest) = text.split_once("memcheck/pending/").expect("a pending snapshot");
    *path = rest.into();
}

/// A JUnit report without times.
fn junit(project: &Project, file: &str) -> String {
    let text = project.read(file);
    let mut parts = text.split(" time=\"");
    let first = parts.next().unwrap_or_default().to_owned();
    let timeless =
        parts.fold(first, |text, part| text + part.split_once('"').map_or(part, |(_, rest)| rest));
    let lines: Vec<&str> = timeless
        .lines()
        .filter(|line| !line.contains("finished in") && !line.contains("name=\"run."))
        .collect();
    lines.join("\n")
}

#[test]
fn merged_shards_have_the_report_of_one_complete_run() {
    let project = project();
    let whole = run(&project, "", "whole", &["--report", "junit=whole.xml"]).exits(100);
    let tests = |run: &Run| run.json().iter().filter(|l| l["type"] == "test-finished").count();
    let mut in_shards = 0;
    for part in ["hash:1/2", "hash:2/2"] {
        let shard = run(&project, part, &format!("shards/{}", &part[5..6]), &[]);
        assert!([5, 100, 104].contains(&shard.code), "{}", shard.stderr);
        assert!(tests(&shard) > 0, "{part} has no tests");
        in_shards += tests(&shard);
    }
    let whole_summary = whole.summary();
    assert_eq!(in_shards, tests(&whole));
    for (count, number) in
        [("passed", 1), ("failed", 1), ("not_measured", 1), ("ignored", 1), ("elsewhere", 1)]
    {
        assert_eq!(whole_summary[count], number, "{count}");
    }
    assert_eq!((&whole_summary["new"], &whole_summary["needs_review"]), (&4.into(), &4.into()));

    let reports =
        ["junit=merged.xml", "markdown=m.md", "html=m.html", "trace=t.json", "json=m.json"];
    let reports: Vec<&str> = reports.iter().flat_map(|report| ["--report", *report]).collect();
    let folders = ["--merge", "shards/1", "shards/2"];
    let merged = report(&project, &folders, &reports).exits(100);
    assert_eq!(comparable_lines(&merged), comparable_lines(&whole));
    assert!(merged.json().iter().any(|line| line["finding"]["code"] == "stale-baseline"));
    assert_eq!(junit(&project, "merged.xml"), junit(&project, "whole.xml"));
    assert!(
        project.read("merged.xml").contains("before the leak"),
        "the output of the test is missing"
    );
    assert_eq!(project.read("m.json"), merged.stdout);
    for file in ["m.md", "m.html", "t.json"] {
        assert!(project.read(file).contains("leaks"), "{file}");
    }
    // The human output must be the same.
    let arguments = ["report", "--merge", "shards/2", "shards/1", "--target-dir", "out"];
    let human = memcheck(project.path(), &arguments).exits(100);
    for expected in ["7 memory tests on cpu", "FAIL", "leak: host grows", "accept --from DIR"] {
        assert!(human.stderr.contains(expected), "{expected}\n{}", human.stderr);
    }

    // One set of pending baselines. After it is accepted, a later run must pass with them.
    let from = ["accept", "--from", "out/memcheck/pending"];
    project.memcheck(&from).exits(0).prints("anna_of_shards@cpu.snap");
    let accepted = run(&project, "", "whole", &["of_shards"]).exits(0);
    assert_eq!((&accepted.summary()["passed"], &accepted.summary()["new"]), (&4.into(), &0.into()));

    // Stray pending snapshots of a test that has nothing pending must be removed.
    for part in ["hash:1/2", "hash:2/2"] {
        run(&project, part, &format!("shards/{}", &part[5..6]), &["of_shards"]);
    }
    let stray = "out/memcheck/pending/tests/snapshots/mem__anna_of_shards@cpu.snap.new";
    project.write(stray, "a figure of an earlier run");
    report(&project, &folders, &[]).exits(0);
    assert!(!project.has(stray));

    reports_one_folder_again(&project);
}

/// The report of one folder of results writes no files.
fn reports_one_folder_again(project: &Project) {
    std::fs::remove_dir_all(project.path().join("out")).expect("the merge has written files");
    let whole = run(project, "", "kept", &[]).exits(100);
    let again = report(project, &["kept"], &[]).exits(100);
    assert_eq!(comparable_lines(&again), comparable_lines(&whole));
    assert!(!project.has("out"), "the report has written files");
    // A single shard has its own verdict.
    let part = run(project, "hash:1/2", "part", &["anna_of_shards", "bert", "cora", "dirk"]);
    let alone = report(project, &["part"], &[]);
    assert_eq!((alone.code, comparable_lines(&alone)), (part.code, comparable_lines(&part)));
    report(project, &["kept", "part"], &[]).exits(2).prints("--merge");
    memcheck(project.path(), &["report", "--merge"]).exits(2);
    // Without a folder the results are those of the last run. At first there are none, and then
    // there are some.
    let none = report(project, &[], &[]).exits(2).prints("out/memcheck/results");
    assert_eq!(none.summary()["exit_code"], 2);
    project.write("out/memcheck/results/results.jsonl", &project.read("kept/results.jsonl"));
    assert_eq!(comparable_lines(&report(project, &[], &[]).exits(100)), comparable_lines(&whole));
}

#[test]
fn shards_that_are_not_one_complete_run_are_refused() {
    let programs = Programs::of("shards");
    let run = |part: &str, results: &str, arguments: &[&str]| {
        let shard = ["--ci", "--partition", part, "--results", results, "--no-tests", "pass"];
        programs.run("cpu", &[&shard, arguments].concat())
    };
    for part in 1..=3 {
        run(&format!("hash:{part}/3"), &format!("{part}"), &[]).exits(0);
    }
    let report = |arguments: &[&str]| {
        programs.memcheck(&[&["report", "--message-format", "json"], arguments].concat())
    };
    let merge = |folders: &[&str]| report(&[&["--merge"], folders].concat());
    merge(&["1", "2", "3"]).exits(0);
    let missing = merge(&["1", "3"]).exits(104).prints("hash:2/3");
    assert!(missing.summary()["error"]["message"].as_str().unwrap().contains("hash:2/3"));
    let none = |part: &str, folder: &str| {
        run(part, folder, &["shards::no_such_test"]).exits(0);
    };
    none("hash:1/2", "none/1");
    none("hash:2/2", "none/2");
    merge(&["none/1", "none/2"]).exits(4);
    report(&["--merge", "none/1", "none/2", "--no-tests", "warn"]).exits(0);
    merge(&["1", "2", "3", "1"]).exits(2).prints("hash:1/3 is in both");
    merge(&["1", "2", "gone"]).exits(2).prints("gone is not a directory");
    programs.write("empty/readme", "");
    merge(&["1", "2", "empty"]).exits(104).prints("empty has no results");
    let sound = programs.read("3/results.jsonl");
    programs.write("3/results.jsonl", &sound[..sound.len() - 20]);
    merge(&["1", "2", "3"]).exits(104).prints("cut off");
    // Shards with other tests, limits or levels are not of the same run.
    for other in [["--max-peak", "1 GiB"], ["-D", "improved"]] {
        run("hash:3/3", "3", &other).exits(0);
        merge(&["1", "2", "3"]).exits(2).prints("not shards of one run");
    }
    run("hash:3/3", "3", &["shards::a"]).exits(0);
    merge(&["1", "2", "3"]).exits(2).prints("different tests, limits or levels");
    // A run that fails before its tests must remove the results of an earlier one.
    run("hash:3/3", "3", &["--profile", "no_such_profile"]).exits(101);
    merge(&["1", "2", "3"]).exits(104).prints("3 has no results");
}
