//! `.config/memcheck.toml`: what it may say, and for which tests it says it.
//!
//! Text in, typed tables out; the file is read by whoever has a workspace.
//!
//! ```toml
//! device = ["sim:h200"]         # what bare `cargo memcheck` runs on
//! threads = 1                   # RAYON_NUM_THREADS of a test, where unset
//! runner = "srun --gres=gpu:1"  # what starts each test process; nothing, where unset
//!
//! [default]                     # for every test; an attribute is stronger
//! max_growth = "64 KiB"
//! timeout = "2m"
//!
//! [[override]]                  # stronger than an attribute
//! test = "llama::*"             # a glob over the test's path
//! device = "cpu"                # optional: one family only
//! package = "app"               # optional: one package only
//! max_peak = "1 GiB"
//!
//! [findings]                    # like -D, -W and -A
//! improved = "deny"
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use globset::{Glob, GlobMatcher};
use serde::{Deserialize, Serialize};

use crate::device::{Family, Request};
use crate::finding::{Code, Level};
use crate::limits::{Layer, Limits, Source};
use crate::settings::Written;
use crate::size::Size;

/// Where the file lies below the workspace root.
pub const PATH: &str = ".config/memcheck.toml";

/// Threads of a test's rayon pool where neither configuration nor
/// environment say a number: one, so that baselines made on a laptop and in
/// CI were made alike, and so that tests can run side by side.
pub const DEFAULT_THREADS: u32 = 1;

/// The whole file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    device: Devices,
    threads: Option<u32>,
    runner: Option<String>,
    #[serde(default)]
    default: Written,
    #[serde(default, rename = "override")]
    overrides: Vec<RawOverride>,
    #[serde(default)]
    findings: BTreeMap<String, Level>,
}

/// `device = "sim"` or `device = ["sim", "cpu"]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(
    untagged,
    expecting = "a device or a list of devices: auto, cpu, sim, sim:CARD, cuda, cuda:N"
)]
enum Devices {
    #[default]
    None,
    One(Request),
    Several(Vec<Request>),
}

#[derive(Debug, Clone, Deserialize)]
struct RawOverride {
    test: Option<String>,
    package: Option<String>,
    device: Option<Family>,
    #[serde(flatten)]
    limits: toml::Table,
}

/// One `[[override]]`.
#[derive(Debug, Clone)]
pub struct Override {
    test: Option<GlobMatcher>,
    package: Option<String>,
    device: Option<Family>,
    /// What it says.
    pub layer: Layer,
}

/// The configuration of a workspace.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// Devices to run on where the command line names none.
    pub devices: Vec<Request>,
    /// Threads of a test's rayon pool.
    pub threads: Option<u32>,
    /// The command that starts each test process, as it is written: who runs
    /// tests takes it apart.
    pub runner: Option<String>,
    /// `[default]`.
    pub default: Layer,
    /// `[[override]]`, in the order of the file: a later one is stronger.
    pub overrides: Vec<Override>,
    /// `[findings]`.
    pub levels: BTreeMap<Code, Level>,
}

/// Why a text is not a configuration. The message names the place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Not TOML, an unknown key, or a value of the wrong kind.
    #[error("{0}")]
    Toml(String),
    /// A wrong value inside an `[[override]]`.
    #[error("[[override]] {number}: {why}")]
    Override {
        /// Counted from 1.
        number: usize,
        /// What is wrong with it.
        why: String,
    },
    /// A key of `[findings]` that is no code.
    #[error("[findings]: {0}")]
    Finding(String),
    /// A value that no test could run with.
    #[error("{0}")]
    Value(String),
}

/// The test that a configuration is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Subject<'a> {
    /// The cargo package.
    pub package: &'a str,
    /// The path of the test in its binary: `llama::kv_cache`.
    pub test: &'a str,
    /// What it runs on.
    pub family: Family,
}

impl Config {
    /// Reads the text of a configuration file.
    ///
    /// # Errors
    /// On anything that is not understood: nothing in the file is ignored.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let file: File =
            toml::from_str(text).map_err(|error| ConfigError::Toml(error.to_string()))?;
        let overrides = file
            .overrides
            .into_iter()
            .enumerate()
            .map(|(index, raw)| {
                Override::from_raw(raw)
                    .map_err(|why| ConfigError::Override { number: index + 1, why })
            })
            .collect::<Result<_, _>>()?;
        let levels = file
            .findings
            .into_iter()
            .map(|(code, level)| {
                let code: Code = code.parse().map_err(|error: crate::finding::CodeError| {
                    ConfigError::Finding(error.to_string())
                })?;
                code.check_level(level).map_err(|error| ConfigError::Finding(error.to_string()))?;
                Ok((code, level))
            })
            .collect::<Result<_, _>>()?;
        if file.threads == Some(0) {
            return Err(ConfigError::Value("`threads` must be at least 1".to_owned()));
        }
        Ok(Self {
            devices: match file.device {
                Devices::None => Vec::new(),
                Devices::One(request) => vec![request],
                Devices::Several(requests) => requests,
            },
            threads: file.threads,
            runner: file.runner,
            default: Layer::try_from(file.default)
                .map_err(|error| ConfigError::Value(format!("[default]: {error}")))?,
            overrides,
            levels,
        })
    }

    /// The limits in force for `subject`, from every source that may speak:
    /// `[default]` < attribute < matching `[[override]]`s < environment < flags.
    pub fn limits(
        &self,
        subject: Subject<'_>,
        attribute: &Layer,
        environment: &Layer,
        flags: &Layer,
    ) -> Limits {
        Limits::resolve(subject.family, self.layers(subject, attribute, environment, flags))
    }

    /// The limits in force for a program that is profiled, by its name: those
    /// that need no iterations, from the same sources. Nobody's silence limits
    /// it: what it leaves to the system when it ends is nobody's loss.
    pub fn program_limits(
        &self,
        subject: Subject<'_>,
        environment: &Layer,
        flags: &Layer,
    ) -> Limits {
        let unlimited = Layer {
            max_retained: Some(Size(u64::MAX)),
            timeout: Some(Duration::MAX),
            baseline: Some(false),
            ..Layer::default()
        };
        let attribute = Layer::default();
        let said: Vec<(Source, Layer)> = self
            .layers(subject, &attribute, environment, flags)
            .map(|(source, layer)| (source, layer.for_program()))
            .collect();
        let said = said.iter().map(|(source, layer)| (source.clone(), layer));
        let built_in = std::iter::once((Source::BuiltIn, &unlimited));
        Limits::resolve(subject.family, built_in.chain(said))
    }

    /// What every source says of `subject`, from the weakest to the strongest.
    fn layers<'a>(
        &'a self,
        subject: Subject<'a>,
        attribute: &'a Layer,
        environment: &'a Layer,
        flags: &'a Layer,
    ) -> impl Iterator<Item = (Source, &'a Layer)> {
        let weak = [(Source::Default, &self.default), (Source::Attribute, attribute)];
        let overrides =
            self.overrides_for(subject).map(|(number, layer)| (Source::Override(number), layer));
        let strong = [(Source::Environment, environment), (Source::Flag, flags)];
        weak.into_iter().chain(overrides).chain(strong)
    }

    /// The overrides that hold for `subject`, with their numbers from 1.
    pub fn overrides_for<'a>(
        &'a self,
        subject: Subject<'a>,
    ) -> impl Iterator<Item = (u32, &'a Layer)> {
        (1..)
            .zip(&self.overrides)
            .filter(move |(_, o)| o.matches(subject))
            .map(|(n, o)| (n, &o.layer))
    }
}

impl Override {
    fn from_raw(raw: RawOverride) -> Result<Self, String> {
        if raw.test.is_none() && raw.package.is_none() && raw.device.is_none() {
            return Err("it names no `test`, `package` or `device`; for every test, use [default]"
                .to_owned());
        }
        let test = raw
            .test
            .map(|glob| Glob::new(&glob).map(|glob| glob.compile_matcher()))
            .transpose()
            .map_err(|error| error.to_string())?;
        let written: Written =
            raw.limits.try_into().map_err(|error: toml::de::Error| error.message().to_owned())?;
        Ok(Self {
            test,
            package: raw.package,
            device: raw.device,
            layer: written
                .try_into()
                .map_err(|error: crate::settings::WrittenError| error.to_string())?,
        })
    }

    /// Whether this override holds for `subject`.
    pub fn matches(&self, subject: Subject<'_>) -> bool {
        self.test.as_ref().is_none_or(|glob| glob.is_match(subject.test))
            && self.package.as_deref().is_none_or(|package| package == subject.package)
            && self.device.is_none_or(|family| family == subject.family)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Setting;

    const SUBJECT: Subject<'_> =
        Subject { package: "app", test: "llama::kv_cache", family: Family::Cuda };

    #[test]
    fn the_example_of_the_documentation_is_read_whole() {
        let config = Config::parse(
            r#"
            device = ["sim:h200", "cpu"]
            threads = 2
            runner = "srun --gres=gpu:1"
            [default]
            max_growth = "64 KiB"
            timeout = "2m"
            [[override]]
            test = "llama::*"
            max_peak = "1 GiB"
            [[override]]
            test = "llama::*"
            device = "cpu"
            max_peak_mb = 1.5
            [findings]
            improved = "deny"
            "#,
        )
        .unwrap();
        assert_eq!(config.devices.len(), 2);
        assert_eq!(config.runner.as_deref(), Some("srun --gres=gpu:1"));
        assert_eq!(config.default.max_growth, Some(Size(65_536)));
        let on_cuda: Vec<_> = config.overrides_for(SUBJECT).map(|(number, _)| number).collect();
        assert_eq!(on_cuda, [1]);
        let on_cpu: Vec<_> = config
            .overrides_for(Subject { family: Family::Cpu, ..SUBJECT })
            .map(|(_, layer)| layer.max_peak.clone())
            .collect();
        assert_eq!(on_cpu, [Some(Size(1 << 30).into()), Some(Size(1_572_864).into())]);
        assert_eq!(config.levels.get(&Code::Improved), Some(&Level::Deny));
    }

    #[test]
    fn every_source_is_as_strong_as_the_interface_says() {
        let config = Config::parse(
            "[default]\niterations = 1\nwarmup = 1\nmax_growth = 1\nmax_retained = 1\n\
             [[override]]\ntest = \"a\"\nwarmup = 3\nmax_growth = 3\nmax_retained = 3",
        )
        .unwrap();
        let said = |iterations, warmup, max_growth: Option<u64>, max_retained: Option<u64>| Layer {
            iterations,
            warmup,
            max_growth: max_growth.map(Size),
            max_retained: max_retained.map(Size),
            ..Layer::default()
        };
        let limits = config.limits(
            Subject { package: "p", test: "a", family: Family::Cuda },
            &said(Some(2), Some(2), Some(2), Some(2)),
            &said(None, None, Some(4), Some(4)),
            &said(None, None, None, Some(5)),
        );
        assert_eq!(limits.iterations, Setting { value: 2, source: Source::Attribute });
        assert_eq!(limits.warmup, Setting { value: 3, source: Source::Override(1) });
        assert_eq!(limits.max_growth, Setting { value: 4, source: Source::Environment });
        assert_eq!(limits.max_retained, Setting { value: 5, source: Source::Flag });
    }

    #[test]
    fn a_program_has_the_limits_that_need_no_iterations() {
        let config = Config::parse(
            "[default]\nmax_growth = 1\nmax_peak = 1\n\
             [[override]]\ntest = \"tool\"\nmax_peak = 3\niterations = 3",
        )
        .unwrap();
        let subject = |test| Subject { package: "p", test, family: Family::Cuda };
        let environment = Layer { warmup: Some(9), ..Layer::default() };
        let flags = Layer { timeout: Some(Duration::from_secs(5)), ..Layer::default() };
        let limits = config.program_limits(subject("tool"), &environment, &flags);
        assert_eq!(
            limits.max_peak,
            Setting { value: Some(Size(3).into()), source: Source::Override(1) }
        );
        let timeout = Setting { value: Duration::from_secs(5), source: Source::Flag };
        assert_eq!(limits.timeout, timeout);
        for source in [&limits.max_growth.source, &limits.iterations.source, &limits.warmup.source]
        {
            assert_eq!(*source, Source::BuiltIn);
        }
        let silent = config.program_limits(subject("other"), &Layer::default(), &Layer::default());
        assert_eq!(silent.max_retained.value, u64::MAX);
        assert_eq!(silent.timeout.value, Duration::MAX);
    }

    #[test]
    fn nothing_in_the_file_is_ignored() {
        for (text, said) in [
            ("max_growth = 3", "unknown field"),
            ("[default]\nmax_grwth = 3", "unknown field"),
            ("[default]\nmax_growth = \"3 parsec\"", "parsec"),
            ("[default]\nmax_growth = 3\nmax_growth_mb = 1.0", "max_growth"),
            ("[default]\niterations = 0", "iterations"),
            ("[default]\nfits = \"rtx4091\"", "line 2"),
            ("[default]\nfits = \"rtx4091\"", "did you mean `rtx4090`"),
            ("[[override]]\ntest = \"a\"\nfits = \"a100\"", "[[override]] 1: `a100`"),
            ("[default]\nmax_peak = \"60% x other\"", "`60%` is not a factor"),
            ("[default]\nmax_growth = \"0.6 x other\"", "is not a size"),
            ("[default]\nmax_reserved_growth = 3\nmax_reserved_growth_mb = 1.0", "growth_mb`"),
            ("[[override]]\ntest = \"a\"\nmax_grwth = 3", "[[override]] 1"),
            ("[[override]]\nmax_growth = 3", "[default]"),
            ("[[override]]\ntest = \"a[\"", "[[override]] 1"),
            ("[findings]\nleek = \"deny\"", "leak"),
            ("[findings]\nleak = \"allow\"", "leak"),
            ("device = \"gpu\"", "sim:CARD"),
            ("threads = 0", "threads"),
            ("threads", "line 1"),
        ] {
            let error = Config::parse(text).expect_err(text).to_string();
            assert!(error.contains(said), "{text}\n{error}");
        }
    }
}
