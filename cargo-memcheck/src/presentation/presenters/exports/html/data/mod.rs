//! The data of one test, from which the script renders its view. The field names are those that the
//! script reads (`cargo-memcheck/report/src`).

mod baseline;
mod finding;
mod laws;
mod sources;
mod space;
mod tables;
mod tree;

use memcheck_core::judgement::finding::Code;
use memcheck_core::measurement::record::Record;
use serde::Serialize;

use super::commands::{self, NextCommand};
use super::ending;
use crate::discovery::task::{Task, TestOutcome};
use crate::presentation::presenters::{driver_lines, findings, notes};

#[cfg(test)]
pub(super) use baseline::FigureLimit;
pub(in crate::presentation::presenters::exports) use baseline::{
    FigureRow, Then, figures, source_of_limit,
};
pub(super) use laws::{LawPlot, Laws};
pub(super) use sources::Snippet;
pub(in crate::presentation::presenters::exports) use sources::Sources;

/// One test on one device.
#[derive(Debug, Serialize)]
pub(super) struct TestData {
    name: String,
    test: String,
    device: String,
    status: &'static str,
    place: String,
    seconds: f64,
    findings: Vec<finding::FindingData>,
    commands: Vec<NextCommand>,
    figures: Vec<FigureRow>,
    spaces: Vec<space::SpaceData>,
    tree: tree::TreeData,
    snippets: Vec<sources::Snippet>,
    notes: Vec<String>,
    /// The output of a test that failed, without the lines that its findings have.
    output: Option<String>,
    /// All of it, if that is more.
    whole_output: Option<String>,
    driver: Option<DriverData>,
    hint: Option<String>,
}

/// The lines about the GPU, the driver, NVML and the process.
#[derive(Debug, Serialize)]
struct DriverData {
    title: &'static str,
    /// False if the test failed for another reason than its memory.
    matters: bool,
    lines: Vec<String>,
}

impl TestData {
    pub(super) fn new(
        task: &Task,
        outcome: &TestOutcome,
        (status, then): (&'static str, &Then),
        sources: &Sources,
    ) -> Self {
        let record = outcome.report.as_ref().map(|report| &report.record);
        let mut tree = tree::Tree::of(task.name());
        // The source of the lines of findings comes first.
        let findings = findings::folded(&outcome.verdict.findings).into_iter();
        let findings = findings.map(|folded| finding::FindingData::new(folded, outcome, &mut tree));
        let findings: Vec<finding::FindingData> = findings.collect();
        let spaces = record.map(|record| space::spaces(record, then, &mut tree));
        let places = tree.lines_of_program();
        let (output, whole_output) = output(outcome);
        let attribution = record.and_then(|record| record.attribution.as_ref());
        Self {
            name: format!("{} {}", task.binary.id, task.name()),
            test: task.name().to_owned(),
            device: task.leg.name(),
            status,
            place: format!("{}:{}", task.subject.file().display(), task.subject.line()),
            seconds: outcome.duration.as_secs_f64(),
            findings,
            commands: commands::next(task, outcome, &sources.baselines_flag()),
            figures: record.map(|record| figures(record, then)).unwrap_or_default(),
            spaces: spaces.unwrap_or_default(),
            tree: tree.finish(),
            snippets: sources.snippets(places),
            notes: notes::of(outcome),
            output,
            whole_output,
            driver: driver(outcome),
            hint: attribution.and_then(|attribution| attribution.hint.clone()),
        }
    }
}

/// The lines of the output that help, and the whole output if it has more lines.
fn output(outcome: &TestOutcome) -> (Option<String>, Option<String>) {
    let Some(all) = ending::failed_output(outcome) else { return (None, None) };
    let helpful = ending::output(outcome);
    let whole = (helpful != all).then(|| all.join("\n"));
    ((!helpful.is_empty()).then(|| helpful.join("\n")), whole)
}

fn driver(outcome: &TestOutcome) -> Option<DriverData> {
    let of_device = driver_lines::lines(outcome);
    let title = if of_device.is_empty() { "Memory of the process" } else { "Driver and NVML" };
    let lines: Vec<String> = of_device.into_iter().chain(driver_lines::process(outcome)).collect();
    let ended_otherwise = |code: Code| code.cut_it_short() && code != Code::DeviceFault;
    let matters = !outcome.verdict.findings.iter().any(|finding| ended_otherwise(finding.code));
    (!lines.is_empty()).then_some(DriverData { title, matters, lines })
}

/// The spaces that a reader should see: those that are judged, then those with call sites.
fn shown_spaces(record: &Record) -> Vec<memcheck_core::space::Space> {
    let mut spaces = record.judged.clone();
    let followed = record.attribution.iter().flat_map(|attribution| attribution.peaks.keys());
    spaces.extend(followed.filter(|space| !record.judged.contains(space)));
    spaces
}
