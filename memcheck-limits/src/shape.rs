//! How a figure grows over the cases of a test: what is asked of it, what was found,
//! and how a baseline writes that down.

use std::collections::BTreeSet;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::law::{Law, LawError, Order, Sizes};
use crate::names;
use crate::space::Space;

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

/// Values that a parameter has at least to be a size.
pub const LEAST_VALUES: usize = 2;

/// The values of a parameter, ascending, if it may be a size: at least
/// [`LEAST_VALUES`] different whole numbers.
pub fn whole_numbers<'a>(values: impl Iterator<Item = &'a str>) -> Option<BTreeSet<u64>> {
    let values: Option<BTreeSet<u64>> = values.map(|text| text.parse().ok()).collect();
    values.filter(|values| values.len() >= LEAST_VALUES)
}
