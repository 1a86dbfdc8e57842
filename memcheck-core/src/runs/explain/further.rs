//! The further runs of one test, whoever starts its processes.

use super::{Explain, RunPlan, Stage};
use crate::judgement::baseline::Baseline;
use crate::judgement::finding::{Code, Finding, Level};
use crate::judgement::verdict::{self, conclude};
use crate::measurement::soak::Soaked;
use crate::runs::process_end::Judged;
use crate::wire::protocol::Report;

/// A further run that was asked for.
#[derive(Debug)]
pub enum Further {
    /// It ended with this report, or without one.
    Ended(Option<Box<Report>>),
    /// It ended without a report, with these findings.
    Lost(Vec<Finding>),
    /// It was not run. The figures of the runs before stay.
    Skipped,
}

/// Runs the needed `stages` of a test and judges all runs together; `run` starts a process.
pub fn further(
    mut judged: Judged,
    explain: Explain,
    stages: &[Stage],
    mut run: impl FnMut(Stage, RunPlan) -> Further,
    baseline: impl Fn(&Report) -> Baseline,
    level: impl Fn(Code) -> Level,
) -> Judged {
    let mut all_lost = Vec::new();
    for stage in stages {
        let Some(report) = judged.report.take() else { return judged };
        let asked = stage.run(explain, &report);
        let (second, lost) = match asked.map(|asked| run(*stage, asked)) {
            Some(Further::Ended(second)) => (second, Vec::new()),
            Some(Further::Lost(findings)) => (None, findings),
            Some(Further::Skipped) | None => {
                judged.report = Some(unsoaked(report, *stage));
                continue;
            }
        };
        let baseline = baseline(&report);
        judged = concluded(
            judged,
            stage.merge(report, second.map(|second| *second), &baseline, &level),
            &level,
        );
        if let Some(place) = place(*stage) {
            all_lost.extend(lost.into_iter().map(|finding| Finding {
                message: format!("{place}: {}", finding.message),
                ..finding
            }));
        }
    }
    if !all_lost.is_empty() {
        all_lost.extend(std::mem::take(&mut judged.verdict.findings));
        judged.verdict = conclude(all_lost, &level);
        // Figures of a test that failed must not be accepted.
        let pending = judged.report.as_mut().and_then(|report| report.pending.take());
        judged.obsolete = pending.or(judged.obsolete);
    }
    judged
}

/// The words for a run whose lost process fails the test; `None` if the run only explains another.
fn place(stage: Stage) -> Option<&'static str> {
    match stage {
        Stage::Soak(_) => Some("in the soak"),
        Stage::Decide => Some("in further iterations, which decide whether memory grows"),
        _ => None,
    }
}

/// A test that cannot be soaked has the reason in its record.
fn unsoaked(mut report: Report, stage: Stage) -> Report {
    if let (Stage::Soak(time), Some(reason)) = (stage, report.record.refuses_soak()) {
        report.record.soaked = Some(Soaked::refused(time, reason));
    }
    report
}

/// The verdict of a test with the report that several of its runs have given.
pub fn concluded(first: Judged, mut report: Report, level: impl Fn(Code) -> Level) -> Judged {
    // A single run wrote the pending snapshot, and other runs measured other figures, or more of
    // them.
    let unstable = report.verdict.has(Code::Unstable);
    let soaked = report.record.soaked.is_some();
    let failed = soaked && !verdict::is_worth_keeping(&report.verdict.findings);
    let obsolete = report.pending.take_if(|_| unstable || failed).or(first.obsolete);
    // The report does not contain the end of the first process.
    let of_process = |finding: &Finding| matches!(finding.code, Code::Crashed | Code::TimedOut);
    let mut findings = first.verdict.findings;
    findings.retain(of_process);
    findings.extend(report.verdict.findings.iter().filter(|found| !of_process(found)).cloned());
    Judged { verdict: conclude(findings, level), report: Some(report), obsolete }
}
