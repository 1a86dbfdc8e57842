//! The life of a baseline: missing, accepted, regressed, improved, and broken in every way that a
//! user can break it. A baseline must never be lost.

use std::sync::OnceLock;

use crate::fixture::{Programs, Project, Run};

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

fn programs() -> Programs {
    Programs::of("baselines").with_baselines()
}

/// A run of `baselines::clean`, which has one block of 400,000 bytes.
fn run_clean(programs: &Programs, arguments: &[&str]) -> Run {
    programs.run("cpu", &[&["baselines::clean"], arguments].concat())
}

/// The baseline of `baselines::clean` as a run and `accept` have written it.
fn accepted() -> &'static str {
    static ACCEPTED: OnceLock<String> = OnceLock::new();
    ACCEPTED.get_or_init(|| {
        let programs = programs();
        run_clean(&programs, &[]).exits(0);
        programs.memcheck(&["accept"]).exits(0);
        programs.read(&programs.baseline("clean@cpu"))
    })
}

/// Programs with that baseline, in which the block has `bytes`.
fn with_baseline(bytes: u64) -> Programs {
    let programs = programs();
    let text = accepted();
    assert!(text.contains("peak_allocated: 400000"), "{text}");
    programs.write(&programs.baseline("clean@cpu"), &text.replace("400000", &bytes.to_string()));
    programs
}

fn baseline(programs: &Programs) -> String {
    programs.read(&programs.baseline("clean@cpu"))
}

#[test]
fn a_regression_fails_and_can_be_accepted() {
    let programs = with_baseline(200_000);
    let before = baseline(&programs);
    let regressed = run_clean(&programs, &[]).exits(100);
    assert_eq!(regressed.codes("clean"), ["peak-regression"]);
    let finding = &regressed.test("clean")["findings"][0];
    assert_eq!((&finding["baseline"], &finding["figure"]), (&200_000.into(), &400_000.into()));
    assert_eq!(baseline(&programs), before, "the run has changed the baseline");

    let shown = programs.memcheck(&["review"]);
    assert!(
        shown.stderr.contains("400,000") || shown.stdout.contains("400,000"),
        "{}",
        shown.stderr
    );
    // Without a terminal no decision is made, so that the snapshot stays pending.
    let review = programs.memcheck(&["review", "--message-format", "json"]).exits(5);
    let lines = review.json();
    assert_eq!((&lines[0]["type"], &lines[0]["action"]), (&"snapshot".into(), &"pending".into()));
    assert!(lines[0]["path"].as_str().is_some_and(|path| path.ends_with(".snap.new")));
    let quiet = programs.memcheck(&["review", "--quiet"]);
    assert!(!quiet.stderr.contains("400,000"), "{}", quiet.stderr);
    quiet.prints("baselines::clean");
    let verbose = programs.memcheck(&["review", "--verbose"]);
    verbose.prints("peak_allocated: 400000").prints("setup:");
    let accepted = programs.memcheck(&["accept", "--verbose"]).exits(0);
    accepted.prints("accepted ").prints("400,000");
    assert!(baseline(&programs).contains("peak_allocated: 400000"));
    run_clean(&programs, &[]).exits(0);
}

#[test]
fn a_larger_shape_is_paired_with_the_one_of_the_baseline_and_its_rows_add_up() {
    let programs = programs();
    let run = |variables: &[(&str, &str)]| {
        let arguments = ["baselines::random_rows", "--explain", "always"];
        programs.run_with("cpu", &arguments, variables)
    };
    run(&[]).exits(0);
    programs.memcheck(&["accept"]).exits(0);
    let unchanged = run(&[]).exits(0);
    assert!(unchanged.codes("random_rows").is_empty());
    let finding = |run: &Run| {
        assert_eq!(run.codes("random_rows"), ["peak-regression"]);
        let finding = run.test("random_rows")["findings"][0].clone();
        let rows = ["grown", "shrunk"].map(|name| finding[name].as_array().cloned());
        let others = finding["other_holders"].as_object().map(|row| row.clone().into());
        let rows = rows.into_iter().flatten().flatten().chain(others);
        let difference = |row: &serde_json::Value, then: &str, now: &str| {
            row[now].as_i64().unwrap_or_default() - row[then].as_i64().unwrap_or_default()
        };
        let sum: i64 = rows.map(|row| difference(&row, "then", "now")).sum();
        assert_eq!(sum, difference(&finding, "baseline", "figure"), "{finding:#}");
        finding
    };
    let larger = run(&[("ROWS", "192")]).exits(100);
    let found = finding(&larger);
    let (rise, line) = (&found["rise"], programs.site("randn"));
    assert_eq!(rise["kind"], "larger", "{found:#}");
    let of_line = |row: &&serde_json::Value| row["place"].as_str() == Some(&line);
    let row = found["grown"].as_array().expect("rows").iter().find(of_line).expect(&line);
    assert_eq!(row["was_tensor"], "[128,1024] f32", "{row}");
    assert_eq!((&row["then"], &row["now"]), (&524_288.into(), &786_432.into()));
    larger
        .prints(&format!("[128,1024] → [192,1024] f32 at {line} (512.0 KiB → 768.0 KiB, +50.0%)"))
        .prints(" | let h = Tensor::randn(0f32, 1f32, (rows(\"ROWS\"), 1024), &device)?;")
        .prints("cause: dimension 0 grew from 128 to 192 at ")
        .prints("remedy: find out why the dimension is 192, such as a longer sequence");
    let setup = finding(&run(&[("WEIGHTS", "192")]).exits(100));
    assert_eq!(setup["rise"]["kind"], "setup", "{setup:#}");
    assert_eq!(setup["grown"][0]["place"].as_str(), Some(&*programs.site("weights")));
    let smaller = run(&[("ROWS", "64")]).exits(0);
    assert_eq!(smaller.codes("random_rows"), ["improved"], "a smaller shape is not a regression");
}

#[test]
fn a_rejected_figure_leaves_the_baseline_as_it_was() {
    let programs = with_baseline(200_000);
    let before = baseline(&programs);
    run_clean(&programs, &[]).exits(100);
    assert!(programs.has(&programs.pending("clean@cpu")));
    programs.memcheck(&["reject"]).exits(0);
    assert!(!programs.has(&programs.pending("clean@cpu")));
    assert_eq!(baseline(&programs), before);
}

#[test]
fn an_improvement_is_a_warning_until_it_is_denied() {
    let programs = with_baseline(800_000);
    let warned = run_clean(&programs, &[]).exits(0);
    assert_eq!(warned.codes("clean"), ["improved"]);
    run_clean(&programs, &["-D", "improved"]).exits(5);
    assert!(run_clean(&programs, &["-A", "improved"]).exits(0).codes("clean").is_empty());
}

#[test]
fn a_figure_within_the_tolerance_has_no_finding() {
    // 396,100 + 1 % is 400,061.
    let programs = with_baseline(396_100);
    assert!(run_clean(&programs, &[]).exits(0).codes("clean").is_empty());
    let exact = run_clean(&programs, &["--tolerance", "0%"]).exits(100);
    assert_eq!(exact.codes("clean"), ["peak-regression"]);
}

#[test]
fn a_corrupt_baseline_is_reported_and_kept() {
    let programs = with_baseline(400_000);
    let sound = baseline(&programs);
    let conflicted = sound.replace(
        "  peak_allocated: 400000",
        "<<<<<<< HEAD\n  peak_allocated: 400000\n=======\n  peak_allocated: 1\n>>>>>>> other",
    );
    let newer = sound.replace("memcheck: 1", "memcheck: 9");
    let torn = sound[..sound.len() / 3].to_owned();
    for (broken, expected) in [(conflicted, "conflict"), (newer, "version 9"), (torn, "header")] {
        programs.write(&programs.baseline("clean@cpu"), &broken);
        let run = run_clean(&programs, &[]).exits(0);
        assert_eq!(run.codes("clean"), ["corrupt-baseline"]);
        let message = run.test("clean")["findings"][0]["message"].as_str().unwrap().to_owned();
        assert!(message.contains(expected), "{message}");
        assert_eq!(baseline(&programs), broken, "the corrupt baseline has changed");
        run_clean(&programs, &["--ci"]).exits(5);
    }
}

#[test]
fn a_baseline_of_another_candle_is_uncomparable_and_not_a_regression() {
    let programs = with_baseline(400_000);
    let other = baseline(&programs).replace("candle: 0.11.1", "candle: 0.10.0");
    programs.write(&programs.baseline("clean@cpu"), &other);
    let run = run_clean(&programs, &[]).exits(0);
    assert_eq!(run.codes("clean"), ["uncomparable-baseline"]);
    run_clean(&programs, &["--ci"]).exits(5);
    run_clean(&programs, &["--iterations", "5"]).exits(0);
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
#[ignore = "slow: just all"]
fn a_source_file_in_the_parent_folder_has_its_baseline_next_to_it() {
    let project = Project::new("#[path = \"../above.rs\"]\nmod above;\n");
    assert_baseline_next_to_source(&project, "above", "above.rs", "snapshots");
}

#[test]
#[ignore = "slow: just all"]
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
    let programs = programs();
    let refused = "`baselines::twins::a__b` and `baselines::twins::a::b` have the same baseline";
    let run = programs.run("cpu", &["baselines::twins"]).exits(96);
    let run = run.prints(refused).prints("rename one of them");
    assert!(!run.stdout.contains("test-finished"), "{}", run.stdout);
    programs.run("cpu", &["--exact", "baselines::twins::a::b"]).exits(0);
    let output = programs.cargo_test().arg("baselines::twins").output().expect("cargo runs");
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains(refused), "{output:?}");
}

/// What a change of the sources leaves behind: the baseline of a renamed test, those of a value
/// that no case has any more, and that of a law without a bound.
#[test]
fn a_changed_source_leaves_stale_baselines_that_prune_removes() {
    let cases = "
#[mem_test(cases(dtype = [f32, bf16], rows = [1, 2, 4]), scaling(peak_allocated <= \"rows\"))]
fn forward(trial: &mut memcheck_runtime::Trial) -> candle_core::Result<()> {
    let (dtype, rows): (DType, usize) = (trial.case(\"dtype\")?, trial.case(\"rows\")?);
    let device = trial.device().clone();
    trial.iterate(|_| Tensor::zeros((rows, 1024), dtype, &device).map(drop))
}
";
    let project = Project::new("");
    let source = format!("{}{cases}", clean(100_000));
    project.write("tests/mem.rs", &source);
    project.run(&[]).exits(0);
    project.memcheck(&["accept"]).exits(0);
    let law = "tests/snapshots/mem__forward__law_dtype_f32@cpu.snap";
    assert!(project.has(SNAPSHOT) && project.has(law));
    let changed = source
        .replace("fn clean", "fn renamed")
        .replace("[f32, bf16]", "[f32]")
        .replace(", scaling(peak_allocated <= \"rows\")", "");
    project.write("tests/mem.rs", &changed);
    let run = project.run(&[]).exits(0);
    // That of `clean`, three cases of bf16, and two laws.
    assert_eq!(run.stdout.matches("stale-baseline").count(), 6, "{}\n{}", run.stdout, run.stderr);
    let run = run.prints("mem__forward__law_dtype_f32@cpu.snap belongs to no test");
    let run = run.prints("mem__forward__dtype_bf16_rows_4@cpu.snap belongs to no test");
    run.prints("mem__clean@cpu.snap belongs to no test");
    let dry = ["prune", "--dry-run", "--device", "cpu", "--message-format", "json"];
    let dry = project.memcheck(&dry).exits(0);
    assert_eq!(dry.summary()["exit_code"], 0);
    assert_eq!(dry.json()[0]["action"], "stale");
    assert!(project.has(SNAPSHOT) && project.has(law));
    project.memcheck(&["prune", "--device", "cpu"]).exits(0);
    assert!(!project.has(SNAPSHOT) && !project.has(law));
    assert!(project.has("tests/snapshots/mem__forward__dtype_f32_rows_4@cpu.snap"));
}

#[test]
fn a_truncated_pending_snapshot_is_not_accepted() {
    let programs = with_baseline(400_000);
    let before = baseline(&programs);
    let torn = before[..before.len() / 2].to_owned();
    programs.write(&programs.pending("clean@cpu"), &torn);
    programs
        .memcheck(&["accept"])
        .exits(2)
        .prints("is not a snapshot of a memory test: it is cut off");
    assert_eq!(baseline(&programs), before);
}

#[test]
fn explanations_and_profiles_keep_pending_figures_and_a_failed_run_removes_them() {
    let programs = programs();
    let runs = programs.path().join("runs");
    let variables = [("RUNS_OF_UNSTEADY", runs.to_str().expect("a path in UTF-8"))];
    // The second run should explain the new figures of the first, but it leaks. The command
    // therefore runs the test five times.
    let run = programs.run_with("cpu", &["baselines::unsteady"], &variables).exits(0);
    assert_eq!(programs.read("runs").len(), 5);
    let pending = run.summary()["pending"].as_array().unwrap().clone();
    assert_eq!(pending.len(), 1, "{pending:?}");
    let file = programs.pending("unsteady@cpu");
    assert!(programs.has(&file), "the pending snapshot does not exist");
    let profile = ["profile", "--device", "cpu", "--max-peak", "1 B", "baselines::unsteady"];
    programs.memcheck_with(&profile, &variables).exits(100).prints("peak-limit");
    assert!(programs.has(&file), "the profile has removed the pending snapshot");
    // A run without explanations that fails must remove pending figures that have become invalid.
    programs.write("runs", "..........");
    let unexplained = ["baselines::unsteady", "--explain", "never"];
    programs.run_with("cpu", &unexplained, &variables).exits(100);
    assert!(!programs.has(&file));
}

#[test]
fn a_pending_snapshot_that_cannot_be_written_is_reported_and_keeps_the_baseline() {
    let programs = with_baseline(200_000);
    let before = baseline(&programs);
    // A file cannot replace a folder.
    let pending = programs.path().join(programs.pending("clean@cpu"));
    std::fs::create_dir(&pending).expect("the folder is created");
    let run = run_clean(&programs, &["--explain", "never"]).exits(104);
    assert_eq!(run.codes("clean"), ["peak-regression", "not-measured"]);
    let message = run.test("clean")["findings"][1]["message"].clone();
    assert!(message.as_str().unwrap().contains("could not be written"), "{message}");
    let snapshots = pending.parent().unwrap().read_dir().unwrap();
    assert_eq!(snapshots.count(), 2, "a temporary file stays");
    assert_eq!(baseline(&programs), before);
}
