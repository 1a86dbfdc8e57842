//! The history of a workspace: the figures of each test at each commit, one line of JSON for each.

use memcheck_core::judgement::verdict::Status;
use memcheck_core::measurement::figures::Figures;
use memcheck_core::space::Space;
use serde::{Deserialize, Serialize};

use super::runs::TestId;

/// The version of an [`HistoryEntry`].
pub(crate) const VERSION: u32 = 1;

/// A test of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct HistoryEntry {
    /// [`VERSION`].
    pub(crate) version: u32,
    /// The time of the run, as RFC 3339 in UTC.
    pub(crate) time: String,
    /// The commit of the workspace, if it is in a repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) commit: Option<String>,
    /// A hash of `Cargo.lock`, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lock: Option<String>,
    /// The test.
    #[serde(flatten)]
    pub(crate) id: TestId,
    /// Its status.
    pub(crate) status: Status,
    /// The figures that a baseline keeps.
    pub(crate) figures: Figures,
}

/// The reason why a text is not a history.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub(crate) struct HistoryError {
    /// From 1.
    pub(crate) line: usize,
    why: String,
}

/// Reads the lines of a history.
///
/// # Errors
/// If a line is not an entry of this version.
pub(crate) fn parse(text: &str) -> Result<Vec<HistoryEntry>, HistoryError> {
    let lines = (1..).zip(text.lines()).filter(|(_, text)| !text.trim().is_empty());
    lines
        .map(|(line, text)| {
            let error = |why: String| HistoryError { line, why };
            let entry: HistoryEntry =
                serde_json::from_str(text).map_err(|why| error(why.to_string()))?;
            match entry.version {
                VERSION => Ok(entry),
                other => Err(error(format!("version {other} is not known"))),
            }
        })
        .collect()
}

/// The values of one figure of one test over time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FigureSeries<'a> {
    /// The test.
    pub(crate) id: &'a TestId,
    /// The memory space.
    pub(crate) space: Space,
    /// The entries that have the figure, with its value, in the order of the history.
    pub(crate) points: Vec<(&'a HistoryEntry, u64)>,
}

/// The series of a figure for each test that `is_named` accepts, by test and space.
pub(crate) fn series<'a>(
    entries: &'a [HistoryEntry],
    figure: &str,
    is_named: impl Fn(&TestId) -> bool,
) -> Vec<FigureSeries<'a>> {
    let mut all: Vec<FigureSeries<'a>> = Vec::new();
    for entry in entries.iter().filter(|entry| is_named(&entry.id)) {
        for (space, by_name) in &entry.figures.0 {
            let Some(&value) = by_name.get(figure) else { continue };
            let known = all.iter_mut().find(|it| *it.id == entry.id && it.space == *space);
            match known {
                Some(series) => series.points.push((entry, value)),
                None => {
                    let points = vec![(entry, value)];
                    all.push(FigureSeries { id: &entry.id, space: *space, points });
                }
            }
        }
    }
    all.sort_by(|one, other| (one.id, one.space).cmp(&(other.id, other.space)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(test: &str, commit: &str, peak: u64) -> HistoryEntry {
        let text = |text: &str| text.to_owned();
        HistoryEntry {
            version: VERSION,
            time: text("2026-11-23T06:00:00Z"),
            commit: Some(text(commit)),
            lock: None,
            id: TestId {
                package: text("app"),
                binary: text("app::mem"),
                test: text(test),
                device: text("cpu"),
            },
            status: Status::Passed,
            figures: Figures([(Space::Host, [(text("peak_allocated"), peak)].into())].into()),
        }
    }

    #[test]
    fn a_history_is_read_back_and_grouped_by_test() {
        let entries = [entry("a", "1", 8), entry("b", "1", 9), entry("a", "2", 16)];
        let lines = entries.iter().map(|entry| serde_json::to_string(entry).unwrap() + "\n");
        let read = parse(&lines.collect::<String>()).unwrap();
        assert_eq!(read, entries);
        let series = series(&read, "peak_allocated", |id| id.test == "a");
        assert_eq!(series.len(), 1);
        let values: Vec<u64> = series[0].points.iter().map(|(_, value)| *value).collect();
        assert_eq!((series[0].space, values), (Space::Host, vec![8, 16]));
        assert!(super::series(&read, "no_figure", |_| true).is_empty());
    }

    #[test]
    fn a_line_that_is_not_an_entry_is_named() {
        let good = serde_json::to_string(&entry("a", "1", 8)).unwrap();
        let later =
            serde_json::to_string(&HistoryEntry { version: 2, ..entry("a", "1", 8) }).unwrap();
        assert_eq!(parse(&format!("{good}\n\n{{\n")).unwrap_err().line, 3);
        let error = parse(&format!("{good}\n{later}\n")).unwrap_err();
        assert_eq!(error.to_string(), "line 2: version 2 is not known");
        assert_eq!(parse("\n"), Ok(Vec::new()));
    }
}
