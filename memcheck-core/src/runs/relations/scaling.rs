//! `scaling`: finds the laws of a family of cases and compares them with the allowed orders.

use super::MeasuredRuns;
use crate::judgement::baseline::{Figures, Laws};
use crate::judgement::blame;
use crate::judgement::finding::{Code, Finding};
use crate::law::{self, Largest, NoLaw, Point, Sizes};
use crate::measurement::record::Record;
use crate::shape::{Fit, Metric, Scaling, ScalingReport, Shape};
use crate::space::Space;
use crate::tolerance::Tolerance;

/// The capacity of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceRoom {
    /// The name for people: `rtx4090`.
    pub name: String,
    /// The capacity in bytes.
    pub bytes: u64,
}

/// A case with its figures.
#[derive(Debug, Clone)]
pub struct Member<'a> {
    /// The sizes of the case.
    pub at: Sizes,
    /// The figures that were measured, or those of the baseline.
    pub figures: &'a Figures,
}

/// The laws of each requested figure in each space of all cases. `room` is a device's capacity.
pub fn scaling_reports(
    members: &[Member<'_>],
    asked: &[Scaling],
    room: impl Fn(Space) -> Option<DeviceRoom>,
) -> Vec<ScalingReport> {
    let Some(last) = members.last() else { return Vec::new() };
    let mut reports = Vec::new();
    for &space in last.figures.0.keys() {
        for Scaling { metric, most } in asked {
            let value =
                |member: &Member<'_>| member.figures.0.get(&space)?.get(metric.name()).copied();
            let point =
                |member: &Member<'_>| Some(Point { at: member.at.clone(), value: value(member)? });
            let points: Option<Vec<Point>> = members.iter().map(point).collect();
            // A space can lack a figure: the host has no counts.
            let Some(points) = points else { continue };
            let (law, few) = match law::find(&points) {
                Ok(law) => (Shape::Law(law), Sizes::new()),
                Err(NoLaw::Uneven { about, few }) => (Shape::About(about), few),
                Err(NoLaw::Incomplete { .. }) => continue,
            };
            let room = room(space).filter(|_| *metric == Metric::PeakAllocated);
            reports.push(ScalingReport {
                space,
                metric: *metric,
                order: law.order(),
                allowed: most.clone(),
                few,
                fits: room.map_or_else(Vec::new, |room| fits(&law, &last.at, &room)),
                law,
            });
        }
    }
    reports
}

/// The other sizes are those of the largest case.
fn fits(shape: &Shape, largest: &Sizes, room: &DeviceRoom) -> Vec<Fit> {
    let Shape::Law(law) = shape else { return Vec::new() };
    let fit = |size: &String| {
        let mut with = largest.clone();
        with.remove(size);
        match law::largest(law, size, &with, room.bytes) {
            Largest::Upto(upto) => {
                let (room, bytes) = (room.name.clone(), room.bytes);
                Some(Fit { size: size.clone(), upto, with, room, bytes })
            }
            Largest::Any | Largest::None => None,
        }
    };
    largest.keys().filter_map(fit).collect()
}

/// True if exactly one accepted law predicts each figure of every case within the tolerance.
pub fn unchanged(
    accepted: &Laws,
    reports: &[ScalingReport],
    members: &[Member<'_>],
    tolerance: Tolerance,
) -> bool {
    let holds = |report: &ScalingReport| match (
        accepted.of_metric(report.space, report.metric),
        &report.law,
    ) {
        (Some(then), now) if then == now => true,
        (Some(Shape::Law(then)), Shape::Law(_)) => members.iter().all(|member| {
            let now =
                member.figures.0.get(&report.space).and_then(|by| by.get(report.metric.name()));
            let (Some(then), Some(now)) = (then.at(&member.at), now) else { return false };
            (tolerance.floor(then)..=tolerance.ceiling(then)).contains(now)
        }),
        _ => false,
    };
    accepted.len() == reports.len() && reports.iter().all(holds)
}

/// The cases with the figures of their first run, then with those of their second, and so on.
/// Stable cases have the same figures in all of these.
pub fn members_of_runs(cases: &[(Sizes, MeasuredRuns)]) -> Vec<Vec<Member<'_>>> {
    let further = cases.iter().map(|(_, runs)| runs.further.len()).max().unwrap_or(0);
    let members = |number: usize| {
        let cases = cases.iter();
        cases.map(|(at, runs)| Member { at: at.clone(), figures: runs.run(number) }).collect()
    };
    (0..=further).map(members).collect()
}

/// Figures that grow faster than allowed, or than the laws `accepted`. `runs` are the laws of each
/// run. `record` must be that of the largest case, because the findings name its call sites.
///
/// If only some runs have a finding, the figure is unstable.
pub fn scaling(
    runs: &[Vec<ScalingReport>],
    accepted: Option<&Laws>,
    record: &Record,
) -> Vec<Finding> {
    let reports = runs.first().into_iter().flatten();
    let over_runs = |first: &ScalingReport| {
        let is_same =
            |report: &&ScalingReport| (report.space, report.metric) == (first.space, first.metric);
        let of_runs: Vec<_> = runs.iter().filter_map(|run| run.iter().find(is_same)).collect();
        let found: Vec<Finding> =
            of_runs.iter().filter_map(|report| broken(report, accepted, record)).collect();
        let (count, all) = (found.len(), of_runs.len());
        let finding = found.into_iter().next()?;
        if count == all {
            return Some(finding);
        }
        let message = format!("{}; only {count} of {all} runs have this law", finding.message);
        let hint = "find out why the figures of its cases differ from run to run";
        Some(Finding { code: Code::Unstable, message, ..finding }.hint(hint))
    };
    reports.filter_map(over_runs).collect()
}

/// The finding about a law that is above its limit or above the accepted one.
fn broken(report: &ScalingReport, accepted: Option<&Laws>, record: &Record) -> Option<Finding> {
    let ScalingReport { space, metric, law, order, allowed, few: _, fits: _ } = report;
    let (space, text) = (*space, report.describe_law());
    let (message, hint) = if !law.within(allowed) {
        let about = if matches!(law, Shape::Law(_)) { "" } else { "about " };
        (
            format!(
                "`{}` of {space} grows with {about}{order} over the cases (limit {allowed}): \
                 {text}",
                metric.name()
            ),
            Some(format!(
                "the holders of memory in the largest case grow; if this is intended, write \
                 `scaling({} <= \"{order}\")`",
                metric.name()
            )),
        )
    } else {
        let then = accepted?.of_metric(space, *metric)?;
        if law.within(&then.order()) {
            return None;
        }
        (
            format!(
                "`{}` of {space} grew with {}, and grows with {order} now: {text}, was {}",
                metric.name(),
                then.order(),
                then.describe(*metric)
            ),
            None,
        )
    };
    let sites = match metric {
        Metric::PeakAllocated => blame::at_peak(record, space),
        Metric::Allocations | Metric::AllocatedTotal => blame::allocating(record, space),
        Metric::Retained => blame::retained(record, space),
        Metric::Setup | Metric::Growth => Vec::new(),
    };
    Some(Finding { space: Some(space), sites, hint, ..Finding::new(Code::Scaling, message) })
}
