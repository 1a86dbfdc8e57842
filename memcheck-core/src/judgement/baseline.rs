//! The accepted figures and facts of a snapshot, compared with a record.

mod holders;
mod laws;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::finding::Code;
use super::snapshot::SnapshotParts;
use super::yaml;
use crate::measurement::phase;
use crate::measurement::record::{Facts, Metrics, Record};
use crate::space::Space;
use crate::tolerance::Tolerance;

pub use crate::measurement::figures::Figures;
pub use holders::{HolderChanges, Holders};
pub use laws::Laws;

/// Version of the snapshot format. A snapshot of another version cannot be read.
pub const VERSION: u32 = 1;

/// The names of the figures that a baseline keeps.
pub const FIGURES: [&str; 6] =
    ["allocated_total", "allocations", "growth", "peak_allocated", "retained", "setup"];

#[derive(Debug, Default, Serialize, Deserialize)]
struct SpaceEntry {
    #[serde(flatten)]
    figures: BTreeMap<String, u64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    peak_holders: BTreeMap<String, u64>,
}

/// The reason why the text of a snapshot is not a map of figures.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FiguresError {
    /// The text contains conflict markers of a merge.
    #[error("it contains merge conflict markers")]
    Conflict,
    /// The text is not the expected YAML.
    #[error("it is not a map of figures: {0}")]
    Yaml(String),
    /// A figure is missing, because the file was truncated or edited.
    #[error("it lacks the figure `{1}` of {0}")]
    Lacking(Space, String),
    /// A figure that this version does not know.
    #[error("it has the figure `{0}`, which this version does not know")]
    Unknown(String),
}

impl Figures {
    /// The figures that a baseline accepts: `allocated` of the judged spaces, without small blocks
    /// on the host, the C heap and the process, which change with patch releases of libraries, and
    /// without the host of a test on a GPU.
    pub fn of(record: &Record) -> Self {
        Self(
            record
                .judged
                .iter()
                .filter(|space| **space != Space::HostSmall && !record.has_own_limits(**space))
                .filter_map(|space| Some((*space, record.spaces.get(space)?)))
                .map(|(space, measured)| {
                    let figures = gated(space, &measured.metrics);
                    let whole = figures.into_iter().map(|(name, value)| (name.to_owned(), value));
                    let phases = measured.phases.iter();
                    let of_phases = phases.flat_map(|(name, figures)| figures.named(name));
                    (space, whole.chain(of_phases).collect())
                })
                .collect(),
        )
    }

    /// Those of them that the test has measured: a baseline has a growth of 0 of a body that did not
    /// iterate, which is no figure of a report.
    pub fn measured(record: &Record) -> Self {
        let mut figures = Self::of(record);
        let is_growth =
            |name: &str| phase::split(name).map_or(name, |(_, figure)| figure) == "growth";
        if !record.measures_growth() {
            figures.0.values_mut().for_each(|of_space| of_space.retain(|name, _| !is_growth(name)));
        }
        figures
    }

    /// Copies the figures with these `names` into a record of another run of the same test.
    pub fn put(&self, names: &[&str], record: &mut Record) {
        for (space, measured) in &mut record.spaces {
            let Some(figures) = self.0.get(space) else { continue };
            let metrics = &mut measured.metrics;
            for (name, own) in [
                ("growth", &mut metrics.growth),
                ("peak_allocated", &mut metrics.peak_allocated),
                ("retained", &mut metrics.retained),
            ] {
                if let Some(&figure) = figures.get(name).filter(|_| names.contains(&name)) {
                    *own = figure;
                }
            }
            let again = figures.get("retained_again").filter(|_| names.contains(&"retained_again"));
            measured.retained_again = again.copied().or(measured.retained_again);
        }
    }

    /// Serializes these figures and the holders of the memory at the peak.
    pub fn to_yaml(&self, holders: &Holders) -> String {
        let body: BTreeMap<Space, SpaceEntry> = self
            .0
            .iter()
            .map(|(space, figures)| {
                let peak_holders = holders.0.get(space).cloned().unwrap_or_default();
                (*space, SpaceEntry { figures: figures.clone(), peak_holders })
            })
            .collect();
        yaml::write(&body)
    }

    /// Parses the body of a snapshot, which must be a complete map of known figures.
    pub fn from_yaml(text: &str) -> Result<Self, FiguresError> {
        if has_conflict_markers(text) {
            return Err(FiguresError::Conflict);
        }
        let body: BTreeMap<Space, SpaceEntry> = yaml::read(text).map_err(FiguresError::Yaml)?;
        let figures = Self(body.into_iter().map(|(space, entry)| (space, entry.figures)).collect());
        for (space, by_name) in &figures.0 {
            let known = gated(*space, &Metrics::default());
            let is_known = |name: &str| known.contains_key(name) || phase::split(name).is_some();
            if let Some(name) = by_name.keys().find(|name| !is_known(name)) {
                return Err(FiguresError::Unknown(name.clone()));
            }
            if let Some(name) = known.keys().find(|name| !by_name.contains_key(**name)) {
                return Err(FiguresError::Lacking(*space, (*name).to_owned()));
            }
        }
        if figures.0.is_empty() {
            return Err(FiguresError::Yaml("it is empty".to_owned()));
        }
        Ok(figures)
    }
}

/// True if a text contains conflict markers of a merge.
pub fn has_conflict_markers(text: &str) -> bool {
    text.lines().any(|line| {
        ["<<<<<<< ", ">>>>>>> "].iter().any(|marker| line.starts_with(marker)) || line == "======="
    })
}

/// A host has only live bytes: its other figures depend on how rayon splits its work.
fn gated(space: Space, metrics: &Metrics) -> BTreeMap<&'static str, u64> {
    let mut figures = BTreeMap::from([
        ("growth", metrics.growth),
        ("peak_allocated", metrics.peak_allocated),
        ("retained", metrics.retained),
        ("setup", metrics.setup),
    ]);
    if space != Space::Host {
        figures.insert("allocated_total", metrics.allocated_total);
        figures.insert("allocations", metrics.allocations);
    }
    figures
}

/// The baseline that a record is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Baseline {
    /// The test keeps no baseline (`baseline = false`).
    Off,
    /// The snapshot file does not exist.
    Missing,
    /// The snapshot file cannot be read, for the reason in the text.
    Corrupt(String),
    /// The snapshot file was read.
    Found {
        /// Its figures.
        figures: Figures,
        /// The holders of the memory at the peak.
        holders: Holders,
        /// Its header.
        facts: Facts,
    },
}

impl Baseline {
    /// Converts the result of reading a snapshot file.
    pub fn from_file(read: std::io::Result<String>) -> Self {
        match read {
            Ok(text) => Self::from_text(&text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Self::Missing,
            Err(error) => Self::Corrupt(error.to_string()),
        }
    }

    /// Parses the text of a snapshot file.
    pub fn from_text(text: &str) -> Self {
        if has_conflict_markers(text) {
            return Self::Corrupt(FiguresError::Conflict.to_string());
        }
        match SnapshotParts::of(text) {
            Ok(parts) => Self::from_parts(parts.body, parts.info.as_deref()),
            Err(error) => Self::Corrupt(error.to_string()),
        }
    }

    /// Parses the body and the header (as JSON) of a snapshot.
    pub fn from_parts(body: &str, header: Option<&str>) -> Self {
        let Some(header) = header else {
            return Self::Corrupt("its header has no `info`".to_owned());
        };
        // Checked first, because a header of another version may have other fields.
        #[derive(Deserialize)]
        struct SnapshotVersion {
            memcheck: u32,
        }
        match serde_json::from_str::<SnapshotVersion>(header) {
            Ok(SnapshotVersion { memcheck }) if memcheck != VERSION => {
                return Self::Corrupt(format!(
                    "it has version {memcheck} of the format, but this memcheck reads version \
                     {VERSION}"
                ));
            }
            Ok(_) => {}
            Err(error) => return Self::Corrupt(format!("its header cannot be parsed: {error}")),
        }
        let figures = match Figures::from_yaml(body) {
            Ok(figures) => figures,
            Err(error) => return Self::Corrupt(error.to_string()),
        };
        match serde_json::from_str(header) {
            Ok(facts) => Self::Found { figures, holders: Holders::from_yaml(body), facts },
            Err(error) => Self::Corrupt(format!("its header cannot be parsed: {error}")),
        }
    }
}

/// The facts that differ between two headers, as the end of a sentence about the older one:
/// `measured with another version of candle (0.10.0 -> 0.11.1)`. `None` if no fact differs.
pub fn other_conditions(then: &Facts, now: &Facts) -> Option<String> {
    let none = || "none".to_owned();
    let threads = |facts: &Facts| facts.threads.map_or_else(none, |n| n.to_string());
    let dtype = |facts: &Facts| facts.dtype.clone().unwrap_or_else(none);
    let arch = |facts: &Facts| facts.arch.clone().unwrap_or(Facts::USUAL_ARCH.to_owned());
    let features = |facts: &Facts| facts.features.clone().unwrap_or_else(none);
    let differing: Vec<String> = [
        ("version of candle", then.candle.clone(), now.candle.clone()),
        ("build profile", then.profile.clone(), now.profile.clone()),
        ("number of iterations", then.iterations.to_string(), now.iterations.to_string()),
        ("number of warm-up iterations", then.warmup.to_string(), now.warmup.to_string()),
        ("number of threads", threads(then), threads(now)),
        ("dtype", dtype(then), dtype(now)),
        ("processor architecture", arch(then), arch(now)),
        ("set of features for the GPU", features(then), features(now)),
    ]
    .into_iter()
    .filter(|(_, then, now)| then != now)
    .map(|(name, then, now)| format!("another {name} ({then} -> {now})"))
    .collect();
    (!differing.is_empty()).then(|| format!("measured with {}", differing.join(" and ")))
}

/// True if the figures of a record would change its baseline: there is none of the same conditions,
/// or a figure is outside the tolerance.
pub fn is_new(record: &Record, baseline: &Baseline) -> bool {
    let Baseline::Found { figures, facts, .. } = baseline else {
        return *baseline != Baseline::Off;
    };
    *facts != record.facts
        || !changes(figures, &Figures::of(record), record.limits.tolerance.value).is_empty()
}

/// One figure that is outside the tolerance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaselineChange {
    /// The space.
    pub space: Space,
    /// The name of the figure.
    pub figure: String,
    /// The accepted value; `None` if the baseline lacks the figure.
    pub then: Option<u64>,
    /// The measured value; `None` if the record lacks the figure.
    pub now: Option<u64>,
}

/// The absolute part of a tolerance is in bytes, so for a count only the relative part applies.
pub(crate) fn tolerance_of(figure: &str, tolerance: Tolerance) -> Tolerance {
    if figure == "allocations" { Tolerance { bytes: 0, ..tolerance } } else { tolerance }
}

/// The finding of a figure above its baseline; `None` for a figure that is kept for information only.
pub(crate) fn regression_of(figure: &str) -> Option<Code> {
    let metric = phase::split(figure).map_or(figure, |(_, metric)| metric);
    match metric {
        "peak_allocated" => Some(Code::PeakRegression),
        "allocations" => Some(Code::AllocationsRegression),
        "growth" => Some(Code::GrowthRegression),
        // The others, such as `setup`, change the peak or the allocations if they matter.
        _ => None,
    }
}

/// The largest value that does not exceed the accepted value `then` and its tolerance; `None` if no
/// baseline limits the figure.
pub fn ceiling(figure: &str, then: u64, tolerance: Tolerance) -> Option<u64> {
    regression_of(figure).map(|_| tolerance_of(figure, tolerance).ceiling(then))
}

/// The figures of `now` that differ from `then`, up or down, by more than the tolerance.
pub fn changes(then: &Figures, now: &Figures, tolerance: Tolerance) -> Vec<BaselineChange> {
    let mut keys: Vec<(Space, &String)> = Vec::new();
    for figures in [then, now] {
        for (space, by_name) in &figures.0 {
            keys.extend(by_name.keys().map(|name| (*space, name)));
        }
    }
    keys.sort();
    keys.dedup();
    let value = |figures: &Figures, space: &Space, name: &String| {
        figures.0.get(space).and_then(|by_name| by_name.get(name)).copied()
    };
    keys.into_iter()
        .filter_map(|(space, name)| {
            let (then, now) = (value(then, &space, name), value(now, &space, name));
            let allowed = tolerance_of(name, tolerance);
            let within = match (then, now) {
                (Some(then), Some(now)) => {
                    (allowed.floor(then)..=allowed.ceiling(then)).contains(&now)
                }
                _ => false,
            };
            (!within).then(|| BaselineChange { space, figure: name.clone(), then, now })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(text: &str) -> Figures {
        Figures::from_yaml(text).unwrap()
    }

    #[test]
    fn a_header_without_an_architecture_is_one_of_x86_64() {
        let text = r#"{"memcheck":1,"candle":"0.11.1","profile":"debug","iterations":2,"warmup":1,"threads":1}"#;
        let then: Facts = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&then).unwrap(), text);
        let now = |arch: &str| Facts { arch: Some(arch.to_owned()), ..then.clone() };
        assert_eq!(other_conditions(&then, &now("x86_64")), None);
        let other = other_conditions(&then, &now("aarch64")).unwrap();
        assert_eq!(other, "measured with another processor architecture (x86_64 -> aarch64)");
        assert_eq!(Facts::arch_of_host().is_none(), cfg!(target_arch = "x86_64"));
    }

    #[test]
    fn figures_round_trip_sorted_by_name() {
        let text = "cuda:0:\n  allocated_total: 9\n  allocations: 1\n  growth: 0\n  peak_allocated: 12\n  retained: 0\n  setup: 4";
        assert_eq!(figures(text).to_yaml(&Holders::default()), text);
    }

    #[test]
    fn text_that_is_not_figures_is_rejected_with_its_reason() {
        for (text, reason) in [
            ("", "empty"),
            ("host:\n  peak_allocated: many", "invalid type"),
            ("host:\n  peak_allocatd: 3", "peak_allocatd"),
            ("<<<<<<< ours\nhost:\n  growth: 0\n=======\n>>>>>>> theirs", "conflict"),
            ("disk:\n  growth: 0", "disk"),
            ("host:\n  growth: 0", "peak_allocated"),
        ] {
            let error = Figures::from_yaml(text).expect_err(text).to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn a_change_is_a_figure_above_or_below_the_tolerance() {
        let with = |allocations: u64, peak: u64| {
            figures(&format!(
                "cuda:0:\n  allocated_total: 9\n  allocations: {allocations}\n  growth: 0\n  \
                 peak_allocated: {peak}\n  retained: 0\n  setup: 4"
            ))
        };
        let (then, now) = (with(100, 1000), with(101, 1010));
        let named = |tolerance: &str| {
            let tolerance = tolerance.parse().unwrap();
            changes(&then, &now, tolerance).into_iter().map(|c| c.figure).collect::<Vec<_>>()
        };
        assert_eq!(named("0%"), ["allocations", "peak_allocated"]);
        assert_eq!(named("1%"), Vec::<String>::new());
        assert_eq!(named("10 B"), ["allocations"]);
        assert_eq!(changes(&now, &then, Tolerance::NONE).len(), 2);
    }

    #[test]
    fn a_baseline_limits_peak_growth_and_allocations_only() {
        let tolerance = "10% | 8 B".parse().unwrap();
        let ceilings = FIGURES.map(|figure| ceiling(figure, 100, tolerance));
        // `allocated_total`, `allocations`, `growth`, `peak_allocated`, `retained`, `setup`.
        assert_eq!(ceilings, [None, Some(110), Some(110), Some(110), None, None]);
        assert_eq!(ceiling("decode/peak_allocated", 10, tolerance), Some(18));
        assert_eq!(ceiling("decode/live_at_start", 10, tolerance), None);
    }

    #[test]
    fn a_header_without_a_dtype_is_that_of_a_test_without_one() {
        let header =
            r#"{"memcheck":1,"candle":"0.11.1","profile":"debug","iterations":10,"warmup":2"#;
        let facts = |rest: &str| serde_json::from_str::<Facts>(&format!("{header}{rest}")).unwrap();
        let (old, new) = (facts("}"), facts(r#","dtype":"f16"}"#));
        let conditions = other_conditions(&old, &new);
        assert_eq!(conditions.as_deref(), Some("measured with another dtype (none -> f16)"));
        assert_eq!(other_conditions(&old, &facts("}")), None);
        assert!(!serde_json::to_string(&old).unwrap().contains("dtype"));
    }

    #[test]
    fn another_feature_of_the_package_is_another_program() {
        let header = r#"{"memcheck":1,"candle":"0.11.1","profile":"debug","iterations":10"#;
        let facts = |rest: &str| {
            serde_json::from_str::<Facts>(&format!(r#"{header},"warmup":2{rest}}}"#)).unwrap()
        };
        let (off, on) = (facts(""), facts(r#","features":"cuda""#));
        assert_eq!(
            other_conditions(&off, &on).as_deref(),
            Some("measured with another set of features for the GPU (none -> cuda)")
        );
        assert_eq!(other_conditions(&on, &on), None);
        assert!(!serde_json::to_string(&off).unwrap().contains("features"));
    }

    #[test]
    fn another_version_is_reported_before_its_fields_are_parsed() {
        let body = "host:\n  growth: 0";
        let newer = Baseline::from_parts(body, Some(r#"{"memcheck": 9, "unheard": true}"#));
        assert!(matches!(newer, Baseline::Corrupt(why) if why.contains("version 9")));
        assert!(matches!(Baseline::from_parts(body, None), Baseline::Corrupt(_)));
    }
}
