//! The report of a test process, with or without names of its call stacks.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use memcheck_core::judgement::baseline::{Baseline, Figures, Holders};
use memcheck_core::judgement::finding::Code;
use memcheck_core::judgement::{blame, verdict};
use memcheck_core::measurement::stack::Frame;
use memcheck_core::presentation::digest::Digest;
use memcheck_core::presentation::profile::{By, Profile, Sort};
use memcheck_core::runs::explain::Stage;
#[cfg(test)]
use memcheck_core::runs::process_end::Judged;
use memcheck_core::runs::process_end::{End, ExpectedTest, Written, judge};
use memcheck_core::wire::protocol::Report;

use super::results::check;
use crate::discovery::task::{TestOutcome, example};
use crate::presentation::presenters::every;
use crate::presentation::tally::Tally;
use crate::system::process::Output;

/// Judges the report, resolves its call stacks, profiles every space, and presents the outcome in
/// every form.
pub fn report(input: &[u8]) {
    let level = |code: Code| code.default_level(true);
    let nothing = || Err(std::io::ErrorKind::NotFound.into());
    let Ok(written) = Written::from_files(Ok(input.to_vec()), nothing) else { return };
    let Written::Report(report) = &written else { return };
    let (test, family) = (report.record.test.clone(), report.record.family);
    let end = End::Exited(ExitStatus::from_raw(0));
    let mut judged = judge(&end, written, ExpectedTest { test: &test, family }, level);
    if let Some(report) = &mut judged.report {
        complete(report);
        profile(report);
        judged.verdict = report.verdict.clone();
        let merged =
            Stage::Explain.merge(report.clone(), Some(report.clone()), &Baseline::Off, level);
        let merged = Stage::Decide.merge(merged, Some(report.clone()), &Baseline::Off, level);
        let merged = Stage::Repeat.merge(merged, Some(report.clone()), &Baseline::Off, level);
        *report = Stage::Sweep.merge(merged, Some(report.clone()), &Baseline::Off, level);
    }
    let outcome = TestOutcome::new(judged, Output::default(), Duration::ZERO);
    let task = example::task();
    let texts = every::present_all(|notify| {
        let mut tally = Tally::default();
        notify(&mut |to| to.leg_started(&task.leg, 1));
        tally.add(&outcome);
        notify(&mut |to| to.test_finished(&task, &outcome));
        tally
    });
    for (name, text) in texts {
        if let Ok(text) = text {
            check(name, &text);
        }
    }
}

#[cfg(test)]
pub(crate) fn present(name: &str, report: Report) -> Option<anyhow::Result<()>> {
    let verdict = report.verdict.clone();
    let judged = Judged { verdict, report: Some(report), obsolete: None };
    present_outcome(name, &TestOutcome::new(judged, Output::default(), Duration::ZERO))
}

#[cfg(test)]
fn present_outcome(name: &str, outcome: &TestOutcome) -> Option<anyhow::Result<()>> {
    let task = example::task();
    every::present(name, |presenter| {
        let mut tally = Tally::default();
        presenter.leg_started(&task.leg, 1);
        tally.add(outcome);
        presenter.test_finished(&task, outcome);
        tally
    })
}

/// As `execution::run::names`, with names that depend on the address alone.
pub(super) fn complete(report: &mut Report) {
    let level = |code: Code| code.default_level(true);
    if let Some(unresolved) = report.unresolved.take() {
        report.record.attribute(*unresolved, frames);
        blame::note_once(&mut report.record);
    }
    report.record.name_lines(frames);
    let record = &report.record;
    let mut figures = Figures::of(record);
    for figure in figures.0.values_mut().flat_map(|by_name| by_name.values_mut()) {
        *figure /= 2;
    }
    let holders = Holders::of(record);
    let facts = record.facts.clone();
    let baseline = Baseline::Found { figures, holders, facts };
    for baseline in [baseline, Baseline::Missing, Baseline::Off] {
        let mut findings = verdict::judge(record, &baseline, &record.limits, level).findings;
        findings.extend(report.verdict.findings.clone());
        report.verdict = verdict::conclude(findings, level);
        report.verdict.findings.truncate(64);
    }
}

fn frames(address: u64) -> Vec<Frame> {
    let (function, file) = match address % 5 {
        0 => ("candle_core::tensor::Tensor::matmul", "candle-core-0.11.1/src/tensor.rs"),
        1 => ("app::Model::forward", "src/model.rs"),
        2 => ("__rust_alloc", ""),
        3 => ("candle_core::backprop::<impl Tensor>::backward", ""),
        _ => return Vec::new(),
    };
    let file = Some(file.to_owned()).filter(|file| !file.is_empty());
    vec![Frame { function: function.to_owned(), line: file.as_ref().map(|_| address as u32), file }]
}

pub(crate) fn profile(report: &Report) {
    let record = &report.record;
    let Some(attribution) = &record.attribution else { return };
    for space in attribution.peaks.keys() {
        let _ = Profile::of(record, *space, By::Op, Sort::Peak);
        for by in [By::Site, By::Scope] {
            let _ = Profile::without_holders(record, *space, by, Sort::Peak);
        }
    }
    let _ = Digest::of(attribution, record.longer.as_ref());
}
