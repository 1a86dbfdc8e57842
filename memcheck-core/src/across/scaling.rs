//! `scaling`: how figures grow over the cases of a test, and how fast they may.

use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::baseline::{Figures, Laws};
use crate::blame;
use crate::finding::{Code, Finding};
use crate::law::{self, Largest, Law, LawError, NoLaw, Order, Point, Sizes};
use crate::names::names;
use crate::record::Record;
use crate::space::Space;
use crate::tolerance::Tolerance;

/// The figures that a baseline keeps: only these are the same in every run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// `peak_allocated`.
    PeakAllocated,
    /// `setup`.
    Setup,
    /// `growth`.
    Growth,
    /// `retained`.
    Retained,
    /// `allocations`; on a GPU only.
    Allocations,
    /// `allocated_total`; on a GPU only.
    AllocatedTotal,
}

names!(Metric {
    "peak_allocated" => PeakAllocated,
    "setup" => Setup,
    "growth" => Growth,
    "retained" => Retained,
    "allocations" => Allocations,
    "allocated_total" => AllocatedTotal,
});

impl Metric {
    /// Its name in records and baselines.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Its name in a line for people.
    pub fn short(self) -> &'static str {
        match self {
            Self::PeakAllocated => "peak",
            other => other.name(),
        }
    }
}

impl Serialize for Metric {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Metric {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// `peak_allocated <= "seq"`: over the cases, a figure may grow no faster than this.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scaling {
    /// The figure.
    pub metric: Metric,
    /// How fast it may grow.
    pub most: Order,
}

/// How a figure grows: exactly, or by its last steps where no law is exact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// By this law.
    Law(Law),
    /// By no law, and at the largest sizes about as fast as this.
    About(Order),
}

impl Shape {
    /// How fast it grows.
    pub fn order(&self) -> Order {
        match self {
            Self::Law(law) => law.order(),
            Self::About(order) => order.clone(),
        }
    }

    /// Whether it grows no faster than `most`. What is about a product of sizes
    /// may as well be a sum: there each size counts for itself.
    pub fn within(&self, most: &Order) -> bool {
        match self {
            Self::Law(law) => most.covers(&law.order()),
            Self::About(order) => order.sizes().all(|size| order.power(size) <= most.power(size)),
        }
    }

    /// For people: `31.2 MiB + 1.5 KiB*seq`, `no exact law, about seq^2`.
    pub fn told(&self, metric: Metric) -> String {
        match self {
            Self::Law(law) if metric == Metric::Allocations => law.in_counts(),
            Self::Law(law) => law.in_bytes(),
            Self::About(order) => format!("no exact law, about {order}"),
        }
    }
}

/// Exactly, as a baseline keeps it: `4096 + 16*seq^2`, `about seq^2`.
impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Law(law) => law.fmt(f),
            Self::About(order) => write!(f, "about {order}"),
        }
    }
}

impl FromStr for Shape {
    type Err = LawError;

    fn from_str(text: &str) -> Result<Self, LawError> {
        match text.strip_prefix("about ").map(str::parse) {
            Some(Ok(order)) => Ok(Self::About(order)),
            _ => text.parse().map(Self::Law),
        }
    }
}

impl Serialize for Shape {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// What one figure was found to do over the cases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// The memory space.
    pub space: Space,
    /// The figure.
    pub metric: Metric,
    /// How it grows.
    pub law: Shape,
    /// How fast that is.
    pub order: Order,
    /// How fast it may grow.
    pub allowed: Order,
    /// Sizes that have too few values to confirm an exact law, and how many.
    #[serde(default, skip_serializing_if = "Sizes::is_empty")]
    pub few: Sizes,
    /// The largest sizes that the test's device holds, by this law.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fits: Vec<Fit>,
}

impl Told {
    /// For people: as [`Shape::told`], and why no law can be exact where there are
    /// too few values for one.
    pub fn shown(&self) -> String {
        if self.few.is_empty() {
            return self.law.told(self.metric);
        }
        let few: Vec<String> =
            self.few.iter().map(|(size, count)| format!("{count} of {size}")).collect();
        format!(
            "no exact law can be confirmed with so few values ({}), {}",
            few.join(", "),
            self.law
        )
    }
}

/// The largest value of a size that fits, by a law: predicted, not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fit {
    /// The size.
    pub size: String,
    /// Its largest value.
    pub upto: u64,
    /// The other sizes.
    #[serde(default, skip_serializing_if = "Sizes::is_empty")]
    pub with: Sizes,
    /// What it fits into, for people.
    pub room: String,
    /// The same in bytes.
    pub bytes: u64,
}

/// What a device holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Room {
    /// For people: `rtx4090`.
    pub name: String,
    /// In bytes.
    pub bytes: u64,
}

/// A case with its figures.
#[derive(Debug, Clone)]
pub struct Member<'a> {
    /// Its sizes.
    pub at: Sizes,
    /// What was measured, or stands in the baseline.
    pub figures: &'a Figures,
}

/// The laws of a family: of every figure that is asked for, in every space that
/// all of its cases have. `room` is what a device holds, where that is known.
pub fn told(
    members: &[Member<'_>],
    asked: &[Scaling],
    room: impl Fn(Space) -> Option<Room>,
) -> Vec<Told> {
    let Some(last) = members.last() else { return Vec::new() };
    let mut told = Vec::new();
    for &space in last.figures.0.keys() {
        for Scaling { metric, most } in asked {
            let value =
                |member: &Member<'_>| member.figures.0.get(&space)?.get(metric.name()).copied();
            let point =
                |member: &Member<'_>| Some(Point { at: member.at.clone(), value: value(member)? });
            let points: Option<Vec<Point>> = members.iter().map(point).collect();
            // A figure that this space does not have: counts, on the host.
            let Some(points) = points else { continue };
            let (law, few) = match law::find(&points) {
                Ok(law) => (Shape::Law(law), Sizes::new()),
                Err(NoLaw::Uneven { about, few }) => (Shape::About(about), few),
                Err(NoLaw::Incomplete { .. }) => continue,
            };
            let room = room(space).filter(|_| *metric == Metric::PeakAllocated);
            told.push(Told {
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
    told
}

/// Each size that the law grows with, the others as in the largest case.
fn fits(shape: &Shape, largest: &Sizes, room: &Room) -> Vec<Fit> {
    let Shape::Law(law) = shape else { return Vec::new() };
    let fit = |size: &String| {
        let mut with = largest.clone();
        with.remove(size);
        match law::largest(law, size, &with, room.bytes) {
            Largest::Upto(upto) => {
                let (room, bytes) = (room.name.clone(), room.bytes);
                Some(Fit { size: size.clone(), upto, with, room, bytes })
            }
            Largest::Any | Largest::Nothing => None,
        }
    };
    largest.keys().filter_map(fit).collect()
}

/// Whether the accepted laws still hold: each of them says every case's figure
/// within the tolerance, and there is one of every figure and no other.
pub fn unchanged(
    accepted: &Laws,
    told: &[Told],
    members: &[Member<'_>],
    tolerance: Tolerance,
) -> bool {
    let holds = |told: &Told| match (accepted.of_metric(told.space, told.metric), &told.law) {
        (Some(then), now) if then == now => true,
        (Some(Shape::Law(then)), Shape::Law(_)) => members.iter().all(|member| {
            let now = member.figures.0.get(&told.space).and_then(|by| by.get(told.metric.name()));
            let (Some(then), Some(now)) = (then.at(&member.at), now) else { return false };
            (tolerance.floor(then)..=tolerance.ceiling(then)).contains(now)
        }),
        _ => false,
    };
    accepted.len() == told.len() && told.iter().all(holds)
}

/// What grows faster than it may, or than it did. `accepted` are the laws of the
/// baseline; `record` is that of the largest case, whose holders are blamed.
pub fn scaling(told: &[Told], accepted: Option<&Laws>, record: &Record) -> Vec<Finding> {
    told.iter()
        .filter_map(|told| {
            let Told { space, metric, law, order, allowed, few: _, fits: _ } = told;
            let (space, text) = (*space, told.shown());
            let (message, hint) = if !law.within(allowed) {
                let about = if matches!(law, Shape::Law(_)) { "" } else { "about " };
                (
                    format!(
                        "`{}` of {space} grows with {about}{order} over the cases, at most \
                         {allowed} allowed: {text}",
                        metric.name()
                    ),
                    format!(
                        "what holds memory in the largest case is what grows; if this is meant, \
                         `scaling({} <= \"{order}\")`",
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
                        then.told(*metric)
                    ),
                    "if this is meant, `cargo memcheck accept` makes it the new baseline"
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
