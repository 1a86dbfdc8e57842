//! Looks up the names of the call stacks in reports, which test processes leave as addresses: the
//! command is optimized, and can keep the tables of an executable for all tests. Records are judged
//! only after it, because places with equal names are joined, and the rules look at functions.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use memcheck_core::input;
use memcheck_core::judgement::baseline::{Baseline, Figures, Holders};
use memcheck_core::judgement::snapshot::{SnapshotParts, remove_pending, replace_pending};
use memcheck_core::judgement::{blame, verdict};
use memcheck_core::measurement::record::Record;
use memcheck_core::wire::protocol::Report;
use memcheck_symbols::Symbols;

use crate::invocation::options::Levels;
use crate::system::binary::Binary;

/// Shared by all workers.
#[derive(Debug, Default)]
pub(super) struct Names(Mutex<HashMap<PathBuf, Symbols>>);

impl Names {
    /// A report that its process has already judged does not change.
    pub(super) fn complete(&self, report: &mut Report, executable: &Binary, levels: &Levels) {
        let unresolved = report.unresolved.take();
        let record = &mut report.record;
        let is_attributed = unresolved.is_some();
        if !is_attributed && !record.has_unnamed_lines() {
            return;
        }
        {
            let mut executables = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let symbols = executables
                .entry(executable.path().to_owned())
                .or_insert_with(|| Symbols::open(&executable.readable_path()));
            if let Some(unresolved) = unresolved {
                record.attribute(*unresolved, |call| symbols.frames(call));
                blame::note_once(record);
            }
            record.name_lines(|call| symbols.frames(call));
        }
        let level = |code| levels.of(code);
        let baseline = baseline(report);
        let record = &mut report.record;
        let mut findings = verdict::judge(record, &baseline, &record.limits, level).findings;
        findings.append(&mut report.verdict.findings);
        if let Some(pending) = report.pending.take() {
            let settled = if verdict::is_worth_keeping(&findings) {
                let holders = if is_attributed { add_holders(&pending, record) } else { Ok(()) };
                holders.map(|()| Some(pending))
            } else {
                remove_pending(&pending).map(|()| None)
            };
            match settled {
                Ok(pending) => report.pending = pending,
                Err(error) => findings.push(verdict::unwritten("snapshot", error)),
            }
        }
        report.verdict = verdict::conclude(findings, level);
    }
}

pub(super) fn baseline(report: &Report) -> Baseline {
    match &report.snapshot {
        Some(path) => Baseline::from_file(input::read_text(path, input::SNAPSHOT)),
        None => Baseline::Off,
    }
}

/// The test process could not write the holders, because they had no names.
fn add_holders(pending: &Path, record: &Record) -> io::Result<()> {
    let text = input::read_text(pending, input::SNAPSHOT)?;
    let parts = SnapshotParts::of(&text).map_err(io::Error::other)?;
    let body = Figures::of(record).to_yaml(&Holders::of(record));
    replace_pending(pending, &parts.with_body(&body))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use memcheck_core::judgement::finding::Code;
    use memcheck_core::judgement::verdict::Status;
    use memcheck_core::measurement::attribution::{
        Attribution, Holder, HolderKind, Peak, Place, Unresolved,
    };
    use memcheck_core::measurement::record::Outcome;
    use memcheck_core::measurement::stack::Sources;
    use memcheck_core::space::Space;

    use super::*;
    use crate::discovery::task::example;
    use crate::invocation::options::Mode;

    fn report(pending: &Path) -> Report {
        let place = Place {
            space: Space::Host,
            stack: 0,
            scope: "model".to_owned(),
            operation: None,
            tensor: None,
            calls: 1,
            bytes: 64,
            last_calls: 1,
            last_bytes: 64,
            last: 0,
        };
        let holders = vec![Holder { place: 0, kind: HolderKind::Setup, bytes: 64, count: 1 }];
        let attribution = Attribution {
            places: vec![place],
            peaks: [(Space::Host, Peak { bytes: 64, holders, ..Peak::default() })].into(),
            ..Attribution::default()
        };
        let unresolved =
            Unresolved { sources: Sources::default(), calls: vec![Vec::new()], attribution };
        let mut report: Report = serde_json::from_value(example::report()).unwrap();
        let spaces = &mut report.record.spaces;
        spaces.get_mut(&Space::Host).unwrap().metrics.peak_allocated = 64;
        let figures = Figures::of(&report.record).to_yaml(&Holders::default());
        let text = format!("---\nsource: tests/mem.rs\n---\n{figures}\n");
        std::fs::write(pending, text).unwrap();
        let (unresolved, pending) = (Some(Box::new(unresolved)), Some(pending.to_owned()));
        Report { unresolved, pending, ..report }
    }

    fn complete(report: &mut Report) {
        let levels = Levels::new(BTreeMap::new(), Mode::Local);
        let binary = Binary::new("app::mem".to_owned(), 0, "/nowhere".into(), Vec::new());
        Names::default().complete(report, &binary, &levels);
        assert_eq!(report.unresolved, None);
        assert!(report.record.attribution.is_some());
    }

    #[test]
    fn a_pending_snapshot_gets_the_holders_once_they_have_names() {
        let folder = tempfile::tempdir().unwrap();
        let pending = folder.path().join("a.snap.new");
        let mut report = report(&pending);
        complete(&mut report);
        assert_eq!(report.verdict.status, Status::Passed, "{:?}", report.verdict);
        assert_eq!(report.pending.as_ref(), Some(&pending));
        let text = std::fs::read_to_string(&pending).unwrap();
        assert!(text.starts_with("---\nsource: tests/mem.rs\n---\nhost:\n"), "{text}");
        assert!(text.contains("  peak_holders:\n") && text.ends_with(" in model: 64\n"), "{text}");
    }

    #[test]
    fn a_pending_snapshot_is_removed_if_its_test_fails() {
        let folder = tempfile::tempdir().unwrap();
        let pending = folder.path().join("a.snap.new");
        let mut report = report(&pending);
        report.record.outcome = Outcome::Panicked { message: "no".to_owned() };
        complete(&mut report);
        assert_eq!(report.verdict.status, Status::Failed);
        assert!(report.pending.is_none() && !pending.exists());
    }

    #[test]
    fn a_pending_snapshot_that_cannot_be_completed_is_a_finding() {
        let folder = tempfile::tempdir().unwrap();
        let pending = folder.path().join("a.snap.new");
        let mut report = report(&pending);
        std::fs::write(&pending, "torn").unwrap();
        complete(&mut report);
        assert!(report.verdict.has(Code::NotMeasured), "{:?}", report.verdict);
        assert!(report.pending.is_none());
    }
}
