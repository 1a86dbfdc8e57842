//! Reports a search for the largest value that fits: one line for each attempt as it is made, then
//! a table row or a JSON object for each device.

use comfy_table::{CellAlignment, Table, presets};
use memcheck_core::judgement::finding::Code;
use memcheck_core::measurement::record::RefusedAllocation;
use memcheck_core::size::{Size, both};
use memcheck_core::space::Space;
use serde::Serialize;

use crate::build::leg::DeviceKind;
use crate::discovery::task::Task;
use crate::execution::fit::{Attempt, Fitted, Prediction, SearchGoal};
use crate::invocation::options::ReportingOptions;
use crate::invocation::values::Format;
use crate::presentation::presenters::{json, style};
use crate::system::printing::{eprint_line, print_line};

const VERSION: u32 = 1;

pub(crate) fn attempt(task: &Task, param: &str, attempt: &Attempt) {
    let peak = attempt.peak();
    let came = match (&attempt.refused, attempt.has_room()) {
        (_, true) => format!("has room, peak {}", Size(peak)),
        (Some((space, refusal)), false) => {
            format!("has no room: {}", describe_refusal(*space, refusal))
        }
        (None, false) => format!("has no room: the peak is {}", Size(peak)),
    };
    eprint_line!(
        "{}",
        style::dim(&format!("  {} {param}={} {came}", task.leg.name(), attempt.value))
    );
}

fn describe_refusal(space: Space, refusal: &RefusedAllocation) -> String {
    format!(
        "{space} had {} live when the test requested {} more",
        Size(refusal.live),
        Size(refusal.requested)
    )
}

pub(crate) fn fitted(
    reporting: &ReportingOptions,
    tasks: &[Task],
    goal: &SearchGoal<'_>,
    all: &[Fitted],
) {
    match reporting.format {
        Format::Json => {
            for (task, fitted) in tasks.iter().zip(all) {
                json::print(&line(task, goal, fitted));
            }
        }
        Format::Human => {
            for line in table(goal, all).trim_fmt().lines() {
                print_line!("{line}");
            }
        }
    }
    notes(goal, all);
}

fn table(goal: &SearchGoal<'_>, all: &[Fitted]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let largest = format!("largest {}", goal.param);
    table.set_header([
        "device", "capacity", &largest, "peak", "left", "next", "asks for", "attempts",
    ]);
    for fitted in all {
        let none = || "-".to_owned();
        let held = fitted.largest().and_then(|attempt| attempt.tightest(&fitted.rooms));
        let space = held.map(|(space, _)| space);
        let capacity = |space| fitted.rooms.of_space(space).map(|(capacity, _)| capacity);
        let capacity = space.or(Some(Space::Cuda(0))).and_then(capacity);
        let failed = fitted.failed();
        let refused = failed.and_then(|attempt| attempt.refused);
        table.add_row([
            fitted.leg.name(),
            capacity.map_or_else(none, |bytes| Size(bytes).to_string()),
            fitted.largest().map_or("none".to_owned(), |attempt| attempt.value.to_string()),
            held.map_or_else(none, |(_, peak)| Size(peak).to_string()),
            capacity.zip(held).map_or_else(none, |(capacity, (_, peak))| {
                Size(capacity.saturating_sub(peak)).to_string()
            }),
            failed.map_or_else(none, |attempt| attempt.value.to_string()),
            refused.map_or_else(none, |(_, refusal)| {
                format!("{} on top of {}", Size(refusal.requested), Size(refusal.live))
            }),
            fitted.attempts.len().to_string(),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn notes(goal: &SearchGoal<'_>, all: &[Fitted]) {
    let note = |text: String| eprint_line!("{} {text}", style::hint("note:"));
    if goal.margin.to_string() != "0%"
        && all.iter().any(|fitted| fitted.leg.kind == DeviceKind::Sim)
    {
        note(format!("{} of each simulated device is left free (--margin)", goal.margin));
    }
    for fitted in all {
        let device = fitted.leg.name();
        if fitted.leg.kind == DeviceKind::Cuda && fitted.rooms.of_space(Space::Cuda(0)).is_none() {
            note(format!(
                "{device} has no margin, because it refuses allocations itself: --fits sets a \
                 capacity"
            ));
        }
        match (fitted.largest(), fitted.failed()) {
            (Some(largest), None) => note(format!(
                "{device} had room for {}={}, the largest value that --to allows",
                goal.param, largest.value
            )),
            (None, Some(failed)) => note(format!(
                "{device} has no room for {}={}, the smallest value that --from allows",
                goal.param, failed.value
            )),
            _ => {}
        }
        if let (Some(predicted), Some(largest)) = (fitted.predicted(), fitted.largest()) {
            note(format!("{device}: {}", compare_prediction(goal.param, predicted, largest)));
        }
        if let Some(Attempt { value, other_findings, .. }) = fitted.largest()
            && !other_findings.is_empty()
        {
            let codes: Vec<&str> = other_findings.iter().map(|code| code.name()).collect();
            note(format!(
                "{}={value} on {device} has findings that do not concern room: {}",
                goal.param,
                codes.join(", ")
            ));
        }
    }
}

fn compare_prediction(param: &str, predicted: &Prediction, run: &Attempt) -> String {
    let Prediction { space, law, attempts, largest, peak } = predicted;
    let law = law.in_bytes();
    let measured = run.peaks.get(space).copied().unwrap_or(0);
    let was_run = match (run.value, measured) == (*largest, *peak) {
        true => "which the run confirmed".to_owned(),
        false => format!("the run of {param}={} measured {}", run.value, both(measured)),
    };
    format!(
        "after {attempts} attempts peak = {law} predicted {param}={largest} with {}, {was_run}",
        both(*peak)
    )
}

#[derive(Debug, Serialize)]
struct FitLine<'a> {
    #[serde(flatten)]
    head: json::ObjectHead<'a>,
    test: String,
    param: &'a str,
    leg: String,
    margin: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    space: Option<Space>,
    /// Bytes, and the part that the search used.
    #[serde(skip_serializing_if = "Option::is_none")]
    capacity: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usable: Option<u64>,
    largest: Option<u64>,
    peak_allocated: Option<u64>,
    failed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<RefusalLine>,
    /// Made for the largest value by the law of the first attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    predicted: Option<&'a Prediction>,
    attempts: Vec<AttemptLine<'a>>,
}

#[derive(Debug, Serialize)]
struct RefusalLine {
    space: Space,
    requested: u64,
    live: u64,
}

#[derive(Debug, Serialize)]
struct AttemptLine<'a> {
    value: u64,
    has_room: bool,
    peak_allocated: &'a std::collections::BTreeMap<Space, u64>,
    #[serde(rename = "beside", skip_serializing_if = "<[Code]>::is_empty")]
    other_findings: &'a [Code],
}

fn line<'a>(task: &'a Task, goal: &SearchGoal<'a>, fitted: &'a Fitted) -> FitLine<'a> {
    let held = fitted.largest().and_then(|attempt| attempt.tightest(&fitted.rooms));
    let failed = fitted.failed();
    let refused = failed.and_then(|attempt| attempt.refused);
    let space = held.map(|(space, _)| space).or(refused.map(|(space, _)| space));
    let room = space.and_then(|space| fitted.rooms.of_space(space));
    let tried = |attempt: &'a Attempt| AttemptLine {
        value: attempt.value,
        has_room: attempt.has_room(),
        peak_allocated: &attempt.peaks,
        other_findings: &attempt.other_findings,
    };
    FitLine {
        head: json::ObjectHead::of("fit", VERSION, task),
        test: crate::execution::fit::path(task),
        param: goal.param,
        leg: fitted.leg.name(),
        margin: goal.margin.to_string(),
        space,
        capacity: room.map(|(capacity, _)| capacity),
        usable: room.map(|(_, usable)| usable),
        largest: fitted.largest().map(|attempt| attempt.value),
        peak_allocated: held.map(|(_, peak)| peak),
        failed: failed.map(|attempt| attempt.value),
        refused: refused.map(|(space, RefusedAllocation { requested, live, .. })| RefusalLine {
            space,
            requested,
            live,
        }),
        predicted: fitted.predicted(),
        attempts: fitted.attempts.iter().map(tried).collect(),
    }
}
