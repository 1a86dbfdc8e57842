//! What a run was, as far as its shards have to agree.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use memcheck_core::explain::Explain;
use memcheck_core::finding::{Code, Level};
use memcheck_core::limits::Limits;
use memcheck_core::shape::Scaling;
use memcheck_core::{protocol, record};
use serde::{Deserialize, Serialize};

use crate::devices::Leg;
use crate::options::{Levels, Mode, Partition, hash};
use crate::session::{LegTests, Session};
use crate::task::Task;
use crate::workspace;

/// Version of the file.
pub(super) const VERSION: u32 = 1;

/// What a run was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Run {
    /// Versions of this file and of what it holds.
    pub(super) version: u32,
    pub(super) protocol: u32,
    pub(super) record: u32,
    /// Version of the command.
    pub(super) memcheck: String,
    /// The root of the workspace, below which paths in the results lie.
    pub(super) workspace: PathBuf,
    /// The part of the tests that was run; none: all of them.
    pub(super) partition: Option<Partition>,
    /// The devices.
    pub(super) devices: Vec<String>,
    /// A hash of all tests that were selected, in every part, with their limits
    /// and whatever else they were judged by.
    pub(super) selected: String,
    /// The commit of the sources, where git knows one.
    pub(super) commit: Option<String>,
    /// Whether the source tree was left alone.
    pub(crate) mode: Mode,
    /// Whether an archive was run.
    #[serde(default)]
    pub(crate) archived: bool,
    /// What was said to be done about bookkeeping.
    #[serde(default)]
    pub(super) levels: BTreeMap<Code, Level>,
}

/// What the hash is of.
#[derive(Serialize)]
struct Selected<'a> {
    tests: Vec<SelectedTest<'a>>,
    mode: Mode,
    levels: Vec<(&'a str, Level)>,
    explain: Explain,
    threads: &'a str,
}

#[derive(Serialize)]
struct SelectedTest<'a> {
    device: String,
    package: &'a str,
    binary: &'a str,
    test: &'a str,
    runs: bool,
    limits: &'a Limits,
    #[serde(skip_serializing_if = "<[Scaling]>::is_empty")]
    scaling: &'a [Scaling],
}

impl Run {
    /// What this run is.
    pub(crate) fn of(session: &Session, legs: &[LegTests]) -> Self {
        let options = &session.options;
        Self {
            version: VERSION,
            protocol: protocol::VERSION,
            record: record::VERSION,
            memcheck: env!("CARGO_PKG_VERSION").to_owned(),
            workspace: session.workspace.root().to_owned(),
            partition: options.selection.partition,
            devices: session.legs.iter().map(Leg::name).collect(),
            selected: selected(session, legs),
            commit: match &session.archive {
                Some(archive) => archive.commit(),
                None => workspace::commit(session.workspace.root()),
            },
            archived: session.archive.is_some(),
            mode: options.mode,
            levels: options.levels.said().clone(),
        }
    }

    /// What is done about bookkeeping.
    pub(crate) fn levels(&self) -> Levels {
        Levels::new(self.levels.clone(), self.mode)
    }

    /// The root of the workspace, below which paths in the results lie.
    pub(crate) fn workspace(&self) -> &Path {
        &self.workspace
    }
}

fn selected(session: &Session, legs: &[LegTests]) -> String {
    let options = &session.options;
    let chosen: Vec<_> = legs.iter().map(|tests| session.choose_all_parts(tests)).collect();
    let test = |runs: bool| {
        move |task| {
            let Task { package, binary, entry, leg, limits, .. }: &Task = task;
            let (binary, test) = (binary.id.as_str(), entry.name.as_str());
            let scaling = entry.scaling.as_slice();
            SelectedTest { device: leg.name(), package, binary, test, runs, limits, scaling }
        }
    };
    let mut tests: Vec<SelectedTest<'_>> = Vec::new();
    for chosen in &chosen {
        tests.extend(chosen.run.iter().map(test(true)));
        tests.extend(chosen.ignored.iter().map(test(false)));
    }
    let levels = options.levels.said();
    let selected = Selected {
        tests,
        mode: options.mode,
        levels: levels.iter().map(|(code, level)| (code.name(), *level)).collect(),
        explain: options.scheduling.explain,
        threads: &options.rayon_threads,
    };
    let text = serde_json::to_string(&selected).expect("it is made of text and numbers");
    format!("{:016x}", hash(&text))
}
