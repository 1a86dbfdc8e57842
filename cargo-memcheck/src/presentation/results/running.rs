//! The tests that a run has selected and started, in a file beside the results that the run removes at
//! its end. If the run is killed, the file shows which tests were running, and which had not started.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use memcheck_core::input;
use memcheck_core::wire::protocol::Progress;
use serde::{Deserialize, Serialize};

use crate::discovery::task::Task;

const FILE: &str = "running.jsonl";
/// A test reports its progress more often.
const BETWEEN_REPORTS: Duration = Duration::from_millis(500);

/// Names a test of a run: two legs and two executables can have tests of one name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct TestKey {
    leg: String,
    package: String,
    binary: String,
    name: String,
}

impl TestKey {
    pub(super) fn of(task: &Task) -> Self {
        Self {
            leg: task.leg.name(),
            package: task.package.clone(),
            binary: task.binary.id.clone(),
            name: task.name().to_owned(),
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum RunningLine {
    Selected(Vec<TestKey>),
    Started(Box<Task>),
    Progress(TestKey, Progress),
}

/// The writer of the file. An error is not reported, because the results do not need the file.
#[derive(Debug)]
pub(super) struct RunningTests {
    path: PathBuf,
    to: Option<File>,
    /// The time of the last progress of each test that has been written.
    reported: BTreeMap<TestKey, Instant>,
}

impl RunningTests {
    /// Replaces the file of an earlier run.
    pub(super) fn begin(folder: &Path) -> Self {
        let path = file(folder);
        let to = File::create(&path).ok();
        Self { path, to, reported: BTreeMap::new() }
    }

    pub(super) fn selected(&mut self, tasks: &[Task]) {
        self.add(&RunningLine::Selected(tasks.iter().map(TestKey::of).collect()));
    }

    pub(super) fn started(&mut self, task: &Task) {
        self.add(&RunningLine::Started(Box::new(task.clone())));
    }

    pub(super) fn progress(&mut self, task: &Task, progress: &Progress) {
        let id = TestKey::of(task);
        if self.reported.get(&id).is_some_and(|last| last.elapsed() < BETWEEN_REPORTS) {
            return;
        }
        self.reported.insert(id.clone(), Instant::now());
        self.add(&RunningLine::Progress(id, Progress { view: None, ..progress.clone() }));
    }

    pub(super) fn end(&mut self) {
        if self.to.take().is_some() {
            let _ = fs::remove_file(&self.path);
        }
    }

    /// In one piece, so that a run that is killed leaves whole lines.
    fn add(&mut self, line: &RunningLine) {
        let Some(to) = &mut self.to else { return };
        let mut text = serde_json::to_vec(line).expect("a line has only text and numbers");
        text.push(b'\n');
        if to.write_all(&text).is_err() {
            self.to = None;
        }
    }
}

/// The tests of a run that was killed, without those that have results.
#[derive(Debug, Default)]
pub(super) struct UnfinishedTests {
    pub(super) running: Vec<(Task, Option<Progress>)>,
    /// Their names.
    pub(super) not_started: Vec<String>,
}

/// `None` if the folder has no such file, as that of an older version.
pub(super) fn read(folder: &Path, ended: &BTreeSet<TestKey>) -> Option<UnfinishedTests> {
    let file = input::open(&file(folder), input::RESULTS_LINE).ok()?;
    let mut unfinished = UnfinishedTests::default();
    let mut selected: Vec<TestKey> = Vec::new();
    for line in BufReader::new(file).lines().map_while(Result::ok) {
        match serde_json::from_str(&line) {
            Ok(RunningLine::Selected(tests)) => selected.extend(tests),
            Ok(RunningLine::Started(task)) if !ended.contains(&TestKey::of(&task)) => {
                unfinished.running.push((*task, None));
            }
            Ok(RunningLine::Progress(id, progress)) => {
                let mut running = unfinished.running.iter_mut();
                if let Some((_, at)) = running.find(|(task, _)| TestKey::of(task) == id) {
                    *at = Some(progress);
                }
            }
            // A line that was being written, or a test that has results.
            Ok(RunningLine::Started(_)) | Err(_) => {}
        }
    }
    let started: BTreeSet<TestKey> =
        unfinished.running.iter().map(|(task, _)| TestKey::of(task)).collect();
    let is_left = |id: &TestKey| !ended.contains(id) && !started.contains(id);
    unfinished.not_started = selected.into_iter().filter(is_left).map(|id| id.name).collect();
    Some(unfinished)
}

pub(super) fn discard(folder: &Path) {
    let _ = fs::remove_file(file(folder));
}

fn file(folder: &Path) -> PathBuf {
    folder.join(FILE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::task::{TestSubject, example};

    fn task(name: &str) -> Task {
        let mut task = example::task();
        let TestSubject::Test(entry) = &mut task.subject else { unreachable!() };
        name.clone_into(&mut entry.name);
        task
    }

    #[test]
    fn a_killed_run_shows_which_tests_were_running_and_which_had_not_started() {
        let folder = tempfile::tempdir().unwrap();
        assert!(read(folder.path(), &BTreeSet::new()).is_none(), "no run has begun");
        let mut running = RunningTests::begin(folder.path());
        let tasks = ["a", "b", "c", "d"].map(task);
        running.selected(&tasks);
        tasks[..3].iter().for_each(|task| running.started(task));
        let progress = |iteration| Progress { iteration, of: 9, live: 5, ..Progress::default() };
        running.progress(&tasks[1], &progress(3));
        running.progress(&tasks[1], &progress(4));
        let ended = BTreeSet::from([TestKey::of(&tasks[0])]);
        let unfinished = read(folder.path(), &ended).unwrap();
        let at: Vec<_> = unfinished.running.iter().map(|(task, at)| (task.name(), at)).collect();
        assert_eq!(at, [("b", &Some(progress(3))), ("c", &None)], "not each progress is written");
        assert_eq!(unfinished.not_started, ["d"]);
        running.end();
        assert!(read(folder.path(), &ended).is_none(), "a run that ends leaves no file");
    }

    #[test]
    fn a_folder_that_cannot_be_written_and_a_damaged_line_are_no_error() {
        let folder = tempfile::tempdir().unwrap();
        let mut running = RunningTests::begin(&folder.path().join("missing"));
        running.started(&task("a"));
        running.end();
        let mut running = RunningTests::begin(folder.path());
        running.started(&task("a"));
        let mut text = fs::read_to_string(file(folder.path())).unwrap();
        text.insert_str(0, "{\"started\":{\"pack\n");
        fs::write(file(folder.path()), text).unwrap();
        assert_eq!(read(folder.path(), &BTreeSet::new()).unwrap().running.len(), 1);
    }
}
