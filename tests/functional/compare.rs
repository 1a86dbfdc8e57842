//! `compare`: two runs, or a branch and its base. `history`, and the exports of figures.

use crate::fixture::{Programs, Project, memcheck, own_directory};
use crate::outputs::assert_shown;
use crate::which_candle::git;

/// It shows the outputs of a comparison.
const PAGE: &str = "docs/reference/compare.md";

/// A test whose peak is `count` tensors of 4 KiB, and a test that does not change.
fn tests(count: usize) -> String {
    let tensor = "    let _a = Tensor::zeros(1024, DType::F32, device)?;\n";
    let more: String = (1..count)
        .map(|n| format!("    let _b{n} = Tensor::ones(({n}, 1024), DType::F32, device)?;\n"))
        .collect();
    format!(
        "#[mem_test(max_growth = \"0 B\")]
fn holds(device: &Device) -> candle_core::Result<()> {{
{tensor}{more}    Ok(())
}}

#[mem_test(max_growth = \"0 B\")]
fn steady(device: &Device) -> candle_core::Result<()> {{
    Tensor::zeros(1024, DType::F32, device)?.affine(2.0, 1.0)?;
    Ok(())
}}
"
    )
}

fn write(project: &Project, count: usize) {
    let prelude = "#![allow(unused_imports, dead_code)]\nuse candle_core::{DType, Device, Tensor};\n\
                   use memcheck_runtime::{Trial, mem_test};\n";
    project.write("tests/mem.rs", &format!("{prelude}{}", tests(count)));
}

#[test]
fn two_results_are_compared_in_every_form() {
    let project = Project::named("compared");
    // Without a commit, the output is the same everywhere.
    git(project.path(), &["init", "--quiet", "--initial-branch", "main"]);
    for (folder, count) in [("before", 1), ("after", 3)] {
        write(&project, count);
        project.run(&["--ci", "--explain", "always", "--results", folder]);
    }
    // A run does not differ from itself.
    let same = project.memcheck(&["compare", "before", "before", "--fail-on-regression"]).exits(0);
    assert!(same.stdout.contains("0 tests changed, 2 unchanged"), "{}", same.stdout);

    let arguments =
        ["compare", "before", "after", "--report", "markdown=a.md", "--report", "html=a.html"];
    let text = project.memcheck(&arguments).exits(0).stdout;
    assert!(text.contains("1 test changed (1 worse), 1 unchanged"), "{text}");
    assert!(text.contains("host peak_allocated") && text.contains("tests/mem.rs:"), "{text}");
    assert!(text.contains("new at the peak") && !text.contains("steady"), "{text}");
    let command = "$ cargo memcheck compare before after";
    assert_shown(PAGE, command, "```", &format!("{command}\n{text}"));
    let comment = project.read("a.md");
    assert_shown(PAGE, "<!-- memcheck compare -->", "~~~", &comment);
    assert!(
        comment.starts_with("<!-- memcheck compare -->\n## Memory: 1 test changed"),
        "{comment}"
    );
    assert!(comment.contains("`holds`") && comment.contains("tests/mem.rs:"), "{comment}");
    assert!(project.read("a.html").contains("peak_allocated"));

    let json = ["compare", "before", "after", "--message-format", "json", "--fail-on-regression"];
    let run = project.memcheck(&json).exits(100);
    assert_eq!(run.summary()["exit_code"], 100);
    let line = &run.json()[0];
    assert_eq!((&line["type"], &line["worse"]), (&"comparison".into(), &1.into()));
    let figures = line["changed"][0]["figures"].as_array().unwrap();
    let peak = figures.iter().find(|it| it["space"] == "host" && it["figure"] == "peak_allocated");
    let peak = peak.expect("the peak of the host");
    // Two more tensors, of 4 KiB and 8 KiB.
    let bytes = |side: &str| peak[side].as_u64().unwrap();
    assert_eq!(bytes("head") - bytes("base"), 12 << 10);
    // The other direction is an improvement.
    let better = project.memcheck(&["compare", "after", "before", "--fail-on-regression"]).exits(0);
    assert!(better.stdout.contains("1 test changed, 1 unchanged"), "{}", better.stdout);
    assert!(better.stdout.contains("is gone"), "{}", better.stdout);

    let nothing = project.memcheck(&["compare", "before", "nothing"]).exits(2);
    nothing.prints("neither a directory of results nor a revision");
    project.write("tests.tar.zst", "");
    let archive = project.memcheck(&["compare", "before", "tests.tar.zst"]).exits(2);
    archive.prints("an archive has tests, but no results").prints("--archive-file");
    project.memcheck(&["compare", "before", "after", "--report", "trace=a"]).exits(2);
}

#[test]
fn the_working_tree_is_compared_with_a_revision() {
    let project = Project::new("");
    write(&project, 1);
    git(project.path(), &["init", "--quiet", "--initial-branch", "main"]);
    git(project.path(), &["add", "."]);
    git(project.path(), &["commit", "--quiet", "--message", "base"]);
    write(&project, 3);
    let arguments = ["compare", "main", "--", "--device", "cpu"];
    let run = memcheck(project.path(), &arguments).exits(0);
    assert!(run.stdout.contains("base: main ("), "{}", run.stdout);
    assert!(run.stdout.contains("head: the working tree ("), "{}", run.stdout);
    assert!(run.stdout.contains("1 test changed (1 worse), 1 unchanged"), "{}", run.stdout);
    assert!(run.stdout.contains("+12.0 KiB"), "{}", run.stdout);
    assert_eq!(git(project.path(), &["worktree", "list"]).lines().count(), 1);
    // The snapshots of both runs are not those that the user has to review.
    assert!(!own_directory(&project).join("pending").exists());
    assert!(!run.stderr.contains("pending snapshot"), "{}", run.stderr);
    assert!(project.read("tests/mem.rs").contains("_b1"), "the working tree was changed");
    // The executables of the revision are not taken for those of the working tree.
    let peak = |run: crate::fixture::Run| {
        run.test("holds")["metrics"]["host"]["peak_allocated"].as_u64().unwrap()
    };
    assert_eq!(peak(project.run(&["--ci", "--history", "git"])), 16 << 10);
    let history = ["history", "holds", "--history", "git", "--report", "html=history.html"];
    let text = project.memcheck(&history).exits(0).stdout;
    assert!(text.contains("peak_allocated of host, 1 run, in KiB\n"), "{text}");
    assert!(text.contains("16,384 B (16.0 KiB)"), "{text}");
    let page = project.read("history.html");
    assert!(page.contains("<svg") && page.contains("16.0 KiB"), "{page}");
    assert!(git(project.path(), &["log", "--notes=memcheck"]).contains("\"test\":\"holds\""));
    project.memcheck(&["history", "holds", "--report", "csv=a"]).exits(2).prints("html");

    // A revision that does not build ends with the code of the build.
    project.write("tests/mem.rs", "this is not Rust\n");
    git(project.path(), &["commit", "--quiet", "--all", "--message", "broken"]);
    let broken = memcheck(project.path(), &["compare", "main", "main~1", "--", "--device", "cpu"]);
    broken.exits(101).prints("the tests of main did not run");
    assert_eq!(git(project.path(), &["worktree", "list"]).lines().count(), 1);
}

#[test]
fn runs_append_to_a_history_that_is_plotted_and_exported() {
    let programs = Programs::of("compare");
    let run = |count: &str, arguments: &[&str]| {
        let arguments = [&["compare::", "--ci"], arguments].concat();
        programs.run_with("cpu", &arguments, &[("COMPARED_TENSORS", count)])
    };
    for count in ["1", "1", "3"] {
        let reports = ["--report", "csv=a.csv", "--report", "bencher=a.json"];
        run(count, &[&["--history", "out/history.jsonl"], &reports[..]].concat());
    }
    let lines = programs.read("out/history.jsonl");
    assert_eq!(lines.lines().count(), 6, "{lines}");
    for line in lines.lines() {
        let entry: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!((&entry["version"], &entry["status"]), (&1.into(), &"needs-review".into()));
        assert!(entry["lock"].as_str().is_some_and(|lock| lock.len() == 16), "{line}");
        assert!(entry["time"].as_str().is_some_and(|time| time.ends_with('Z')), "{line}");
    }
    let history = ["history", "holds", "--history", "out/history.jsonl"];
    let text = programs.memcheck(&history).exits(0).stdout;
    assert!(text.contains("peak_allocated of host, 3 runs, in KiB"), "{text}");
    assert!(text.contains("16,384 B (16.0 KiB)  +12.0 KiB (+300.0%)"), "{text}");
    assert!(!text.contains("steady"), "{text}");
    let json =
        programs.memcheck(&[&history[..], &["--message-format", "json", "--last", "2"]].concat());
    let json = json.exits(0);
    let plots = json.json();
    let plot = plots.iter().find(|line| line["space"] == "host").expect("a plot of the host");
    let values = plot["points"].as_array().unwrap().iter().map(|point| point["value"].as_u64());
    assert_eq!(values.collect::<Vec<_>>(), [Some(4_096), Some(16_384)]);

    let figures: serde_json::Value = serde_json::from_str(&programs.read("a.json")).unwrap();
    let name = "memcheck-programs::programs compare::holds (cpu)";
    assert_eq!(figures[name]["host peak_allocated"]["value"], 16_384, "{figures}");
    let row = ",compare::holds,cpu,needs-review,host,peak_allocated,16384";
    assert!(
        programs.read("a.csv").lines().any(|line| line.ends_with(row)),
        "{}",
        programs.read("a.csv")
    );

    let other = |arguments: &[&str]| {
        let file = ["--history", "out/history.jsonl"];
        programs.memcheck(&[&["history"], arguments, &file[..]].concat())
    };
    other(&["hodls"]).exits(4).prints("did you mean `compare::holds`?");
    other(&["holds", "--figure", "no_figure"]).exits(4);
    programs.write("out/history.jsonl", &format!("{lines}{{\n"));
    other(&["holds"]).exits(2).prints("line 7");
    programs.memcheck(&["history", "holds", "--history", "none"]).exits(2).prints("--history none");
    let full = run("3", &["-A", "missing-baseline", "--history", "/dev/full"]);
    full.exits(110).prints("/dev/full");
}
