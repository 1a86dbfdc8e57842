//! A profile as one JSON object. It has all rows, even if the table for people has fewer.

use memcheck_core::judgement::finding::Finding;
use memcheck_core::judgement::verdict::Status;
use memcheck_core::measurement::driver::Untracked;
use memcheck_core::presentation::profile::Profile;
use serde::Serialize;

use crate::discovery::task::{Task, TestOutcome, TestSubject};
use crate::presentation::presenters::json;
use crate::system::gpus::RanOn;

const VERSION: u32 = 1;

#[derive(Serialize)]
pub(super) struct ProfileLine<'a> {
    #[serde(flatten)]
    head: json::ObjectHead<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    test: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<&'a str>,
    leg: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu: Option<&'a RanOn>,
    status: Status,
    findings: &'a [Finding],
    /// The judged ones first. Empty if the process left no record.
    spaces: &'a [Profile],
    events: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    untracked: Option<&'a Untracked>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
}

pub(super) fn profile(task: &Task, outcome: &TestOutcome, spaces: &[Profile]) {
    json::print(&line(task, outcome, spaces));
}

pub(super) fn line<'a>(
    task: &'a Task,
    outcome: &'a TestOutcome,
    spaces: &'a [Profile],
) -> ProfileLine<'a> {
    let (test, program) = match &task.subject {
        TestSubject::Test(entry) => (Some(entry.name.as_str()), None),
        TestSubject::Program { name, .. } => (None, Some(name.as_str())),
    };
    let record = outcome.report.as_ref().map(|report| &report.record);
    let attribution = record.and_then(|record| record.attribution.as_ref());
    ProfileLine {
        head: json::ObjectHead::of("profile", VERSION, task),
        test,
        program,
        leg: task.leg.name(),
        gpu: outcome.gpu.as_ref(),
        status: outcome.verdict.status,
        findings: &outcome.verdict.findings,
        spaces,
        events: attribution.map_or(0, |attribution| attribution.events),
        untracked: record.and_then(|record| record.driver.untracked.as_ref()),
        hint: attribution.and_then(|attribution| attribution.hint.as_deref()),
    }
}
