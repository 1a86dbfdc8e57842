//! The life of a baseline: missing, accepted, regressed, improved, and broken in every way that a
//! user can break it. A baseline must never be lost.

use crate::fixture::Project;

const SNAPSHOT: &str = "tests/snapshots/mem__clean@cpu.snap";

fn clean(elements: usize) -> String {
    format!(
        "use candle_core::{{DType, Device, Tensor}};
use memcheck_runtime::mem_test;

#[mem_test(max_growth = \"0 B\")]
fn clean(device: &Device) -> candle_core::Result<()> {{
    Tensor::zeros({elements}, DType::F32, device)?;
    Ok(())
}}
"
    )
}

/// A project with an accepted baseline of one block of 400,000 bytes.
fn accepted() -> Project {
    let project = Project::new("");
    project.write("tests/mem.rs", &clean(100_000));
    project.run(&[]).exits(0);
    project.memcheck(&["accept"]).exits(0);
    assert!(project.read(SNAPSHOT).contains("peak_allocated: 400000"));
    project
}

#[test]
fn a_regression_fails_and_can_be_accepted() {
    let project = accepted();
    let before = project.read(SNAPSHOT);
    project.write("tests/mem.rs", &clean(200_000));
    let regressed = project.run(&[]).exits(100);
    assert_eq!(regressed.codes("clean"), ["peak-regression"]);
    let finding = &regressed.test("clean")["findings"][0];
    assert_eq!((&finding["baseline"], &finding["figure"]), (&400_000.into(), &800_000.into()));
    assert_eq!(project.read(SNAPSHOT), before, "the run has changed the baseline");

    let shown = project.memcheck(&["review"]);
    assert!(
        shown.stderr.contains("800,000") || shown.stdout.contains("800,000"),
        "{}",
        shown.stderr
    );
    // Without a terminal no decision is made, so that the snapshot stays pending.
    let review = project.memcheck(&["review", "--message-format", "json"]).exits(5);
    let lines = review.json();
    assert_eq!((&lines[0]["type"], &lines[0]["action"]), (&"snapshot".into(), &"pending".into()));
    assert!(lines[0]["path"].as_str().is_some_and(|path| path.ends_with(".snap.new")));
    let quiet = project.memcheck(&["review", "--quiet"]);
    assert!(!quiet.stderr.contains("800,000"), "{}", quiet.stderr);
    quiet.prints("mem::clean");
    let verbose = project.memcheck(&["review", "--verbose"]);
    verbose.prints("peak_allocated: 800000").prints("setup:");
    let accepted = project.memcheck(&["accept", "--verbose"]).exits(0);
    accepted.prints("accepted ").prints("800,000");
    assert!(project.read(SNAPSHOT).contains("peak_allocated: 800000"));
    project.run(&[]).exits(0);
}

#[test]
fn a_rejected_figure_leaves_the_baseline_as_it_was() {
    let project = accepted();
    let before = project.read(SNAPSHOT);
    project.write("tests/mem.rs", &clean(200_000));
    project.run(&[]).exits(100);
    project.memcheck(&["reject"]).exits(0);
    assert!(!project.has("tests/snapshots/mem__clean@cpu.snap.new"));
    assert_eq!(project.read(SNAPSHOT), before);
}

#[test]
fn an_improvement_is_a_warning_until_it_is_denied() {
    let project = accepted();
    project.write("tests/mem.rs", &clean(50_000));
    let warned = project.run(&[]).exits(0);
    assert_eq!(warned.codes("clean"), ["improved"]);
    project.run(&["-D", "improved"]).exits(5);
    assert!(project.run(&["-A", "improved"]).exits(0).codes("clean").is_empty());
}

#[test]
fn a_figure_within_the_tolerance_has_no_finding() {
    let project = accepted();
    // 400,000 + 1 % is 404,000.
    project.write("tests/mem.rs", &clean(101_000));
    assert!(project.run(&[]).exits(0).codes("clean").is_empty());
    assert_eq!(project.run(&["--tolerance", "0%"]).exits(100).codes("clean"), ["peak-regression"]);
}

#[test]
fn a_corrupt_baseline_is_reported_and_kept() {
    let project = accepted();
    let sound = project.read(SNAPSHOT);
    let conflicted = sound.replace(
        "  peak_allocated: 400000",
        "<<<<<<< HEAD\n  peak_allocated: 400000\n=======\n  peak_allocated: 1\n>>>>>>> other",
    );
    let newer = sound.replace("memcheck: 1", "memcheck: 9");
    let torn = sound[..sound.len() / 3].to_owned();
    for (broken, expected) in [(conflicted, "conflict"), (newer, "version 9"), (torn, "header")] {
        project.write(SNAPSHOT, &broken);
        let run = project.run(&[]).exits(0);
        assert_eq!(run.codes("clean"), ["corrupt-baseline"]);
        let message = run.test("clean")["findings"][0]["message"].as_str().unwrap().to_owned();
        assert!(message.contains(expected), "{message}");
        assert_eq!(project.read(SNAPSHOT), broken, "the corrupt baseline has changed");
        project.run(&["--ci"]).exits(5);
    }
}

#[test]
fn a_baseline_of_another_candle_is_uncomparable_and_not_a_regression() {
    let project = accepted();
    project.write(SNAPSHOT, &project.read(SNAPSHOT).replace("candle: 0.11.1", "candle: 0.10.0"));
    let run = project.run(&[]).exits(0);
    assert_eq!(run.codes("clean"), ["uncomparable-baseline"]);
    project.run(&["--ci"]).exits(5);
    project.run(&["--iterations", "5"]).exits(0);
}

#[test]
fn ci_writes_nothing_into_the_source_tree() {
    let project = Project::new("");
    project.write("tests/mem.rs", &clean(100_000));
    let run = project.run(&["--ci"]).exits(5);
    assert_eq!(run.codes("clean"), ["missing-baseline"]);
    // The fixture keeps the folder of the last run.
    let in_tree = std::fs::read_dir(project.path().join("tests/snapshots"));
    assert_eq!(in_tree.into_iter().flatten().count(), 0);
    let pending = run.summary()["pending"].as_array().unwrap().clone();
    assert_eq!(pending.len(), 1, "{pending:?}");
    let pending = pending[0].as_str().unwrap().to_owned();
    assert!(pending.contains("memcheck/pending"), "{pending}");

    let (folder, _) = pending.split_once("memcheck/pending").unwrap();
    let folder = format!("{folder}memcheck/pending");
    project.memcheck(&["accept", "mem::clean", "--from", &folder]).exits(0);
    assert!(project.has(SNAPSHOT));
    project.run(&["--ci"]).exits(0);
}

/// The life of a baseline whose source file has a `..` in its path, as that of `module` has. The
/// snapshot must be in `folder`, next to the source. The projects share a folder for pending
/// snapshots, and each must take only its own from there.
fn assert_baseline_next_to_source(project: &Project, module: &str, source: &str, folder: &str) {
    let snapshot = format!("{folder}/mem__{module}__clean@cpu.snap");
    let test = format!("{module}::clean");
    project.write(source, &clean(100_000));
    let run = project.run(&["--ci"]).exits(5);
    assert_eq!(run.codes(&test), ["missing-baseline"]);
    let pending = run.summary()["pending"][0].as_str().expect("a pending snapshot").to_owned();
    assert!(pending.ends_with(&format!("memcheck/pending/{snapshot}.new")), "{pending}");
    let from = pending.trim_end_matches(&format!("/{snapshot}.new"));
    project.memcheck(&["accept", &test, "--from", from]).exits(0);
    assert!(project.read(&snapshot).contains("peak_allocated: 400000"));
    project.run(&["--ci"]).exits(0);

    project.write(source, &clean(200_000));
    assert_eq!(project.run(&[]).exits(100).codes(&test), ["peak-regression"]);
    assert!(project.has(&format!("{snapshot}.new")));
    project.memcheck(&["review"]).exits(5).prints("800,000");
    project.memcheck(&["accept"]).exits(0);
    project.run(&["--ci"]).exits(0);

    let stale = ["prune", "--device", "cpu", "--no-ci"];
    project.memcheck(&stale).exits(0).prints("no stale baselines");
    project.write(source, &clean(200_000).replace("fn clean", "fn renamed"));
    project.memcheck(&stale).exits(0).prints("removed");
    assert!(!project.has(&snapshot));
}

#[test]
fn a_source_file_in_the_parent_folder_has_its_baseline_next_to_it() {
    let project = Project::new("#[path = \"../above.rs\"]\nmod above;\n");
    assert_baseline_next_to_source(&project, "above", "above.rs", "snapshots");
}

#[test]
fn a_source_file_outside_its_package_has_its_baseline_next_to_it() {
    let project = Project::new("");
    let manifest = project.read("Cargo.toml");
    let (manifest, profile) = manifest.split_at(manifest.find("[profile.dev]").expect("a profile"));
    let workspace = "[workspace]\n";
    project.write("app/Cargo.toml", &manifest.replace(workspace, ""));
    // The resolver of a single package. Another resolver would compile candle again.
    let members = "resolver = \"3\"\nmembers = [\"app\"]\n";
    project.write("Cargo.toml", &format!("{workspace}{members}{profile}"));
    project.write("app/src/lib.rs", "//! A member.\n");
    project.write("app/tests/mem.rs", "#[path = \"../../common/outside.rs\"]\nmod outside;\n");
    assert_baseline_next_to_source(&project, "outside", "common/outside.rs", "common/snapshots");
}

#[test]
fn two_tests_with_one_baseline_are_refused_before_any_test_runs() {
    let project = Project::new(
        "mod a {
    #[super::mem_test]
    fn b() {}
}
#[allow(non_snake_case)]
#[mem_test]
fn a__b() {}
",
    );
    let refused = "`a__b` and `a::b` have the same baseline";
    let run = project.run(&[]).exits(96).prints(refused).prints("rename one of them");
    assert!(!run.stdout.contains("test-finished"), "{}", run.stdout);
    project.run(&["--exact", "a::b"]).exits(0);
    let output = project.cargo_test().output().expect("cargo runs");
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains(refused), "{output:?}");
}

#[test]
fn a_renamed_test_leaves_a_stale_baseline_that_prune_removes() {
    let project = accepted();
    project.write("tests/mem.rs", &clean(100_000).replace("fn clean", "fn renamed"));
    let run = project.run(&[]).exits(0);
    assert!(run.stdout.contains("stale-baseline"), "{}\n{}", run.stdout, run.stderr);
    let dry = ["prune", "--dry-run", "--device", "cpu", "--message-format", "json"];
    let dry = project.memcheck(&dry).exits(0);
    assert_eq!(dry.summary()["exit_code"], 0);
    assert_eq!(dry.json()[0]["action"], "stale");
    assert!(project.has(SNAPSHOT));
    project.memcheck(&["prune", "--device", "cpu"]).exits(0);
    assert!(!project.has(SNAPSHOT));
}

#[test]
fn a_truncated_pending_snapshot_is_not_accepted() {
    let project = accepted();
    let before = project.read(SNAPSHOT);
    let torn = before[..before.len() / 2].to_owned();
    project.write("tests/snapshots/mem__clean@cpu.snap.new", &torn);
    project
        .memcheck(&["accept"])
        .exits(2)
        .prints("is not a snapshot of a memory test: it is cut off");
    assert_eq!(project.read(SNAPSHOT), before);
}

/// A test that leaks in every second run.
const UNSTEADY: &str = "
#[mem_test(max_growth = \"0 B\")]
fn clean(trial: &mut Trial) -> anyhow::Result<()> {
    let runs = std::fs::read_to_string(\"runs\").unwrap_or_default();
    std::fs::write(\"runs\", format!(\"{runs}.\"))?;
    let mut kept = Vec::with_capacity(64);
    trial.iterate(|_| {
        if runs.len() == 1 || runs.len() > 9 {
            kept.push(vec![0_u8; 4096]);
        }
        anyhow::Ok(())
    })
}
";

#[test]
fn explanations_and_profiles_keep_pending_figures_and_a_failed_run_removes_them() {
    let project = Project::bare(
        "anyhow = \"1\"\n[dev-dependencies]\nmemcheck-runtime = { path = \"RUNTIME\" }\n",
    );
    project
        .write("tests/mem.rs", &format!("use memcheck_runtime::{{Trial, mem_test}};\n{UNSTEADY}"));
    // The second run should explain the new figures of the first, but it leaks. The command
    // therefore runs the test five times.
    let run = project.run(&[]).exits(0);
    assert_eq!(project.read("runs").len(), 5);
    let pending = run.summary()["pending"].as_array().unwrap().clone();
    assert_eq!(pending.len(), 1, "{pending:?}");
    let file = format!("{SNAPSHOT}.new");
    assert!(project.has(&file), "the pending snapshot does not exist");
    let profile = ["profile", "--device", "cpu", "--max-peak", "1 B", "clean"];
    project.memcheck(&profile).exits(100).prints("peak-limit");
    assert!(project.has(&file), "the profile has removed the pending snapshot");
    // A run without explanations that fails must remove pending figures that have become invalid.
    project.write("runs", "..........");
    project.run(&["--explain", "never"]).exits(100);
    assert!(!project.has(&file));
}

#[test]
fn a_pending_snapshot_that_cannot_be_written_is_reported_and_keeps_the_baseline() {
    let project = accepted();
    let before = project.read(SNAPSHOT);
    project.write("tests/mem.rs", &clean(200_000));
    // A file cannot replace a folder.
    let pending = project.path().join(format!("{SNAPSHOT}.new"));
    std::fs::create_dir(&pending).expect("the folder is created");
    let run = project.run(&["--explain", "never"]).exits(104);
    assert_eq!(run.codes("clean"), ["peak-regression", "not-measured"]);
    let message = run.test("clean")["findings"][1]["message"].clone();
    assert!(message.as_str().unwrap().contains("could not be written"), "{message}");
    let snapshots = pending.parent().unwrap().read_dir().unwrap();
    assert_eq!(snapshots.count(), 2, "a temporary file stays");
    assert_eq!(project.read(SNAPSHOT), before);
}
