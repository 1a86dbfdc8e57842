//! insta's comparison of two snapshots, by a comparator of memcheck.

use std::io;
use std::path::Path;

use memcheck_core::input;
use memcheck_core::judgement::baseline::{self, Figures};
use memcheck_core::tolerance::Tolerance;

/// Snapshots are equal if their figures are within the tolerance.
#[derive(Clone)]
struct Within(Tolerance);

impl insta::Comparator for Within {
    fn matches(&self, reference: &insta::Snapshot, test: &insta::Snapshot) -> bool {
        let figures = |snapshot: &insta::Snapshot| {
            snapshot.as_text().and_then(|text| Figures::from_yaml(&text.to_string()).ok())
        };
        match (figures(reference), figures(test)) {
            (Some(then), Some(now)) => baseline::changes(&then, &now, self.0).is_empty(),
            _ => false,
        }
    }

    fn dyn_clone(&self) -> Box<dyn insta::Comparator> {
        Box::new(self.clone())
    }
}

/// insta reads snapshots only from files, so that both are written to `file`: the accepted one may
/// have been replaced by a file that must not be read.
pub(super) fn matches(
    accepted: &Path,
    new: &str,
    file: &Path,
    tolerance: Tolerance,
) -> io::Result<bool> {
    let Ok(accepted) = input::read_text(accepted, input::SNAPSHOT) else { return Ok(false) };
    let parse = |text: &str| -> io::Result<_> {
        std::fs::write(file, text)?;
        Ok(insta::Snapshot::from_file(file))
    };
    let comparator: &dyn insta::Comparator = &Within(tolerance);
    Ok(match (parse(&accepted)?, parse(new)?) {
        (Ok(accepted), Ok(new)) => comparator.matches(&accepted, &new),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use memcheck_core::judgement::baseline::Baseline;

    use super::*;

    #[test]
    fn insta_reads_only_text_that_was_read_with_a_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let figures = "growth: 0\n  peak_allocated: 0\n  retained: 0\n  setup: 0";
        let text = &format!("---\nsource: mem.rs\n---\nhost:\n  {figures}\n");
        let equal =
            |accepted: &str| matches(&path(accepted), text, &path("new.snap"), Tolerance::NONE);
        std::fs::write(path("a.snap"), text).unwrap();
        std::fs::write(path("b.snap"), text.replace("growth: 0", "growth: 1")).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink("/dev/zero", path("c.snap")).unwrap();
        #[cfg(not(unix))]
        std::fs::write(path("c.snap"), vec![0; 5 << 20]).unwrap();
        let all = ["a.snap", "b.snap", "c.snap"].map(|name| equal(name).unwrap());
        assert_eq!(all, [true, false, false]);
        let refused = super::super::load(&path("c.snap"));
        assert!(
            matches!(refused, Baseline::Corrupt(why) if why.contains("at most") || why.contains("the most is"))
        );
    }
}
