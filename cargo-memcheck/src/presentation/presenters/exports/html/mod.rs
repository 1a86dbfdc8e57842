//! A self-contained HTML page. Cards, failures and the table of tests are plain HTML; the script
//! renders the view of a test from its packed data when a reader opens it.
//!
//! ```text
//! outcome ──► overview  rows and failures as HTML
//!         ──► data      the view of one test ──► pack ──► <script type="application/json">
//! ```

mod assets;
mod change_table;
mod changes;
mod commands;
mod data;
mod ending;
mod explanation;
mod failure;
mod fragments;
mod markup;
mod overview;
mod pack;
mod proofs;
mod rise;
mod table;

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Context;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use memcheck_core::judgement::location::Roots;
use memcheck_core::judgement::verdict::Status;
use serde::Serialize;

use self::data::{LawPlot, Laws, TestData};
use self::failure::FailedTest;
use self::fragments::Fragments;
use self::proofs::Proofs;
use crate::build::leg::Leg;
use crate::discovery::task::{Task, TestOutcome};
use crate::execution::note::Note;
use crate::execution::proof::CheckedProof;
use crate::presentation::events::{Presenter, ReportWriter};
use crate::presentation::origin::RunOrigin;
use crate::presentation::presenters::exports::page_text::page_text;
use crate::presentation::presenters::summary;
use crate::presentation::tally::Tally;

pub(super) use assets::STYLE as REPORT_STYLE;
pub(super) use data::{FigureRow, Sources, Then, figures};
pub(super) use ending::failed_output;
#[cfg(test)]
pub(in crate::presentation::presenters) use pack::{readable, unpack, without_assets};
pub(super) use table::text_of_limit;

/// Stands for the data and the script while the rest of the page is escaped.
const SCRIPTS: &str = "<!-- scripts -->";

#[derive(Debug, Default)]
pub(crate) struct Html {
    sources: Sources,
    run: Option<RunOrigin>,
    devices: Vec<String>,
    tests: usize,
    fragments: Fragments,
    /// The rows of each test executable, in the order of its first test.
    groups: Vec<(String, Vec<Markup>)>,
    /// Up to [`overview::MOST_FAILURES`] of each kind.
    failures: Vec<FailedTest>,
    all_failures: usize,
    packed: Vec<anyhow::Result<String>>,
    laws: Laws,
    codes: BTreeSet<String>,
    notes: Vec<String>,
    counts: String,
    took: Duration,
    cards: Markup,
    cut_short: Vec<String>,
    proofs: Proofs,
}

/// The data that belongs to several tests.
#[derive(Debug, Serialize)]
struct RunData {
    laws: Vec<LawPlot>,
    /// The address of a line of the sources, with `{file}` and `{line}`.
    lines: Option<String>,
}

impl Html {
    /// The page shows lines of the workspace, and compares with its baselines.
    pub(crate) fn new(roots: Roots<'_>) -> Self {
        Self { sources: Sources::new(roots), ..Self::default() }
    }

    fn add_row(&mut self, binary: &str, row: Markup) {
        // The tests of one executable follow one another, except on another device.
        match self.groups.iter_mut().rfind(|(name, _)| name == binary) {
            Some((_, rows)) => rows.push(row),
            None => self.groups.push((binary.to_owned(), vec![row])),
        }
    }

    fn add_failure(&mut self, fragment: &str, task: &Task, outcome: &TestOutcome) {
        self.all_failures += 1;
        let kind = failure::kind(outcome);
        let of_kind = self.failures.iter().filter(|failed| failed.kind == kind);
        if of_kind.count() == overview::MOST_FAILURES {
            return;
        }
        let link = failure::open(self.tests, fragment, task);
        self.failures.push(failure::failure(&link, task, outcome, &self.sources));
    }
}

impl Presenter for Html {
    fn run_started(&mut self, run: &RunOrigin) {
        self.sources.link_to_web(run);
        self.run = Some(run.clone());
    }

    fn leg_started(&mut self, leg: &Leg, _tests: usize) {
        self.devices.push(leg.name());
        self.proofs.add_leg(leg);
    }

    fn proof(&mut self, leg: &Leg, proof: &CheckedProof) {
        self.proofs.add(leg, proof);
    }

    fn test_finished(&mut self, task: &Task, outcome: &TestOutcome) {
        self.proofs.add_canary(outcome);
        let then = Then::read(outcome, &self.sources);
        let number = self.tests;
        let fragment = self.fragments.add(task);
        let link = markup::link(number, &fragment, &markup::breakable(task.name()));
        self.add_row(&task.binary.id, table::row(&link, task, outcome, &then));
        if !matches!(outcome.verdict.status, Status::Passed | Status::Ignored) {
            self.add_failure(&fragment, task, outcome);
        }
        let status = markup::status_text(outcome.verdict.status);
        let data = TestData::new(task, outcome, (status, &then), &self.sources);
        self.packed.push(pack::pack(&data));
        self.laws.add(number, task, outcome);
        for finding in &outcome.verdict.findings {
            self.codes.insert(finding.code.to_string());
            self.codes.extend(finding.cause.as_ref().map(|cause| cause.code.clone()));
        }
        self.tests += 1;
    }

    fn note(&mut self, note: &Note) {
        self.notes.push(format!("{}: {}", note.finding.code, note.finding.message));
    }

    fn finished(&mut self, tally: &Tally, _exit_code: u8) {
        self.counts = summary::counts(tally);
        self.cards = overview::cards(tally);
        self.took = tally.took;
        self.cut_short = summary::cut_short(tally);
        self.notes.extend(summary::repeated(tally));
    }
}

impl ReportWriter for Html {
    fn link_to_editor(&mut self, template: &str) {
        self.sources.link_to_editor(template);
    }

    fn text(&self) -> anyhow::Result<Vec<u8>> {
        let packed: Result<Vec<&String>, _> = self.packed.iter().map(Result::as_ref).collect();
        let packed = packed.map_err(|error| anyhow::anyhow!("{error:#}"))?;
        let run = pack::pack(&RunData {
            laws: self.laws.plots(),
            lines: self.sources.links().template().map(str::to_owned),
        })?;
        let scripts = html! {
            (data_script("run", &run))
            @for (number, packed) in packed.into_iter().enumerate() {
                (data_script(&format!("d{number}"), packed))
            }
        };
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content=(assets::policy());
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { "Memory tests: " (self.counts) }
                    style { (PreEscaped(assets::STYLE)) }
                }
                body {
                    a.skip href="#main" { "Skip to the tests" }
                    header.top { (self.header()) }
                    main #main tabindex="-1" {
                        section #overview aria-label="Overview" { (self.overview()) }
                        section #view aria-label="Test" hidden {}
                    }
                    (explanation::templates(self.codes.iter().map(String::as_str)))
                    (PreEscaped(SCRIPTS))
                }
            }
        };
        // The data and the script have no text of a test, and must not be changed.
        let page = page_text(&page);
        let (before, after) = page.rsplit_once(SCRIPTS).context("the page has no scripts")?;
        let script = html! { script { (PreEscaped(assets::SCRIPT)) } };
        Ok([before, &scripts.into_string(), &script.into_string(), after].concat().into_bytes())
    }
}

fn data_script(id: &str, packed: &str) -> Markup {
    html! { script type="application/json" id=(id) { (PreEscaped(packed)) } }
}

impl Html {
    fn header(&self) -> Markup {
        html! {
            h1 { "Memory tests" @if let Some(run) = &self.run { " of " (run.project) } }
            @if let Some(run) = &self.run { (overview::origin(run, &self.devices, self.took)) }
        }
    }

    fn overview(&self) -> Markup {
        let failures = &self.failures;
        html! {
            @if !self.cut_short.is_empty() {
                pre.alert role="alert" { @for line in &self.cut_short { (markup::prose(line)) "\n" } }
            }
            (self.cards)
            @if !self.notes.is_empty() { ul.notes { @for note in &self.notes { li { (markup::prose(note)) } } } }
            @if !failures.is_empty() {
                h2 { "Needs attention" }
                (overview::failures(failures, self.all_failures))
            }
            @if !self.groups.is_empty() {
                h2 { "Tests" }
                noscript { p { "The view of a test needs JavaScript. The report loads no other file." } }
                (table::table(&html! {
                    @for (binary, rows) in &self.groups { (table::group(binary, rows)) }
                }))
            }
            (self.proofs.section())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use memcheck_core::judgement::finding::{Code, Finding};
    use memcheck_core::measurement::attribution::{Lifetime, MOST_BLOCKS};
    use memcheck_core::measurement::stack::{Passage, Stack};
    use memcheck_core::space::Space;

    use super::*;
    use crate::discovery::task::example::task;
    use crate::presentation::origin;
    use crate::presentation::presenters::example::leaky;

    fn page(outcome: &TestOutcome) -> String {
        let mut html = Html::default();
        html.test_finished(&task(), outcome);
        html.finished(&Tally { failed: 1, ..Tally::default() }, 100);
        String::from_utf8(html.text().unwrap()).unwrap().replace('\u{a0}', " ")
    }

    #[test]
    fn the_first_page_shows_the_failure_with_line_cause_remedy_and_command() {
        let page = page(&leaky());
        for part in [
            "<span class=\"code\">leak</span> host grows by 2.00 MiB per iteration (limit 1.00 MiB)</p>",
            "<strong>allocated at: </strong><code>src/model.rs:20</code>",
            "<strong>cause: </strong>a kept tensor holds the graph that computed it<br>",
            "<strong>remedy: </strong>in the line that keeps the tensor, and after the backward pass, keep its <code>detach()</code> or",
            "cargo memcheck profile -p app --test mem a::b --exact",
            "<template id=\"page-graph-kept\">",
            "<template id=\"page-leak\">",
            "<li class=\"card\" data-status=\"failed\" data-count=\"1\">",
            "<td class=\"n\" data-label=\"peak\" data-value=\"27262976\" title=\"27,262,976 B (26.0 MiB)\">26.0 MiB</td>",
        ] {
            assert!(page.contains(part), "`{part}` is not in\n{page}");
        }
        for foreign in ["http:", "https:", " src=", "<link"] {
            let readable = readable(&page);
            assert!(!readable.contains(foreign), "`{foreign}` is in\n{readable}");
        }
    }

    #[test]
    fn a_regression_is_below_the_leak_that_causes_it() {
        let with = |space| {
            let mut outcome = leaky();
            let higher =
                Finding { space: Some(space), ..Finding::new(Code::PeakRegression, "higher") };
            outcome.verdict.findings.push(higher);
            page(&outcome)
        };
        let also = "<p>also <span class=\"code\">peak-regression</span> higher</p>";
        let page = with(Space::Host);
        assert!(page.contains(also), "{page}");
        let findings = &unpack(&page)[1]["findings"];
        let own = leaky().verdict.findings.len();
        assert_eq!(findings.as_array().unwrap().len(), own);
        assert_eq!(findings[0]["consequences"][0]["code"], "peak-regression");
        let of_gpu = with(Space::Cuda(0));
        assert!(!of_gpu.contains(also), "the leak is in another space");
        assert_eq!(unpack(&of_gpu)[1]["findings"].as_array().unwrap().len(), own + 1);
    }

    #[test]
    fn lines_refer_to_the_commit_or_to_the_editor_that_is_named() {
        let page = |editor: Option<&str>| {
            let mut html = Html::new(Roots::new(Path::new("/w"), None));
            editor.into_iter().for_each(|editor| html.link_to_editor(editor));
            html.run_started(&origin::example());
            html.test_finished(&task(), &leaky());
            String::from_utf8(html.text().unwrap()).unwrap()
        };
        let linked = |page: &str, address: &str| {
            let link = format!("<a href=\"{address}\"><code>src/model.rs:20</code></a>");
            assert!(readable(page).contains(&link), "{link} is not in\n{}", readable(page));
        };
        let web = page(None);
        linked(&web, "https://github.com/o/n/blob/0123456/src/model.rs#L20");
        let template = "https://github.com/o/n/blob/0123456/{file}#L{line}";
        assert_eq!(unpack(&web)[0]["lines"], template);
        let editor = page(Some("vscode://file{path}:{line}"));
        linked(&editor, "vscode://file/w/src/model.rs:20");
        assert!(!readable(&editor).contains("github.com"), "no link to the web");
    }

    #[test]
    fn a_panic_has_its_line_if_that_is_in_the_workspace() {
        let workspace = tempfile::tempdir().unwrap();
        std::fs::write(workspace.path().join("a.rs"), "first\n    second.unwrap();\n").unwrap();
        let page = |place: &str| {
            let mut outcome = leaky();
            outcome.verdict.findings = vec![Finding::new(Code::TestFailed, "the body panicked")];
            outcome.output.stderr = format!("thread 'a' panicked at {place}:5:\nwhy\n");
            let mut html = Html::new(Roots::new(workspace.path(), None));
            html.test_finished(&task(), &outcome);
            readable(&String::from_utf8(html.text().unwrap()).unwrap())
        };
        let line = "<strong>line: </strong><code>a.rs:2</code> <code class=\"source\" tabindex=\"0\">second.unwrap();</code>";
        let inside = page("a.rs:2");
        assert!(inside.contains(line), "{inside}");
        assert!(!page("/rustc/library/core/src/option.rs:2").contains("line: "));
    }

    #[test]
    fn the_data_of_a_test_has_its_blocks_holders_and_survivors() {
        let data = unpack(&page(&leaky()));
        let test = &data[1];
        assert_eq!(test["name"], "app::mem a::b");
        let held = &test["spaces"][0]["held"];
        assert_eq!(
            (&held["peak"], held["lifetimes"]["born"][0].as_u64()),
            (&(26 << 20).into(), Some(1))
        );
        assert_eq!(held["lifetimes"]["bytes"].as_array().unwrap().len(), 13);
        assert_eq!(held["survivors"][0]["note"], "steady, 2,097,152 B (2.00 MiB) per iteration");
        assert_eq!(held["holders"][0]["kind"], "kept from earlier iterations");
        let place = &test["tree"]["places"][held["holders"][0]["place"].as_u64().unwrap() as usize];
        assert_eq!(place["label"], "matmul [512,1024] f32 in model.head");
        assert_eq!(test["hint"], "no line tables");
        assert_eq!(test["spaces"][0]["tables"][2]["by"], "scope");
    }

    #[test]
    fn a_survivor_that_only_the_longer_run_has_says_so_and_a_buffer_of_a_list_has_that_name() {
        let mut outcome = leaky();
        let record = &mut outcome.report.as_mut().unwrap().record;
        let mut longer = record.attribution.clone().unwrap();
        let buffer = longer.stacks[1].frames.last().unwrap().clone();
        let through = vec![Passage::List];
        let mut list = longer.survivors[0].clone();
        list.stack = longer.stacks.len();
        (list.tensors, list.scope) = (Vec::new(), String::new());
        longer.stacks.push(Stack { frames: vec![buffer.clone()], through, ..Stack::default() });
        let mut other = list.clone();
        other.stack = longer.stacks.len();
        longer.stacks.push(Stack { frames: vec![buffer; 2], ..Stack::default() });
        longer.survivors.extend([list, other]);
        record.longer = Some(longer);
        let data = unpack(&page(&outcome));
        let survivors = data[1]["spaces"][0]["held"]["survivors"].as_array().unwrap();
        let shown = survivors.iter().map(|of| (of["label"].as_str().unwrap(), &of["longer"]));
        let expected = [
            ("matmul [512,1024] f32 in model.head", &false.into()),
            ("buffer of a list", &true.into()),
            ("Model::forward", &true.into()),
        ];
        assert_eq!(shown.collect::<Vec<_>>(), expected);
        let notes: Vec<&str> = survivors.iter().map(|of| of["note"].as_str().unwrap()).collect();
        let is_marked = notes.iter().map(|note| note.ends_with("; in the longer run only"));
        assert_eq!(is_marked.collect::<Vec<_>>(), [false, true, true], "{notes:?}");
    }

    /// The blocks differ as if at random, so that they are hard to compress.
    #[test]
    fn a_million_events_fit_into_eight_megabytes() {
        let mut outcome = leaky();
        let attribution = outcome.report.as_mut().unwrap().record.attribution.as_mut().unwrap();
        let lifetimes =
            attribution.peaks.get_mut(&Space::Host).unwrap().lifetimes.as_mut().unwrap();
        let mut state = 1u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        let life = |number: usize| {
            let born = 20 * number as u64 + random(20);
            let died = Some(born + 1 + random(100_000));
            Lifetime { place: number % 2, born, died, bytes: random(1 << 30) }
        };
        lifetimes.blocks = (0..MOST_BLOCKS).map(life).collect();
        lifetimes.events = 1_000_000;
        let page = page(&outcome);
        assert!(page.len() < 8_000_000, "{}", page.len());
        let blocks = &unpack(&page)[1]["spaces"][0]["held"]["lifetimes"];
        assert_eq!(blocks["bytes"].as_array().unwrap().len(), MOST_BLOCKS);
    }

    #[test]
    fn a_test_without_call_stacks_has_its_iterations() {
        let mut counted = leaky();
        counted.report.as_mut().unwrap().record.attribution = None;
        let data = unpack(&page(&counted));
        let space = &data[1]["spaces"][0];
        assert_eq!(space["iterations"]["allocated"].as_array().unwrap().len(), 10);
        assert!(space["held"].is_null());
    }

    #[test]
    fn a_test_without_a_record_has_no_figures() {
        let page = page(&TestOutcome::ignored());
        assert!(page.contains(
            "<td class=\"n\" data-value=\"-1\"><span class=\"none\">\u{2014}</span></td>"
        ));
        assert!(!page.contains("0 B"), "{page}");
    }

    #[test]
    fn failures_beyond_the_first_hundred_are_in_the_table_and_memory_is_among_the_first() {
        let mut html = Html::default();
        let mut crashed = leaky();
        crashed.verdict.findings = vec![Finding::new(Code::Crashed, "SIGABRT")];
        for outcome in std::iter::repeat_n(&crashed, 101).chain([&leaky(), &leaky()]) {
            html.test_finished(&task(), outcome);
        }
        let page = String::from_utf8(html.text().unwrap()).unwrap();
        assert_eq!(page.matches("<details class=\"failure failed\"").count(), 100);
        assert_eq!(page.matches("<tr data-status=\"failed\"").count(), 103);
        assert!(page.contains("Leaks <span class=\"muted\">2 tests</span>"));
        assert!(page.contains("Crashes, panics and errors <span class=\"muted\">98 tests</span>"));
        assert!(page.contains("3 more in the table"));
    }
}
