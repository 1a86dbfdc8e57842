//! Merges a further run of a test with the runs before it, which do not change.

use std::time::Duration;

use super::plan::Stage;
use super::view::{Gate, Merged, Run, View};
use crate::growth::survivors::Growth;
use crate::judgement::baseline::Figures;
use crate::judgement::blame;
use crate::judgement::finding::{Class, Code, Finding};
use crate::measurement::comparison;
use crate::measurement::fault_sweep::SweepResult;
use crate::measurement::record::{Record, SpaceRecord};
use crate::measurement::soak::Soaked;
use crate::space::Space;
use crate::wire::protocol::Reach;

pub(super) fn merge(first: View<'_>, run: &Run) -> Merged {
    let was_run = run.record.is_some() || run.finding.is_some();
    if !was_run {
        return first.into_merged();
    }
    let mut merged = match (&run.record, run.stage) {
        (Some(second), stage) => with(first, stage, (second, run.plan.reach)),
        (None, stage) => without(first, stage),
    };
    if let (None, Some(place), Some(finding)) = (&run.record, run.stage.place(), &run.finding) {
        let message = format!("{place}: {}", finding.message);
        merged.lost.push(Finding { message, ..finding.clone() });
    }
    merged
}

fn with(first: View<'_>, stage: Stage, (second, reach): (&Record, Reach)) -> Merged {
    let gate = first.gate();
    match stage {
        Stage::Repeat => repeated(first.into_merged(), second.clone(), gate),
        Stage::Extend if second.followed.is_some() => {
            let mut merged = first.into_merged();
            merged.record.take_verdicts(second.clone());
            merged
        }
        Stage::Decide if second.iterations >= first.record().iterations => {
            decided(first.into_merged(), second.clone(), gate)
        }
        Stage::Decide => undecided(first.into_merged()),
        Stage::Explain | Stage::Compare => {
            let second = explaining(first.record(), second.clone(), reach);
            if reproduces(&first, &second) {
                explained(first.into_merged(), second)
            } else if is_comparable(first.record(), &second, gate) {
                let mut merged = first.into_merged();
                comparison::add(&mut merged.record, comparison::compared(&second));
                merged
            } else if stage == Stage::Explain {
                unexplained(first.into_merged(), ENDED_DIFFERENTLY)
            } else {
                first.into_merged()
            }
        }
        Stage::Sweep => swept(first.into_merged(), second.fault_sweep.clone()),
        Stage::Soak(time) => soaked(first.into_merged(), Some(second.clone()), time),
        Stage::First | Stage::Extend => first.into_merged(),
    }
}

/// What a run without a record says.
fn without(first: View<'_>, stage: Stage) -> Merged {
    let merged = first.into_merged();
    match stage {
        Stage::Decide => undecided(merged),
        Stage::Explain => unexplained(merged, "a second run, with call stacks, wrote no record"),
        Stage::Sweep => swept(merged, None),
        Stage::Soak(time) => soaked(merged, None, time),
        Stage::First | Stage::Repeat | Stage::Extend | Stage::Compare => merged,
    }
}

const ENDED_DIFFERENTLY: &str = "a second run, with call stacks, ended differently: this test is \
                                 not deterministic, so its bytes cannot be attributed to call sites";

/// The second run must be measured, and its body must get as far as that of the first.
fn is_comparable(first: &Record, second: &Record, gate: &Gate<'_>) -> bool {
    first.outcome == second.outcome
        && second.iterations >= first.iterations
        && !gate.judge(second).iter().any(|finding| finding.code.cut_it_short())
}

/// The growth is that of the first run, because it had more iterations, even if it ended in them.
fn repeated(first: Merged, mut second: Record, gate: &Gate<'_>) -> Merged {
    let disturbed = comparison::of_measured_iterations(&first.record);
    if is_comparable(&first.record, &second, gate)
        && comparison::differ(&disturbed, &comparison::compared(&second))
    {
        comparison::add(&mut second, disturbed);
    }
    second.take_growth(first.record);
    Merged { record: second, ..first }
}

/// The proof also counts if the test is not deterministic.
fn decided(mut first: Merged, second: Record, gate: &Gate<'_>) -> Merged {
    let moved = comparison::moved(&first.record, &second);
    if !moved.figures.is_empty() {
        // Its measured iterations are complete, even if its body failed beyond them.
        let is_instrument = |found: &Finding| found.code.row().class == Class::Instrument;
        let is_measured = !gate.judge(&second).iter().any(is_instrument);
        let why_alone = match (is_measured, moved.is_compared) {
            (true, true) => "",
            (true, false) => "; no limit or baseline judges them, so no further run compares them",
            (false, _) => "; it has a finding `not-measured`, so no further run compares them",
        };
        first.record.notes.push(format!(
            "the longer run measured other figures, so this test is not deterministic: \
             {}{why_alone}",
            moved.figures.join(", ")
        ));
        if is_measured && moved.is_compared {
            let further = comparison::of_longer_run(&first.record, &second);
            comparison::add(&mut first.record, further);
        }
    }
    first.record.take_growth(second);
    blame::note_events(&mut first.record);
    blame::note_kept(&mut first.record);
    first
}

/// A run that did not end its measured iterations cannot decide.
fn undecided(mut first: Merged) -> Merged {
    let why = "a longer run wrote no complete record, so it is undecided whether memory grows";
    first.record.notes.push(why.to_owned());
    first
}

/// The second record, with the figures that its run cannot measure: another run decided the growth,
/// the peak and the retained bytes of a run with more iterations are others, and it has no second
/// round.
fn explaining(first: &Record, mut second: Record, reach: Reach) -> Record {
    if reach == Reach::Decision {
        comparison::compared(first).put(&comparison::LATER_FIGURES, &mut second);
        for (space, measured) in &mut second.spaces {
            let before = first.spaces.get(space).map(|before| before.phases.clone());
            measured.phases = before.unwrap_or_default();
        }
        second.note_peaks();
        // Only now it is known what a second round retains.
        blame::note_once(&mut second);
        return second;
    }
    Figures::of(first).put(&["growth"], &mut second);
    for measured in second.spaces.values_mut() {
        if measured.growth == Growth::Unknown {
            measured.growth = Growth::default();
        }
    }
    second
}

/// True if the second run's call sites explain the first's figures. Other runs decide the growth,
/// and threads that outlive the body change retained bytes, so these count only if judged. Spaces
/// that no baseline has count only if a finding is about them.
fn reproduces(first: &View<'_>, second: &Record) -> bool {
    let of_second = first.gate().judge(second);
    let findings = || first.findings().chain(&of_second);
    let is_about = |code| findings().any(|finding| finding.code == code);
    let asked = is_about(Code::Retained) || is_about(Code::Unstable) || first.is_pending();
    let unasked: &[&str] = if asked { &[] } else { &["retained", "retained_again"] };
    let figures = |record: &Record| {
        // `allocated` has no limit and is not in a baseline.
        let mut figures = comparison::without(comparison::compared(record), &["allocated"]);
        let baseline = Figures::of(record);
        let is_found = |space| findings().any(|finding| finding.space == Some(space));
        figures.0.retain(|space, _| baseline.0.contains_key(space) || is_found(*space));
        comparison::without(figures, unasked)
    };
    judged_spaces(first.record()) == judged_spaces(second)
        && !comparison::differ(&figures(first.record()), &figures(second))
}

/// Without those that the test has used only in iterations beyond the measured ones.
fn judged_spaces(record: &Record) -> Vec<Space> {
    let is_measured =
        |space: &&Space| !record.spaces.get(space).is_some_and(SpaceRecord::is_unused);
    record.judged.iter().filter(is_measured).copied().collect()
}

/// The call sites of the second record, the figures and the growth of the earlier runs.
fn explained(first: Merged, mut second: Record) -> Merged {
    let Merged { record: mut before, lost, .. } = first;
    second.repeats = before.repeats.take();
    second.fault_sweep = before.fault_sweep.take();
    second.soaked = before.soaked.take();
    if second.repeats.is_some() {
        let further = comparison::compared(&second);
        comparison::add(&mut second, further);
    }
    let contained = blame::notes_of_events_held_once(&before, &second);
    for (notes, known) in [
        (std::mem::take(&mut before.notes), &mut second.notes),
        (std::mem::take(&mut before.remarks), &mut second.remarks),
    ] {
        let is_missing = |note: &String| !known.contains(note) && !contained.contains(note);
        let missing: Vec<String> = notes.into_iter().filter(is_missing).collect();
        known.extend(missing);
    }
    if second.followed.is_some() {
        // It repeats the run that decided the growth, whose resident memory is without call stacks.
        second.spaces.extend(before.spaces.remove_entry(&Space::Process));
        second.values = second.values.take().or(before.values);
    } else if before.longer.is_some() || growth(&before) != growth(&second) {
        second.take_growth(before);
    } else {
        second.take_verdicts(before);
    }
    Merged { record: second, unexplained: None, lost }
}

fn growth(record: &Record) -> Vec<u64> {
    record.spaces.values().map(|measured| measured.metrics.growth).collect()
}

fn unexplained(mut first: Merged, why: &'static str) -> Merged {
    first.record.notes.push(why.to_owned());
    Merged { unexplained: Some(why), ..first }
}

/// The figures of the first runs, with the refusals of the second.
fn swept(mut first: Merged, sweep: Option<SweepResult>) -> Merged {
    first.record.fault_sweep = Some(sweep.unwrap_or_else(|| SweepResult {
        ended: Some("its process wrote no record".to_owned()),
        ..SweepResult::default()
    }));
    first
}

/// The figures of the first runs, with the growth that only the soak has shown.
fn soaked(mut first: Merged, second: Option<Record>, time: Duration) -> Merged {
    let Some(second) = second else {
        first.record.soaked = Some(Soaked::refused(time, "its process wrote no record"));
        return first;
    };
    first.record.soaked.clone_from(&second.soaked);
    if second.iterations >= first.record.iterations && shows_other_growth(&first.record, &second) {
        first.record.take_growth(second);
    }
    first
}

/// The growth of a test that grows within its limit stays that of its shorter runs, because the
/// baseline has that figure, and a mean over more iterations is another number.
fn shows_other_growth(first: &Record, soak: &Record) -> bool {
    first.judged.iter().any(|space| {
        let limit = first.max_growth_of(*space, &first.limits).unwrap_or(u64::MAX);
        let (Some(before), Some(after)) = (first.spaces.get(space), soak.spaces.get(space)) else {
            return false;
        };
        let growth = after.metrics.growth;
        match after.growth {
            Growth::Found { .. } => growth > limit || growth > 0 && before.metrics.growth == 0,
            Growth::Undecided { .. } => before.metrics.growth == 0,
            Growth::Quiet { .. } | Growth::Unknown => false,
        }
    })
}
