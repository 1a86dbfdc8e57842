//! The laws of a test with `scaling(…)`, as a baseline of their own keeps them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::record::Facts;
use crate::shape::{Metric, Shape, Told};
use crate::space::Space;

/// Laws by space and figure.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Laws {
    laws: BTreeMap<Space, BTreeMap<Metric, Shape>>,
}

impl Laws {
    /// The laws that were found.
    pub fn of(told: &[Told]) -> Self {
        let mut laws = Self::default();
        for Told { space, metric, law, .. } in told {
            laws.laws.entry(*space).or_default().insert(*metric, law.clone());
        }
        laws
    }

    /// How many figures have one.
    pub fn len(&self) -> usize {
        self.laws.values().map(BTreeMap::len).sum()
    }

    /// Whether no figure has one.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The law of a figure.
    pub fn of_metric(&self, space: Space, metric: Metric) -> Option<&Shape> {
        self.laws.get(&space)?.get(&metric)
    }

    /// The body of the snapshot.
    pub fn to_yaml(&self) -> String {
        serde_yaml_ng::to_string(self).expect("a map of texts is YAML").trim_end().to_owned()
    }

    /// The whole snapshot, as insta lays it out; `source` is the file of the test.
    pub fn to_snapshot(&self, source: &str, facts: &Facts) -> String {
        #[derive(Serialize)]
        struct Header<'a> {
            source: &'a str,
            info: &'a Facts,
        }
        let header = serde_yaml_ng::to_string(&Header { source, info: facts });
        let header = header.expect("a map of texts and numbers is YAML");
        format!("---\n{header}---\n{}\n", self.to_yaml())
    }

    /// Reads the body of a snapshot.
    ///
    /// # Errors
    /// In words, when it holds anything but laws.
    pub fn from_yaml(text: &str) -> Result<Self, String> {
        if super::has_conflict_markers(text) {
            return Err(super::FiguresError::Conflict.to_string());
        }
        let laws: Self = serde_yaml_ng::from_str(text)
            .map_err(|error| format!("it is not a map of laws: {error}"))?;
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
    fn a_snapshot_of_laws_is_one_of_ours() {
        let facts = crate::verdict::tests::record(Default::default()).facts;
        let laws = Laws::from_yaml("laws:\n  host:\n    growth: '0'").unwrap();
        let text = laws.to_snapshot("tests/mem.rs", &facts);
        assert!(text.starts_with("---\nsource: tests/mem.rs\ninfo:\n  memcheck: 1\n"), "{text}");
        let parts = super::super::Parts::of(&text).unwrap();
        assert!(parts.is_memcheck());
        assert_eq!(Laws::from_yaml(parts.body), Ok(laws));
        assert_eq!(serde_json::from_str::<Facts>(&parts.info.unwrap()).unwrap(), facts);
    }

    #[test]
    fn what_is_not_laws_is_named() {
        for (text, said) in [
            ("", "laws"),
            ("laws: {}", "empty"),
            // The figures of one test.
            ("host:\n  peak_allocated: 4096", "unknown field `host`"),
            ("laws:\n  host:\n    peak_allocated: many", "`many` is not a law"),
            ("laws:\n  host:\n    peak: '1'", "peak_allocated"),
            ("<<<<<<< ours\nlaws:\n  host:\n    growth: '0'", "conflict"),
        ] {
            let error = Laws::from_yaml(text).expect_err(text);
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
