//! A comparison of two runs as text, JSON, Markdown or a page.

mod html;
mod json;
mod markdown;
mod text;
mod update;

use std::path::Path;

use memcheck_core::presentation::sizes;
use memcheck_core::presentation::text::grown;
use memcheck_core::size::{Size, counted, exact};

use crate::comparison::runs::{ChangedTest, Comparison, FailingTest, FigureChange, TestId};

pub(crate) use json::print as print_json;
pub(super) use text::changed as changed_lines;
pub(crate) use text::print as print_text;
pub(crate) use update::UpdateReport;

use crate::invocation::values::{ExportKind, ReportKind};
use crate::presentation::presenters::reports::{ReportError, replace};
use crate::system::error::Failure;

/// One of the two runs.
#[derive(Debug, Clone)]
pub(crate) struct Side {
    /// The text of the command line, or `the working tree`.
    pub(crate) name: String,
    pub(crate) commit: Option<String>,
    pub(crate) tests: usize,
}

impl Side {
    /// `main (1a2b3c4d5e), 286 tests`.
    fn described(&self) -> String {
        let short = |commit: &String| format!(" ({})", commit.get(..10).unwrap_or(commit));
        let commit = self.commit.as_ref().map(short).unwrap_or_default();
        format!("{}{commit}, {}", self.name, counted(self.tests as u64, "test", "tests"))
    }
}

#[derive(Debug, Clone)]
pub(crate) struct ComparedRuns {
    pub(crate) base: Side,
    pub(crate) head: Side,
    /// The update of dependencies that is the only difference between the sides.
    pub(crate) update: Option<UpdateReport>,
    pub(crate) comparison: Comparison,
}

impl ComparedRuns {
    /// The runs that were compared. None if an update changes nothing, because then nothing runs.
    fn sides(&self) -> Vec<(&'static str, String)> {
        if self.unchanged_update().is_some() {
            return Vec::new();
        }
        vec![("base", self.base.described()), ("head", self.head.described())]
    }

    fn unchanged_update(&self) -> Option<&UpdateReport> {
        self.update.as_ref().filter(|update| update.is_empty())
    }

    /// `2 tests changed (1 worse), 1 new (1 fails), 3 removed, 282 unchanged (2 fail in both)`.
    fn counts(&self) -> String {
        if let Some(update) = self.unchanged_update() {
            let (base, typed) = (&self.base.name, update.described());
            return format!("{base} with {typed}: nothing changes, because Cargo.lock is the same");
        }
        let Comparison { changed, added, removed, unchanged, failing } = &self.comparison;
        let worse = match changed.iter().filter(|test| test.is_worse()).count() {
            0 => String::new(),
            worse => format!(" ({worse} worse)"),
        };
        let fail = |new: bool, end: &str| match failing.iter().filter(|it| it.new == new).count() {
            0 => String::new(),
            count => format!(" ({}{end})", counted(count as u64, "fails", "fail")),
        };
        let mut parts =
            vec![format!("{} changed{worse}", counted(changed.len() as u64, "test", "tests"))];
        for (count, word) in
            [(added.len(), format!("new{}", fail(true, ""))), (removed.len(), "removed".to_owned())]
        {
            if count > 0 {
                parts.push(format!("{} {word}", exact(count as u64)));
            }
        }
        parts.push(format!("{} unchanged{}", exact(*unchanged as u64), fail(false, " in both")));
        parts.join(", ")
    }

    /// The tests whose figures are not compared, in groups: `new`, `removed` and `fails in both`. A test
    /// that fails has its findings and their line.
    fn listed(&self) -> Vec<(&'static str, Vec<ListedTest<'_>>)> {
        let Comparison { added, removed, failing, .. } = &self.comparison;
        let failing_test = |test: &FailingTest| {
            let codes: Vec<&str> = test.findings.iter().map(|code| code.name()).collect();
            let at = test.at.as_ref().map(|at| format!(" at {at}")).unwrap_or_default();
            format!("{}{at}", codes.join(", "))
        };
        let new = added.iter().map(|id| {
            let failure = failing.iter().find(|test| test.id == *id);
            ListedTest { id, failure: failure.map(|it| format!("fails with {}", failing_test(it))) }
        });
        let both = failing.iter().filter(|test| !test.new);
        let groups = [
            ("new", new.collect::<Vec<_>>()),
            ("removed", removed.iter().map(|id| ListedTest { id, failure: None }).collect()),
            (
                "fails in both",
                both.map(|it| ListedTest { id: &it.id, failure: Some(failing_test(it)) }).collect(),
            ),
        ];
        groups.into_iter().filter(|(_, tests)| !tests.is_empty()).collect()
    }

    /// Writes each report to its path.
    pub(crate) fn write(&self, reports: &[(ComparisonReport, &Path)]) -> Result<(), Failure> {
        for (report, path) in reports {
            let text = match report {
                ComparisonReport::Markdown => markdown::page(self),
                ComparisonReport::Html => html::page(self),
                ComparisonReport::Json => json::lines(self),
            };
            replace(path, text.as_bytes())
                .map_err(|why| ReportError((*path).to_owned(), why.to_string()))?;
        }
        Ok(())
    }
}

/// A test of a list, and how it fails.
#[derive(Debug)]
struct ListedTest<'a> {
    id: &'a TestId,
    failure: Option<String>,
}

/// A kind of report that a comparison can write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ComparisonReport {
    Markdown,
    Html,
    Json,
}

impl ComparisonReport {
    /// The kind, or `None` if only a run can write it.
    pub(crate) fn from_kind(kind: ReportKind) -> Option<Self> {
        match kind {
            ReportKind::Export(ExportKind::Markdown) => Some(Self::Markdown),
            ReportKind::Export(ExportKind::Html) => Some(Self::Html),
            ReportKind::Json => Some(Self::Json),
            ReportKind::Junit
            | ReportKind::Export(
                ExportKind::Badge
                | ExportKind::Csv
                | ExportKind::Bencher
                | ExportKind::Sarif
                | ExportKind::FlameGraph
                | ExportKind::Trace
                | ExportKind::Pprof
                | ExportKind::MemoryViz
                | ExportKind::MemoryVizJson,
            ) => None,
        }
    }
}

/// A word as the first one of a line.
fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// `app::mem mem::step (sim:h200)`.
pub(super) fn title(id: &TestId) -> String {
    format!("{} {} ({})", id.binary, id.test, id.device)
}

pub(super) fn value(change: &FigureChange, value: Option<u64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if change.is_bytes() => format!("{} B", exact(value)),
        Some(value) => exact(value),
    }
}

/// `+1.00 MiB (+33.3%)`.
pub(super) fn difference(change: &FigureChange) -> String {
    let (base, head) = match (change.base, change.head) {
        (Some(base), Some(head)) => (base, head),
        (None, _) => return "new".to_owned(),
        (_, None) => return "gone".to_owned(),
    };
    let sign = if head < base { '-' } else { '+' };
    let amount = match change.is_bytes() {
        true => Size(change.difference()).to_string(),
        false => exact(change.difference()),
    };
    let share = sizes::share(base, head).map(|share| format!(" ({share})"));
    format!("{sign}{amount}{}", share.unwrap_or_default())
}

/// The status if it differs, the findings that differ, the holders and the conditions.
fn reasons(test: &ChangedTest) -> Vec<String> {
    let mut lines = Vec::new();
    let names = |codes: &[memcheck_core::judgement::finding::Code]| -> String {
        codes.iter().map(|code| code.name()).collect::<Vec<_>>().join(", ")
    };
    if !test.new_findings.is_empty() {
        lines.push(format!("new finding: {}", names(&test.new_findings)));
    }
    if !test.gone_findings.is_empty() {
        lines.push(format!("no longer found: {}", names(&test.gone_findings)));
    }
    if let Some(conditions) = &test.conditions {
        lines.push(format!("the base was {conditions}"));
    }
    lines.extend(test.grown.iter().chain(&test.shrunk).map(grown));
    if test.lacks_call_sites {
        let why =
            "no lines: not both runs have call sites; `--explain always` gives them to all tests";
        lines.push(why.to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use memcheck_core::judgement::finding::{Code, GrownHolder};
    use memcheck_core::judgement::verdict::Status;
    use memcheck_core::space::Space;

    use super::*;
    use crate::execution::lock_file::PackageChange;

    fn id(test: &str) -> TestId {
        let (package, binary) = ("app".to_owned(), "app::mem".to_owned());
        TestId { package, binary, test: test.to_owned(), device: "cpu".to_owned() }
    }

    fn changed(test: &str, base: u64, head: u64) -> ChangedTest {
        let figure = |figure: &str, base, head| FigureChange {
            space: Space::Host,
            figure: figure.to_owned(),
            base,
            head,
        };
        ChangedTest {
            id: id(test),
            base: Status::Passed,
            head: Status::Failed,
            figures: vec![
                figure("peak_allocated", Some(base), Some(head)),
                figure("allocations", Some(10), None),
            ],
            grown: vec![GrownHolder {
                holder: "softmax [8,8] f32".to_owned(),
                place: Some("src/model.rs:42".to_owned()),
                now: head.saturating_sub(base),
                ..GrownHolder::default()
            }],
            shrunk: Vec::new(),
            new_findings: vec![Code::Leak],
            gone_findings: Vec::new(),
            conditions: None,
            lacks_call_sites: false,
        }
    }

    fn compared(tests: Vec<ChangedTest>) -> ComparedRuns {
        let side = |name: &str, commit: Option<&str>| Side {
            name: name.to_owned(),
            commit: commit.map(str::to_owned),
            tests: 1,
        };
        let failing = |(test, new)| FailingTest {
            id: id(test),
            new,
            findings: vec![Code::Leak],
            at: Some("src/a.rs:7".to_owned()),
        };
        let comparison = Comparison {
            changed: tests,
            added: vec![id("new|`one`")],
            removed: Vec::new(),
            unchanged: 1_283,
            failing: [("new|`one`", true), ("leaks", false)].map(failing).into(),
        };
        let commit = Some("0123456789abcdef");
        ComparedRuns {
            base: side("main", commit),
            head: side("the working tree", None),
            update: None,
            comparison,
        }
    }

    #[test]
    fn the_text_has_figures_lines_and_counts() {
        let shown = text::lines(&compared(vec![changed("step", 1 << 20, 3 << 20)])).join("\n");
        let shown = crate::system::escape::terminal(&shown);
        let shown = console::strip_ansi_codes(&shown);
        for expected in [
            "base: main (0123456789), 1 test",
            "head: the working tree, 1 test",
            "app::mem step (cpu)",
            "1,048,576 B",
            "+2.00 MiB (+200.0%)",
            "+2.00 MiB softmax [8,8] f32 at src/model.rs:42 (new at the peak)",
            "new finding: leak",
            "new: app::mem new|`one` (cpu): fails with leak at src/a.rs:7",
            "fails in both: app::mem leaks (cpu): leak at src/a.rs:7",
            "1 test changed (1 worse), 1 new (1 fails), 1,283 unchanged (1 fails in both)",
        ] {
            assert!(shown.contains(expected), "{expected}: {shown}");
        }
    }

    #[test]
    fn json_has_the_exact_figures() {
        let text = json::lines(&compared(vec![changed("step", 1, 3)]));
        let line: serde_json::Value = serde_json::from_str(text.trim_end()).unwrap();
        assert_eq!((&line["type"], &line["version"]), (&"comparison".into(), &1.into()));
        let test = &line["changed"][0];
        assert_eq!((&test["test"], &test["worse"]), (&"step".into(), &true.into()));
        assert_eq!(test["figures"][0]["head"], 3);
        assert_eq!((&line["unchanged"], &line["worse"]), (&1_283.into(), &2.into()));
        assert_eq!(line["failing"][1]["findings"], serde_json::json!(["leak"]));
        assert_eq!(line["base"]["commit"], "0123456789abcdef");
    }

    #[test]
    fn a_comment_fits_and_reports_how_many_tests_were_left_out() {
        let few = markdown::page(&compared(vec![changed("step", 1 << 20, 3 << 20)]));
        assert!(few.starts_with("<!-- memcheck compare -->\n## Memory: 1 test changed (1 worse)"));
        assert!(few.contains("**+2.00 MiB (+200.0%)**") && !few.contains("left out"), "{few}");
        assert!(few.contains("src/model.rs:42"), "{few}");
        assert!(few.contains("fails with leak at src/a.rs:7"), "{few}");
        assert!(
            few.contains("Fails in both: `app::mem` `leaks`: `leak at src/a.rs:7`.\n"),
            "{few}"
        );
        let name = "a_long_name_of_a_test_".repeat(20);
        let many: Vec<ChangedTest> =
            (0..500).map(|number| changed(&format!("{name}{number}"), 1, 500 - number)).collect();
        let page = markdown::page(&compared(many));
        assert!(page.chars().count() <= 65_536 && page.len() > 50_000, "{}", page.len());
        assert!(page.contains(&format!("{name}0`")) && !page.contains(&format!("{name}499`")));
        let shown = page.matches("<details>").count();
        assert!(page.contains(&format!("{} more changed tests are left out", 500 - shown)));
    }

    fn updated(requested: &[&str], along: &[&str]) -> ComparedRuns {
        let changes = |packages: &[&str]| -> Vec<PackageChange> {
            let change = |&package: &&str| PackageChange {
                package: package.to_owned(),
                from: Some("0.1.0".to_owned()),
                to: Some("0.2.0".to_owned()),
            };
            packages.iter().map(change).collect()
        };
        let (requested, along) = (changes(requested), changes(along));
        let update = UpdateReport { typed: vec!["pool@0.1.0".to_owned()], requested, along };
        ComparedRuns { update: Some(update), ..compared(vec![changed("step", 1, 2)]) }
    }

    #[test]
    fn each_form_names_the_packages_of_an_update() {
        let compared = updated(&["pool"], &["ri`ng", "<b>"]);
        let shown = text::lines(&compared).join("\n");
        assert!(shown.contains("\nupdated: pool 0.1.0 -> 0.2.0\nalso changed: ri`ng 0.1.0"));
        let line: serde_json::Value = serde_json::from_str(&json::lines(&compared)).unwrap();
        let expected = |package: &str, requested: bool| {
            serde_json::json!({
                "package": package, "from": "0.1.0", "to": "0.2.0", "requested": requested
            })
        };
        assert_eq!(line["updates"][0], expected("pool", true));
        assert_eq!(line["updates"][1], expected("ri`ng", false));
        let comment = markdown::page(&compared);
        assert!(comment.contains("- Updated: pool 0.1.0 → 0.2.0\n"), "{comment}");
        assert!(comment.contains("- Also changed: &#60;b&#62; 0.1.0 → 0.2.0\n"), "{comment}");
        let page = html::page(&compared);
        assert!(page.contains("Also changed: &lt;b&gt; 0.1.0 -&gt; 0.2.0"), "{page}");
    }

    #[test]
    fn a_long_update_leaves_out_packages_in_a_comment() {
        let comment = markdown::page(&updated(&["pool"], &["ring"; 99]));
        assert!(comment.contains("- and 50 more\n") && comment.contains("`step`"), "{comment}");
    }

    #[test]
    fn an_update_without_a_change_has_no_sides() {
        let compared = updated(&[], &[]);
        let nothing = "main with pool@0.1.0: nothing changes, because Cargo.lock is the same";
        assert!(compared.counts() == nothing && compared.sides().is_empty());
        let title = format!("## Memory: {}\n\n|", nothing.replace('@', "&#64;"));
        assert!(markdown::page(&compared).contains(&title));
        let line: serde_json::Value = serde_json::from_str(&json::lines(&compared)).unwrap();
        assert_eq!(line["updates"], serde_json::json!([]));
    }

    #[test]
    fn the_head_of_an_update_is_named_by_the_new_versions() {
        let named = |names: &[&str]| updated(names, &[]).update.unwrap().described();
        assert_eq!(named(&["pool", "ring"]), "pool 0.2.0 and ring 0.2.0");
        assert_eq!(named(&["a", "b", "c", "d"]), "4 updates");
        assert_eq!(named(&[]), "pool@0.1.0");
    }

    #[test]
    fn a_page_is_parsed_without_scripts() {
        let page = html::page(&compared(vec![changed("<script>x</script>", 1, 2)]));
        assert!(page.contains("&lt;script&gt;") && !page.contains("<script"), "{page}");
        assert!(page.contains("1 test changed"), "{page}");
    }

    #[test]
    fn a_difference_has_a_sign_a_unit_and_a_share() {
        let of = |figure: &str, base, head| {
            let (space, figure) = (Space::Host, figure.to_owned());
            difference(&FigureChange { space, figure, base, head })
        };
        assert_eq!(of("setup", Some(2_048), Some(1_024)), "-1.00 KiB (-50.0%)");
        assert_eq!(of("growth", Some(0), Some(8)), "+8 B");
        assert_eq!(of("allocations", Some(1_000), Some(3_000)), "+2,000 (+200.0%)");
        assert_eq!(
            (of("setup", None, Some(1)), of("setup", Some(1), None)),
            ("new".into(), "gone".into())
        );
    }
}
