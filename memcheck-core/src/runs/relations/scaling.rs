//! `scaling`: finds the laws of a family of cases and compares them with the allowed orders.

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

/// Figures that grow faster than allowed, or than the laws `accepted`. `record` must be that of the
/// largest case, because the findings name its call sites.
pub fn scaling(
    reports: &[ScalingReport],
    accepted: Option<&Laws>,
    record: &Record,
) -> Vec<Finding> {
    reports
        .iter()
        .filter_map(|report| {
            let ScalingReport { space, metric, law, order, allowed, few: _, fits: _ } = report;
            let (space, text) = (*space, report.describe_law());
            let (message, hint) = if !law.within(allowed) {
                let about = if matches!(law, Shape::Law(_)) { "" } else { "about " };
                (
                    format!(
                        "`{}` of {space} grows with {about}{order} over the cases (limit \
                         {allowed}): {text}",
                        metric.name()
                    ),
                    format!(
                        "the holders of memory in the largest case grow; if this is intended, \
                         write `scaling({} <= \"{order}\")`",
                        metric.name()
                    ),
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
                    "if this is intended, `cargo memcheck accept` makes it the new baseline"
                        .to_owned(),
                )
            };
            let sites = match metric {
                Metric::PeakAllocated => blame::at_peak(record, space),
                Metric::Allocations | Metric::AllocatedTotal => blame::allocating(record, space),
                Metric::Retained => blame::retained(record, space),
                Metric::Setup | Metric::Growth => Vec::new(),
            };
            let finding = Finding::new(Code::Scaling, message).hint(hint);
            Some(Finding { space: Some(space), sites, ..finding })
        })
        .collect()
}
