//! A profile as one JSON object. It has all rows, even if the table for people has fewer.

use memcheck_core::judgement::finding::Finding;
use memcheck_core::judgement::verdict::Status;
use memcheck_core::measurement::driver::Untracked;
use memcheck_core::presentation::profile::Profile;
use serde::Serialize;

use crate::discovery::task::{Task, TestOutcome, TestSubject};
use crate::presentation::presenters::json;
use crate::system::gpus::RanOn;

/// The version of the object.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct ProfileLine<'a> {
    #[serde(flatten)]
    head: json::ObjectHead<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    test: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<&'a str>,
    /// The device as requested.
    leg: String,
    /// The real GPU that the process ran on.
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu: Option<&'a RanOn>,
    status: Status,
    findings: &'a [Finding],
    /// The profiles of the spaces, the judged ones first. Empty if the process left no record.
    spaces: &'a [Profile],
    events: u64,
    /// The holders of device memory outside the driver's pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    untracked: Option<&'a Untracked>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
}

/// Prints the profile of a test or a program on one device.
pub(super) fn profile(task: &Task, outcome: &TestOutcome, spaces: &[Profile]) {
    let (test, program) = match &task.subject {
        TestSubject::Test(entry) => (Some(entry.name.as_str()), None),
        TestSubject::Program { name, .. } => (None, Some(name.as_str())),
    };
    let record = outcome.report.as_ref().map(|report| &report.record);
    let attribution = record.and_then(|record| record.attribution.as_ref());
    json::print(&ProfileLine {
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
    });
}
