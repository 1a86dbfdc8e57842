//! The laws of a test with `scaling(…)`, kept in a file separate from the figures.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::super::yaml;
use crate::shape::{Metric, ScalingReport, Shape};
use crate::space::Space;

/// Laws by space and figure.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Laws {
    laws: BTreeMap<Space, BTreeMap<Metric, Shape>>,
}

impl Laws {
    /// Collects the laws that were found.
    pub fn of(reports: &[ScalingReport]) -> Self {
        let mut laws = Self::default();
        for ScalingReport { space, metric, law, .. } in reports {
            laws.laws.entry(*space).or_default().insert(*metric, law.clone());
        }
        laws
    }

    /// The number of figures that have a law.
    pub fn len(&self) -> usize {
        self.laws.values().map(BTreeMap::len).sum()
    }

    /// True if no figure has a law.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The law of one figure.
    pub fn of_metric(&self, space: Space, metric: Metric) -> Option<&Shape> {
        self.laws.get(&space)?.get(&metric)
    }

    /// Serializes the body of the snapshot.
    pub fn to_yaml(&self) -> String {
        yaml::write(self)
    }

    /// Parses the body of a snapshot; the error is a sentence fragment.
    pub fn from_yaml(text: &str) -> Result<Self, String> {
        if super::has_conflict_markers(text) {
            return Err(super::FiguresError::Conflict.to_string());
        }
        let laws: Self =
            yaml::read(text).map_err(|error| format!("it is not a map of laws: {error}"))?;
        if laws.is_empty() {
            return Err("it is not a map of laws: it is empty".to_owned());
        }
        Ok(laws)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laws_round_trip_sorted_by_figure() {
        let text = "laws:\n  cuda:0:\n    peak_allocated: 4096 + 16*seq^2 for seq >= 128\n    \
                    growth: '0'\n    allocations: about seq";
        let laws = Laws::from_yaml(text).unwrap();
        assert_eq!(laws.to_yaml(), text);
        let peak = laws.of_metric(Space::Cuda(0), Metric::PeakAllocated).unwrap();
        assert_eq!(peak.order().to_string(), "seq^2");
        assert_eq!(laws.of_metric(Space::Host, Metric::PeakAllocated), None);
    }

    #[test]
    fn text_that_is_not_laws_is_rejected_with_its_reason() {
        for (text, reason) in [
            ("", "laws"),
            ("laws: {}", "empty"),
            ("host:\n  peak_allocated: 4096", "unknown field `host`"),
            ("laws:\n  host:\n    peak_allocated: many", "`many` is not a law"),
            ("laws:\n  host:\n    peak: '1'", "peak_allocated"),
            ("<<<<<<< ours\nlaws:\n  host:\n    growth: '0'", "conflict"),
        ] {
            let error = Laws::from_yaml(text).expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
