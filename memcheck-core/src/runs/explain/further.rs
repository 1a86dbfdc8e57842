//! The further runs of one test, whoever starts its processes.

use super::{Explain, Run, Stage};
use crate::judgement::baseline::Baseline;
use crate::judgement::finding::{Code, Finding, Level};
use crate::judgement::verdict::conclude;
use crate::runs::process::Judged;
use crate::wire::protocol::Report;

/// A further run that was asked for.
#[derive(Debug)]
pub enum Further {
    /// It ended with this report, or without one.
    Ended(Option<Box<Report>>),
    /// It was not run. The figures of the runs before stay.
    Skipped,
}

/// Runs the needed `stages` of a test and judges all runs together; `run` starts a process.
pub fn further(
    mut judged: Judged,
    explain: Explain,
    stages: &[Stage],
    mut run: impl FnMut(Stage, Run) -> Further,
    baseline: impl Fn(&Report) -> Baseline,
    level: impl Fn(Code) -> Level,
) -> Judged {
    for stage in stages {
        let Some(report) = judged.report.take() else { return judged };
        let asked = stage.run(explain, &report);
        let Some(Further::Ended(second)) = asked.map(|asked| run(*stage, asked)) else {
            judged.report = Some(report);
            continue;
        };
        let baseline = baseline(&report);
        judged = concluded(
            judged,
            stage.merge(report, second.map(|second| *second), &baseline, &level),
            &level,
        );
    }
    judged
}

/// The verdict of a test with the report that several of its runs have given.
pub fn concluded(first: Judged, mut report: Report, level: impl Fn(Code) -> Level) -> Judged {
    // A single run wrote the pending snapshot, and other runs measured other figures.
    let unstable = report.verdict.has(Code::Unstable);
    let obsolete = report.pending.take_if(|_| unstable).or(first.obsolete);
    // The report does not contain the end of the first process.
    let of_process = |finding: &Finding| matches!(finding.code, Code::Crashed | Code::TimedOut);
    let mut findings = first.verdict.findings;
    findings.retain(of_process);
    findings.extend(report.verdict.findings.iter().filter(|found| !of_process(found)).cloned());
    Judged { verdict: conclude(findings, level), report: Some(report), obsolete }
}
