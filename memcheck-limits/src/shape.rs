//! How a figure grows over the cases of a test: the requested bound, the observed growth, and the
//! form in which a baseline stores it.

use std::collections::BTreeSet;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::law::{Law, LawError, Order, Sizes};
use crate::space::Space;
use crate::{names, serialize_as_text};

/// The figures that a baseline keeps, because only these are the same in every run.
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
    /// Returns the name in records and baselines.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Returns the name for output that people read.
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

/// `peak_allocated <= "seq"`: a limit on how fast a figure may grow over the cases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scaling {
    /// The figure.
    pub metric: Metric,
    /// The fastest growth that is allowed.
    pub most: Order,
}

/// The growth of a figure: an exact law or, if no law is exact, an estimate from its last steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// The figure follows this law.
    Law(Law),
    /// The figure follows no law. At the largest sizes it grows about as fast as this.
    About(Order),
}

impl Shape {
    /// Returns the order of growth.
    pub fn order(&self) -> Order {
        match self {
            Self::Law(law) => law.order(),
            Self::About(order) => order.clone(),
        }
    }

    /// True if the figure grows no faster than `most`.
    ///
    /// An estimate cannot distinguish a product of sizes from a sum. For an estimate, the power of
    /// each size is therefore compared separately.
    pub fn within(&self, most: &Order) -> bool {
        match self {
            Self::Law(law) => most.covers(&law.order()),
            Self::About(order) => order.sizes().all(|size| order.power(size) <= most.power(size)),
        }
    }

    /// Formats it for people: `31.2 MiB + 1.50 KiB*seq`, `no exact law, about seq^2`.
    pub fn describe(&self, metric: Metric) -> String {
        match self {
            Self::Law(law) if metric == Metric::Allocations => law.in_counts(),
            Self::Law(law) => law.in_bytes(),
            Self::About(order) => format!("no exact law, about {order}"),
        }
    }
}

/// Formats it exactly, as a baseline stores it: `4096 + 16*seq^2`, `about seq^2`.
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

serialize_as_text!(Shape);

/// The growth of one figure over the cases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScalingReport {
    /// The memory space.
    pub space: Space,
    /// The figure.
    pub metric: Metric,
    /// The growth that was found.
    pub law: Shape,
    /// The order of that growth.
    pub order: Order,
    /// The fastest growth that is allowed.
    pub allowed: Order,
    /// The sizes that have too few values to confirm an exact law, with the number of their values.
    #[serde(default, skip_serializing_if = "Sizes::is_empty")]
    pub few: Sizes,
    /// The largest sizes that the memory of the test's device holds, by this law.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fits: Vec<Fit>,
}

impl ScalingReport {
    /// Formats it for people as [`Shape::describe`] does. If a size has too few values for an exact
    /// law, the text contains that reason.
    pub fn describe_law(&self) -> String {
        if self.few.is_empty() {
            return self.law.describe(self.metric);
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

/// The largest value of a size that fits by a law. It is a prediction and was not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fit {
    /// The name of the size.
    pub size: String,
    /// The largest value that fits.
    pub upto: u64,
    /// The values of the other sizes.
    #[serde(default, skip_serializing_if = "Sizes::is_empty")]
    pub with: Sizes,
    /// The name of the capacity, for people.
    pub room: String,
    /// The capacity in bytes.
    pub bytes: u64,
}

/// The minimum number of values that a parameter must have to be a size.
pub const LEAST_VALUES: usize = 2;

/// Returns the values of a parameter in ascending order; `None` unless the parameter can be a size.
/// All values of a size must be whole numbers, and at least [`LEAST_VALUES`] of them must differ.
pub fn whole_numbers<'a>(values: impl Iterator<Item = &'a str>) -> Option<BTreeSet<u64>> {
    let values: Option<BTreeSet<u64>> = values.map(|text| text.parse().ok()).collect();
    values.filter(|values| values.len() >= LEAST_VALUES)
}
