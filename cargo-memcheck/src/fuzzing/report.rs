//! The measurement of a test process, with or without names of its call stacks.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use memcheck_core::judgement::baseline::{Baseline, Figures, Holders};
use memcheck_core::judgement::blame;
use memcheck_core::judgement::finding::{Code, Finding};
use memcheck_core::measurement::record::Record;
use memcheck_core::measurement::stack::Frame;
use memcheck_core::presentation::digest::Digest;
use memcheck_core::presentation::profile::{By, Profile, Sort};
use memcheck_core::runs::measured::{Concluded, Gate, MeasuredTest, Run};
use memcheck_core::runs::plan::{Explain, RunPlan, Stage};
use memcheck_core::runs::process_end::{End, Ended, ExpectedTest, Written, judge};
use memcheck_core::runs::report::{Judged, Report};
use memcheck_core::wire::protocol::{Measurement, VERSION};

use super::results::check;
use crate::discovery::task::{TestOutcome, example};
use crate::presentation::presenters::every;
use crate::presentation::tally::Tally;
use crate::system::process::Output;

/// Judges the measurement, resolves its call stacks, merges it with itself as a further run, profiles
/// every space, and presents the outcome in every form.
pub fn report(input: &[u8]) {
    let nothing = || Err(std::io::ErrorKind::NotFound.into());
    let Ok(written) = Written::from_files(Ok(input.to_vec()), nothing) else { return };
    let Written::Complete(measurement) = &written else { return };
    let (test, family) = (measurement.record.test.clone(), measurement.record.family);
    let end = End::Exited(ExitStatus::from_raw(0));
    let expected = ExpectedTest { test: &test, family, timeout: None };
    let Ended { measurement, finding, stack: _, iterates: _ } =
        judge(&end, written, None, expected);
    let record = measurement.map(|measurement| named(*measurement));
    let judged = judged(record, finding);
    if let Some(report) = &judged.report {
        profile(report);
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
    let judged = Judged { verdict, report: Some(report) };
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

/// As `memcheck_conduct::names`, with names that depend on the address alone.
fn named(measurement: Measurement) -> Record {
    let Measurement { mut record, unresolved, .. } = measurement;
    if let Some(unresolved) = unresolved {
        record.attribute(*unresolved, frames);
        blame::note_once(&mut record);
    }
    record.name_lines(frames);
    record
}

/// The last of the verdicts with each kind of baseline.
fn judged(record: Option<Record>, finding: Option<Finding>) -> Judged {
    let level = |code: Code| code.default_level(true);
    let run = |stage| Run {
        stage,
        plan: RunPlan::default(),
        record: record.clone(),
        finding: finding.clone(),
    };
    let mut test = MeasuredTest::new(Explain::Failed, Stage::ALL);
    test.runs.push(run(Stage::First));
    let halved = record.as_ref().map(|record| {
        let mut figures = Figures::of(record);
        for figure in figures.0.values_mut().flat_map(|by_name| by_name.values_mut()) {
            *figure /= 2;
        }
        let (holders, facts) = (Holders::of(record), record.facts.clone());
        Baseline::Found { figures, holders, facts }
    });
    let baselines = halved.into_iter().chain([Baseline::Missing, Baseline::Off]);
    let mut all: Vec<Concluded> = Vec::new();
    for baseline in baselines {
        let gate = Gate { baseline: &baseline, level: &level };
        let _ = test.next(&gate);
        all.push(test.judge(&gate));
    }
    for stage in [Stage::Explain, Stage::Decide, Stage::Repeat, Stage::Sweep] {
        test.runs.push(run(stage));
    }
    all.push(test.judge(&Gate { baseline: &Baseline::Off, level: &level }));
    let Concluded { record, mut verdict, .. } = all.pop().expect("it was judged");
    verdict.findings.extend(all.into_iter().flat_map(|judged| judged.verdict.findings));
    verdict.findings.truncate(64);
    let report = record.map(|record| Report {
        version: VERSION,
        record,
        verdict: verdict.clone(),
        snapshot: None,
        pending: None,
    });
    Judged { verdict, report }
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
