//! A profile as one JSON object: every row, whatever is printed for people.

use memcheck_core::driver::Untracked;
use memcheck_core::finding::Finding;
use memcheck_core::profile::Profile;
use memcheck_core::protocol::Status;
use serde::Serialize;

use super::Subject;
use crate::gpus::RanOn;
use crate::present::json;
use crate::task::{Outcome, Task};

/// Version of the object.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    head: json::Head<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    test: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<&'a str>,
    /// The device as it was asked for.
    leg: String,
    /// The real GPU that it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu: Option<&'a RanOn>,
    status: Status,
    findings: &'a [Finding],
    /// A profile for each space, the judged ones first; empty where the process
    /// left no record.
    spaces: &'a [Profile],
    events: u64,
    /// What is held beyond the driver's pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    untracked: Option<&'a Untracked>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
}

/// Prints the profile of one test or program on one device.
pub(super) fn profile(subject: Subject, task: &Task, outcome: &Outcome, spaces: &[Profile]) {
    let name = task.entry.name.as_str();
    let record = outcome.report.as_ref().map(|report| &report.record);
    let attribution = record.and_then(|record| record.attribution.as_ref());
    json::print(&Line {
        head: json::Head::of("profile", VERSION, task),
        test: (subject == Subject::Test).then_some(name),
        program: (subject == Subject::Program).then_some(name),
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
