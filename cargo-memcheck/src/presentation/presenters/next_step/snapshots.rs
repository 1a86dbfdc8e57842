//! The pending snapshots of a test, and the commands that show or accept them.

use crate::discovery::task::TestOutcome;
use crate::invocation::printed::PrintedCommand;

/// The pending snapshots of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Snapshots {
    pub(super) names: Vec<String>,
    /// In a folder that CI uploads, so that a person has it elsewhere.
    pub(super) elsewhere: bool,
}

/// A command has at most so many names of snapshots.
#[cfg(feature = "exports")]
pub(super) const MOST_NAMES: usize = 8;

impl Snapshots {
    /// `None` if the test has no pending snapshot.
    pub(super) fn of(outcome: &TestOutcome) -> Option<Self> {
        let report = outcome.report.as_ref();
        let own = report.and_then(|report| Some((report.pending.as_ref()?, &report.snapshot)));
        let across = &outcome.across;
        let of_law = across.pending.as_ref().map(|pending| (pending, &across.snapshot));
        let all: Vec<_> = own.into_iter().chain(of_law).collect();
        let elsewhere = all.iter().any(|(pending, snapshot)| {
            snapshot.as_ref().is_some_and(|snapshot| snapshot.parent() != pending.parent())
        });
        let name = |pending: &std::path::Path| {
            let name = pending.file_name()?.to_string_lossy().into_owned();
            Some(name.strip_suffix(".new").map_or(name.clone(), str::to_owned))
        };
        let names: Vec<String> = all.iter().filter_map(|(pending, _)| name(pending)).collect();
        (!names.is_empty()).then_some(Self { names, elsewhere })
    }

    /// The snapshots of several tests; `None` if there are none.
    #[cfg(feature = "exports")]
    pub(in super::super) fn joined(all: &[Self]) -> Option<Self> {
        let names: Vec<String> = all.iter().flat_map(|it| it.names.iter().cloned()).collect();
        // The command without names is about all pending snapshots.
        let names = if names.len() > MOST_NAMES { Vec::new() } else { names };
        let elsewhere = all.iter().any(|it| it.elsewhere);
        (!all.is_empty()).then_some(Self { names, elsewhere })
    }

    /// The command that shows them.
    pub(in super::super) fn review(&self, baselines: &[String]) -> String {
        let command = match self.elsewhere {
            true => PrintedCommand::ReviewFetchedSnapshots,
            false => PrintedCommand::ReviewSnapshots,
        };
        command.of_snapshots(&self.names, self.flags(baselines))
    }

    pub(super) fn flags(&self, baselines: &[String]) -> Vec<String> {
        let from = ["--from", "DIR"].map(str::to_owned);
        from.into_iter().filter(|_| self.elsewhere).chain(baselines.iter().cloned()).collect()
    }
}
