//! Checks that results are read as they were written, and that only complete and matching shards
//! are merged.

use std::fs;
use std::path::{Path, PathBuf};

use memcheck_core::judgement::location::Roots;
use memcheck_core::judgement::verdict::Status;
use memcheck_core::wire::exit;
use memcheck_core::wire::protocol::Progress;

use super::run::VERSION;
use super::*;
use crate::build::workspace::Places;
use crate::discovery::task::{Task, TestOutcome, TestSubject, example};
use crate::invocation::options::Mode;
use crate::invocation::values::{CargoOptions, NoTests};
use crate::presentation::events::Presenter;
use crate::presentation::tally::Tally;
use crate::system::error::{CommandError, Reported};

fn run(part: &str) -> RunDescription {
    RunDescription {
        version: VERSION,
        protocol: memcheck_core::wire::protocol::VERSION,
        record: memcheck_core::measurement::record::VERSION,
        memcheck: env!("CARGO_PKG_VERSION").to_owned(),
        workspace: "/ws".into(),
        baselines: None,
        partition: (!part.is_empty()).then(|| part.to_owned().try_into().unwrap()),
        devices: vec!["cpu".to_owned()],
        commit: None,
        uncommitted: None,
        mode: Mode::Ci,
        archived: false,
        levels: Default::default(),
        origin: Some(crate::presentation::origin::example()),
    }
}

fn here() -> Roots<'static> {
    Roots::new(Path::new("/here"), None)
}

fn task(name: &str) -> Task {
    let mut task = example::task();
    let TestSubject::Test(entry) = &mut task.subject else { unreachable!() };
    name.clone_into(&mut entry.name);
    task
}

fn outcome(folder: &Path, name: &str) -> TestOutcome {
    let mut report: memcheck_core::runs::report::Report =
        serde_json::from_value(example::report()).unwrap();
    let pending = folder.join(format!("{name}.snap.new"));
    fs::write(&pending, format!("figures of {name}\n")).unwrap();
    report.snapshot = Some(format!("/ws/app/tests/snapshots/{name}@cpu.snap").into());
    report.pending = Some(pending);
    let mut outcome = TestOutcome::ignored();
    outcome.verdict.status = Status::Passed;
    outcome.report = Some(report);
    outcome
}

fn kept(run: &RunDescription, tests: &[&str]) -> String {
    let tally = Tally { elsewhere: 1, not_run: 2, ..Tally::default() };
    kept_with(run, tests, &tally, exit::OK)
}

fn kept_with(run: &RunDescription, tests: &[&str], tally: &Tally, exit_code: u8) -> String {
    selected_with(run, "5", tests, tally, exit_code)
}

fn selected_with(
    run: &RunDescription,
    selected: &str,
    tests: &[&str],
    tally: &Tally,
    exit_code: u8,
) -> String {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::begin(folder.path(), run);
    store.leg(&example::task().leg, tests.len(), None);
    for name in tests {
        store.test(&task(name), &outcome(folder.path(), name));
    }
    let lost = store.end(selected.to_owned(), tally, exit_code);
    assert!(lost.is_none(), "{lost:?}");
    fs::read_to_string(file(folder.path())).unwrap()
}

fn folders(texts: &[String]) -> (tempfile::TempDir, Vec<PathBuf>) {
    let root = tempfile::tempdir().unwrap();
    let made = texts.iter().enumerate().map(|(number, text)| {
        let folder = root.path().join(number.to_string());
        fs::create_dir(&folder).unwrap();
        fs::write(file(&folder), text).unwrap();
        folder
    });
    let made = made.collect();
    (root, made)
}

fn merged(texts: &[String]) -> Result<MergedRun, ResultsError> {
    let (_root, folders) = folders(texts);
    merge(folders.iter().map(|folder| read(folder)).collect::<Result<_, _>>()?)
}

#[track_caller]
fn refused(texts: &[String], exit_code: u8, message: &str) {
    let error = merged(texts).unwrap_err();
    assert_eq!(error.exit_code(), exit_code, "{error}");
    assert!(error.to_string().contains(message), "{error}");
    assert!(error.hint().is_some(), "{error}");
}

#[test]
fn written_results_are_read_back() {
    let (_root, folders) = folders(&[kept(&run(""), &["b", "a"])]);
    let results = read(&folders[0]).unwrap();
    assert_eq!(results.run, run(""));
    assert_eq!(results.legs, [(example::task().leg, 2)]);
    let names: Vec<&str> = results.tests.iter().map(|t| t.task.name()).collect();
    assert_eq!(names, ["b", "a"]);
    let test = &results.tests[0];
    assert_eq!(test.pending.as_deref(), Some("figures of b\n"));
    let folder = tempfile::tempdir().unwrap();
    let mut expected = outcome(folder.path(), "b").report.unwrap();
    expected.pending.clone_from(&test.outcome.report.as_ref().unwrap().pending);
    assert_eq!(test.outcome.report.as_ref(), Some(&expected));
}

#[test]
fn shards_are_joined_in_the_order_of_a_run() {
    let shards = [kept(&run("hash:2/2"), &["c", "a"]), kept(&run("hash:1/2"), &["b"])];
    let whole = merged(&shards).unwrap();
    let names: Vec<&str> = whole.tests.iter().map(|t| t.task.name()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(whole.legs[0].1, 3);
    assert_eq!((whole.tally.elsewhere, whole.tally.not_run), (2, 4));
}

#[test]
fn a_merged_run_reports_a_shard_that_did_not_finish() {
    let (first, second) = (run("hash:1/2"), run("hash:2/2"));
    let ended = |tally: Tally| {
        let exit_code = tally.exit_code(NoTests::Pass);
        let whole = merged(&[kept(&first, &["a"]), kept_with(&second, &["b"], &tally, exit_code)]);
        whole.map(|whole| (whole.tally.interrupted, whole.tally.failure))
    };
    let failure = Some(Reported { exit_code: exit::INTERNAL, message: "e".into(), hint: None });
    assert_eq!(ended(Tally::default()).unwrap(), (false, None));
    assert_eq!(ended(Tally { interrupted: true, ..Tally::default() }).unwrap(), (true, None));
    let broke = Tally { failure: failure.clone(), ..Tally::default() };
    assert_eq!(ended(broke).unwrap(), (false, failure));
    let cut = Tally { unstarted: vec!["cpu".to_owned()], ..Tally::default() };
    let error = ended(cut).unwrap_err();
    assert_eq!(error.exit_code(), exit::NOT_MEASURED);
    assert!(error.to_string().ends_with("has no results on cpu: that run ended early"));
}

#[test]
fn shards_of_different_runs_are_not_merged() {
    let (first, second) = (run("hash:1/2"), run("hash:2/2"));
    let shard = |run: &RunDescription, test: &str| kept(run, &[test]);
    let one = shard(&first, "a");
    let missing = [shard(&run("hash:1/3"), "a"), shard(&run("hash:3/3"), "b")];
    refused(&missing, exit::NOT_MEASURED, "hash:2/3");
    refused(&[one.clone(), one.clone()], exit::USAGE, "hash:1/2 is in both");
    refused(&[one.clone(), shard(&second, "a")], exit::USAGE, "app::mem a on cpu is in both");
    refused(&[one.clone(), shard(&run(""), "b")], exit::USAGE, "a whole run");
    refused(&[one.clone(), shard(&run("hash:2/3"), "b")], exit::USAGE, "hash:2/3");
    type Change = fn(&mut RunDescription);
    let others = selected_with(&second, "6", &["b"], &Tally::default(), exit::OK);
    refused(&[one.clone(), others], exit::USAGE, "different tests, limits or levels");
    let changes: [(Change, &str); 2] = [
        (|run| run.devices = vec!["sim:t4".to_owned()], "cpu and sim:t4"),
        (|run| run.mode = Mode::Local, "modes --ci and --no-ci"),
    ];
    for (change, message) in changes {
        let mut other = second.clone();
        change(&mut other);
        refused(&[one.clone(), shard(&other, "b")], exit::USAGE, message);
    }
    let of_commit = |run: &RunDescription, commit: &str| RunDescription {
        commit: Some(commit.into()),
        ..run.clone()
    };
    let commits = [shard(&of_commit(&first, "abc"), "a"), shard(&of_commit(&second, "def"), "b")];
    refused(&commits, exit::USAGE, "commits abc and def");
    let changed = RunDescription { uncommitted: Some("1".into()), ..of_commit(&second, "abc") };
    let changes = [shard(&of_commit(&first, "abc"), "a"), shard(&changed, "b")];
    refused(&changes, exit::USAGE, "uncommitted changes to commit abc");
    // If git does not know the commit of one shard, the commits cannot be compared.
    assert!(merged(&[one, shard(&of_commit(&second, "def"), "b")]).is_ok());
}

#[test]
fn a_run_that_was_killed_keeps_the_tests_that_had_ended() {
    let sound = kept(&run(""), &["a", "b", "c"]);
    let ends: Vec<usize> = sound.match_indices('\n').map(|(end, _)| end + 1).collect();
    let around = ends.iter().flat_map(|end| [end - 1, *end, end + 1, end + 500]);
    for killed_at in around.filter(|at| (ends[0]..sound.len()).contains(at)) {
        let (_root, folders) = folders(&[sound[..killed_at].to_owned()]);
        let results = read(&folders[0]).unwrap();
        let whole = ends.iter().filter(|end| **end <= killed_at).count();
        assert_eq!(results.tests.len(), whole.saturating_sub(2), "at byte {killed_at}");
        let whole = MergedRun::from(results);
        assert_eq!(
            whole.tests.len() + whole.tally.not_run,
            whole.legs.first().map_or(0, |leg| leg.1)
        );
        let failure = whole.tally.failure.unwrap();
        assert_eq!(failure.exit_code, exit::NOT_MEASURED);
        assert!(failure.message.contains("the run was killed"), "{}", failure.message);
    }
    let started = sound[..ends[0]].to_owned();
    let error = merged(&[started, kept(&run("hash:1/2"), &["a"])]).unwrap_err();
    assert!(matches!(error, ResultsError::Incomplete { .. }), "{error}");
}

#[test]
fn results_are_stored_test_by_test_and_a_living_run_is_distinguished_from_a_killed_one() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(file(folder.path()), "of an earlier run").unwrap();
    let store = Store::begin(folder.path(), &run(""));
    store.leg(&example::task().leg, 2, None);
    assert!(read(folder.path()).unwrap().tests.is_empty());
    let why = || read(folder.path()).unwrap().incomplete.unwrap();
    for (ended, name) in [(1, "a"), (2, "b")] {
        store.test(&task(name), &outcome(folder.path(), name));
        assert_eq!(read(folder.path()).unwrap().tests.len(), ended);
        assert_eq!(why(), format!("the run has not ended yet: {ended} of 2 tests have results"));
    }
    drop(store);
    assert_eq!(why(), "the run was killed: 2 of 2 tests have results");
}

#[test]
fn a_killed_run_names_the_tests_that_were_running_and_those_that_had_not_started() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::begin(folder.path(), &run(""));
    let tasks = ["a", "b", "c", "d"].map(task);
    store.leg(&example::task().leg, tasks.len(), None);
    store.selected(&tasks);
    store.started(&tasks[0]);
    store.test(&tasks[0], &outcome(folder.path(), "a"));
    store.started(&tasks[1]);
    let progress = Progress { iteration: 38, of: 67, live: 2 << 20, ..Progress::default() };
    store.progress(&tasks[1], &progress);
    let living = read(folder.path()).unwrap();
    let why = "the run has not ended yet: 1 of 4 tests have results; `b` is running";
    assert_eq!(living.incomplete.as_deref(), Some(why));
    assert!(living.killed.is_empty() && living.end.not_run == 3);
    drop(store);
    let whole = MergedRun::from(read(folder.path()).unwrap());
    let mut seen = Vec::new();
    struct Seen<'a>(&'a mut Vec<String>);
    impl Presenter for Seen<'_> {
        fn test_finished(&mut self, task: &Task, outcome: &TestOutcome) {
            let messages = outcome.verdict.findings.iter().map(|it| it.message.as_str());
            self.0.push(format!("{} {}", task.name(), messages.collect::<String>()));
        }
    }
    let tally = replay(whole, |event| event(&mut Seen(&mut seen)));
    assert_eq!(seen, ["a ", "b killed while running (iteration 38 of 67, 2.00 MiB live)"]);
    assert_eq!((tally.passed, tally.not_measured, tally.not_run), (1, 1, 2));
    assert_eq!(tally.not_started, ["c", "d"]);
    let failure = tally.failure.unwrap();
    let begin = "the run was killed: 1 of 4 tests have results; `b` was running (";
    assert!(failure.message.starts_with(begin), "{}", failure.message);
    assert!(failure.message.ends_with("/results.jsonl)"), "{}", failure.message);
    let hint = "for a verdict about all tests, run `cargo memcheck --ci` again";
    assert_eq!(failure.hint.as_deref(), Some(hint));
}

#[test]
fn a_test_that_is_judged_later_is_stored_when_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::begin(folder.path(), &run(""));
    store.leg(&example::task().leg, 2, None);
    for name in ["a", "b"] {
        store.unjudged(&task(name), &outcome(folder.path(), name));
    }
    let names = || -> Vec<String> {
        let tests = read(folder.path()).unwrap().tests;
        tests.iter().map(|test| test.task.name().to_owned()).collect()
    };
    assert_eq!(names(), ["a", "b"]);
    let mut judged = outcome(folder.path(), "a");
    judged.verdict.status = Status::Failed;
    store.test(&task("a"), &judged);
    assert_eq!(names(), ["a", "b"]);
    assert_eq!(read(folder.path()).unwrap().tests[0].outcome.verdict.status, Status::Failed);
    store.test(&task("b"), &judged);
    assert!(store.end("5".to_owned(), &Tally::default(), exit::OK).is_none());
    let results = read(folder.path()).unwrap();
    assert_eq!((results.tests.len(), results.incomplete), (2, None));
}

/// The results of a run that was killed, with a test that was judged again and one that was not.
fn killed_run() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::begin(folder.path(), &run(""));
    store.leg(&example::task().leg, 3, None);
    for name in ["a", "b"] {
        store.unjudged(&task(name), &outcome(folder.path(), name));
    }
    for name in ["c", "a"] {
        store.test(&task(name), &outcome(folder.path(), name));
    }
    folder
}

#[test]
fn tests_in_a_file_are_those_that_are_read_into_memory() {
    let folder = killed_run();
    let mut in_memory = read(folder.path()).unwrap();
    in_memory.relocate(here());
    let in_file = read_in_file(folder.path(), here()).unwrap();
    assert_eq!((&in_file.run, &in_file.end), (&in_memory.run, &in_memory.end));
    assert_eq!(in_file.incomplete, in_memory.incomplete);
    // A later run replaces the file.
    let later = Store::begin(folder.path(), &run(""));
    let tests: Vec<Test> = in_file.tests.into_iter().map(|test| test.read().unwrap()).collect();
    drop(later);
    let names: Vec<&str> = tests.iter().map(|test| test.task.name()).collect();
    assert_eq!(names, ["c", "a", "b"]);
    let text = |tests: &[Test]| serde_json::to_string(tests).unwrap();
    assert_eq!(text(&tests), text(&in_memory.tests));
    assert!(text(&tests).contains("/here/app/tests/snapshots/b@cpu.snap"));
}

#[test]
fn a_file_that_another_program_changes_while_it_is_presented_is_a_failure() {
    let folder = killed_run();
    let whole = MergedRun::from(read_in_file(folder.path(), here()).unwrap());
    let length = fs::metadata(file(folder.path())).unwrap().len();
    fs::write(file(folder.path()), " ".repeat(length as usize)).unwrap();
    let failure = replay(whole, |_| {}).failure.unwrap();
    assert_eq!(failure.exit_code, exit::NOT_MEASURED);
    assert!(failure.message.contains("has changed while it was read"), "{}", failure.message);
}

#[test]
fn two_runs_at_the_same_time_do_not_mix_their_results() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) =
        (Store::begin(folder.path(), &run("")), Store::begin(folder.path(), &run("")));
    for (store, name) in [(&one, "a"), (&other, "b"), (&one, "c"), (&other, "d")] {
        store.test(&task(name), &outcome(folder.path(), name));
    }
    assert!(other.end("5".to_owned(), &Tally::default(), exit::OK).is_none());
    one.test(&task("e"), &outcome(folder.path(), "e"));
    assert!(one.end("5".to_owned(), &Tally::default(), exit::OK).is_none());
    let results = read(folder.path()).unwrap();
    let names: Vec<&str> = results.tests.iter().map(|test| test.task.name()).collect();
    assert_eq!((names, results.incomplete), (vec!["b", "d"], None));
}

#[test]
fn results_that_cannot_be_written_are_an_error_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let store = Store::begin(&folder.path().join("file"), &run(""));
    store.test(&task("a"), &outcome(folder.path(), "a"));
    let (path, error) = store.end("5".to_owned(), &Tally::default(), exit::OK).unwrap();
    assert!(path.ends_with("file/results.jsonl"));
    assert!(
        error.to_string().contains("exists") || error.to_string().contains("directory"),
        "{error}"
    );
}

#[test]
fn earlier_results_that_cannot_be_removed_are_no_internal_error() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("results.jsonl/below")).unwrap();
    let error = discard(folder.path()).unwrap_err();
    assert_eq!(error.exit_code(), exit::REPORT);
    assert!(error.hint().is_some_and(|hint| hint.contains("--results")), "{error}");
}

#[test]
fn a_damaged_file_of_results_is_refused() {
    let sound = kept(&run(""), &["a", "b"]);
    let lines: Vec<&str> = sound.lines().collect();
    for torn in [
        String::new(),
        sound[..lines[0].len() / 2].to_owned(),
        [lines[0], lines[1], lines[2], lines[4], ""].join("\n"),
        lines[1..].join("\n"),
        format!("{sound}{sound}"),
        sound.replacen("{\"test\":", "{\"test\":,", 1),
    ] {
        refused(&[torn], exit::NOT_MEASURED, "cut off or damaged");
    }
    let other = sound.replacen(&format!("\"version\":{VERSION}"), "\"version\":9", 1);
    refused(&[other], exit::USAGE, "another version");
    let newer = RunDescription { memcheck: "99.0.0".to_owned(), ..run("") };
    refused(&[kept(&newer, &["a"])], exit::USAGE, "cargo-memcheck 99.0.0");
}

#[test]
fn a_missing_folder_and_a_folder_without_results_are_distinguished() {
    let root = tempfile::tempdir().unwrap();
    assert_eq!(read(root.path()).unwrap_err().exit_code(), exit::NOT_MEASURED);
    assert_eq!(read(&root.path().join("no")).unwrap_err().exit_code(), exit::USAGE);
    fs::write(file(root.path()), kept(&run(""), &[])).unwrap();
    assert!(read(root.path()).is_ok());
    discard(root.path()).unwrap();
    discard(root.path()).unwrap();
    assert!(read(root.path()).is_err());
}

#[test]
fn paths_are_relative_to_the_workspace_of_the_report() {
    let (_root, folders) = folders(&[kept(&run(""), &["a"])]);
    let mut results = read(&folders[0]).unwrap();
    results.relocate(here());
    let report = results.tests[0].outcome.report.as_ref().unwrap();
    let snapshot = Path::new("/here/app/tests/snapshots/a@cpu.snap");
    assert_eq!(report.snapshot.as_deref(), Some(snapshot));
    assert_eq!(results.run.workspace, Path::new("/here"));
}

#[test]
fn baselines_in_another_folder_are_relocated_to_that_of_the_report() {
    let kept_in = |baselines: &str| RunDescription { baselines: Some(baselines.into()), ..run("") };
    let elsewhere = Roots::new(Path::new("/here"), Some(Path::new("/kept")));
    for (of_run, roots, folder) in [
        // The results of the example are of a run with baselines in `/ws`.
        ("/ws/app", elsewhere, "/kept"),
        ("/ws/app", here(), "/here/app"),
        ("/ws", elsewhere, "/kept/app"),
    ] {
        let (_root, folders) = folders(&[kept(&kept_in(of_run), &["a"])]);
        let mut results = read(&folders[0]).unwrap();
        results.relocate(roots);
        let report = results.tests[0].outcome.report.as_ref().unwrap();
        let snapshot = Path::new(folder).join("tests/snapshots/a@cpu.snap");
        assert_eq!(report.snapshot.as_deref(), Some(snapshot.as_path()), "{of_run}");
        assert_eq!(results.run.workspace, Path::new("/here"));
    }
    let apart = kept_in("/elsewhere");
    let (_root, folders) = folders(&[kept(&apart, &["a"])]);
    let mut results = read(&folders[0]).unwrap();
    results.relocate(here());
    assert_eq!(results.run.baselines.as_deref(), Some(Path::new("/elsewhere")));
}

#[test]
fn a_failure_on_a_later_device_removes_the_pending_snapshot_of_an_earlier_one() {
    let (_root, folders) = folders(&[kept(&run(""), &["a", "b"])]);
    let places = |root: &Path| {
        let flags = CargoOptions { target_dir: Some(root.to_owned()), ..CargoOptions::default() };
        Places::find(&flags).unwrap()
    };
    for (status, left) in [(Status::Passed, true), (Status::Failed, false)] {
        let mut whole = MergedRun::from(read(&folders[0]).unwrap());
        // The second test stands for the first one on another device, so that they share a
        // snapshot.
        let first = whole.tests[0].outcome.report.clone().unwrap();
        let later = &mut whole.tests[1];
        later.pending = None;
        later.outcome.verdict.status = status;
        later.outcome.report.as_mut().unwrap().snapshot = first.snapshot;
        let target = tempfile::tempdir().unwrap();
        join(&mut whole, &places(target.path())).unwrap();
        let pending = whole.tests[0].outcome.report.as_ref().unwrap().pending.clone();
        assert_eq!(pending.is_some_and(|path| path.is_file()), left, "{status:?}");
        let snapshots = target.path().join("memcheck/pending/app/tests/snapshots");
        assert_eq!(snapshots.join("a@cpu.snap.new").is_file(), left);
        assert_eq!(whole.tests[1].outcome.report.as_ref().unwrap().pending, None);
    }
}
