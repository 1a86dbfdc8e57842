//! The description of a run, which must agree between its shards.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use memcheck_core::judgement::finding::{Code, Level};
use memcheck_core::judgement::location::Roots;
use memcheck_core::limits::Limits;
use memcheck_core::measurement::record;
use memcheck_core::runs::plan::Explain;
use memcheck_core::shape::Scaling;
use memcheck_core::wire::protocol;
use serde::{Deserialize, Serialize};

use crate::build::leg::Leg;
use crate::discovery::session::{LegTests, Session};
use crate::discovery::task::Task;
use crate::invocation::options::{Levels, Mode, Partition, hash};
use crate::presentation::origin::RunOrigin;

pub(super) const VERSION: u32 = 3;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunDescription {
    /// Of this file, of the protocol and of the records in it.
    pub(super) version: u32,
    pub(super) protocol: u32,
    pub(super) record: u32,
    pub(super) memcheck: String,
    /// Contains the paths in the results.
    pub(super) workspace: PathBuf,
    /// The folder of the baselines if they are not next to the tests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) baselines: Option<PathBuf>,
    /// `None` if all tests were run.
    pub(super) partition: Option<Partition>,
    pub(super) devices: Vec<String>,
    pub(super) commit: Option<String>,
    /// Identifies what was not committed, for the other shards.
    #[serde(default)]
    pub(super) uncommitted: Option<String>,
    pub(crate) mode: Mode,
    #[serde(default)]
    pub(crate) archived: bool,
    #[serde(default)]
    pub(super) levels: BTreeMap<Code, Level>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) origin: Option<RunOrigin>,
}

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

impl RunDescription {
    pub(crate) fn of(session: &Session) -> Self {
        let options = &session.options;
        Self {
            version: VERSION,
            protocol: protocol::VERSION,
            record: record::VERSION,
            memcheck: env!("CARGO_PKG_VERSION").to_owned(),
            workspace: session.workspace.root().to_owned(),
            baselines: session.roots().elsewhere().map(Path::to_owned),
            partition: options.selection.partition,
            devices: session.legs.iter().map(Leg::name).collect(),
            commit: session.commit(),
            // Only for shards, because it reads all files that have changed.
            uncommitted: options.selection.partition.and_then(|_| session.uncommitted()),
            archived: session.source.archive().is_some(),
            mode: options.mode,
            levels: options.levels.explicit().clone(),
            origin: Some(RunOrigin::of(session)),
        }
    }

    pub(crate) fn levels(&self) -> Levels {
        Levels::new(self.levels.clone(), self.mode)
    }

    pub(crate) fn commit(&self) -> Option<&str> {
        self.commit.as_deref()
    }

    pub(crate) fn roots(&self) -> Roots<'_> {
        Roots::new(&self.workspace, self.baselines.as_deref())
    }
}

pub(crate) fn selected(session: &Session, legs: &[LegTests]) -> String {
    let options = &session.options;
    let chosen: Vec<_> = legs.iter().map(|tests| session.choose_all_parts(tests)).collect();
    let test = |runs: bool| {
        move |task| {
            let Task { package, binary, subject, leg, limits, .. }: &Task = task;
            let (binary, test, scaling) = (&binary.id, subject.name(), subject.scaling());
            SelectedTest { device: leg.name(), package, binary, test, runs, limits, scaling }
        }
    };
    let mut tests: Vec<SelectedTest<'_>> = Vec::new();
    for chosen in &chosen {
        tests.extend(chosen.run.iter().map(test(true)));
        tests.extend(chosen.ignored.iter().map(test(false)));
    }
    let levels = options.levels.explicit();
    let selected = Selected {
        tests,
        mode: options.mode,
        levels: levels.iter().map(|(code, level)| (code.name(), *level)).collect(),
        explain: options.scheduling.explain,
        threads: &options.rayon_threads,
    };
    let text = serde_json::to_string(&selected).expect("a selection has only text and numbers");
    format!("{:016x}", hash(&text))
}
