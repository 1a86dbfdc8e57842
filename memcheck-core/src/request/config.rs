//! The configuration file `.config/memcheck.toml`, as text: the caller must read the file.
//!
//! ```toml
//! device = ["sim:h200"]         # what bare `cargo memcheck` runs on
//! threads = 1                   # RAYON_NUM_THREADS of a test, where unset
//! runner = "srun --gres=gpu:1"  # what starts each test process; nothing, where unset
//! baselines = "../baselines"    # directory of the baselines; next to the tests, where unset
//! package_cuda = true           # builds for a GPU switch on the package's own feature for CUDA
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
//!
//! With features for a kind of device, `device` is a table:
//!
//! ```toml
//! [device]
//! run = ["sim:h200", "cpu"]     # what bare `cargo memcheck` runs on
//!
//! [device.sim]                  # or device.cuda, device.cpu
//! features = ["cuda"]           # of the packages, for this kind of device
//! ```

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use self::file::ConfigFile;
use crate::device::{Family, Request};
use crate::judgement::finding::{Code, Level};
use crate::limits::{Layer, Limits, Source};
use crate::size::Size;

mod devices;
mod file;

pub use devices::FeatureLists;

/// The path of the file, relative to the workspace root.
pub const PATH: &str = ".config/memcheck.toml";

/// One thread makes baselines from a laptop and from CI comparable, and lets tests run in parallel.
pub const DEFAULT_THREADS: u32 = 1;

/// One `[[override]]`.
#[derive(Debug, Clone)]
pub struct Override {
    test: Option<file::TestPattern>,
    package: Option<String>,
    device: Option<Family>,
    /// The limits that it sets.
    pub layer: Layer,
}

/// The configuration of a workspace.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// The devices to run on if the command line names none.
    pub devices: Vec<Request>,
    /// `[device.sim] features` and its siblings.
    pub features: FeatureLists,
    /// False if a build for a GPU must not switch on the package's own feature for CUDA.
    pub package_cuda: Option<bool>,
    /// Threads of a test's rayon pool.
    pub threads: Option<u32>,
    /// The command that starts each test process, not yet split into arguments.
    pub runner: Option<String>,
    /// The folder of the baselines, relative to the workspace.
    pub baselines: Option<PathBuf>,
    /// `[default]`.
    pub default: Layer,
    /// `[[override]]`, in the order of the file. A later override takes precedence.
    pub overrides: Vec<Override>,
    /// `[findings]`.
    pub levels: BTreeMap<Code, Level>,
}

/// The reason why a text is not a valid configuration, with the position in the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(String);

impl From<toml::de::Error> for ConfigError {
    fn from(error: toml::de::Error) -> Self {
        Self(error.to_string().trim_end().to_owned())
    }
}

/// The test whose limits are resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Subject<'a> {
    /// The cargo package.
    pub package: &'a str,
    /// The path of the test in its binary: `llama::kv_cache`.
    pub test: &'a str,
    /// The family of the device that it runs on.
    pub family: Family,
}

impl Config {
    /// Parses the file. Unknown keys are errors, because a misspelled limit must not be ignored.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let ConfigFile {
            device,
            package_cuda,
            threads,
            runner,
            baselines,
            default,
            overrides,
            findings,
        } = toml::from_str(text)?;
        Ok(Self {
            devices: device.run,
            features: device.features,
            package_cuda,
            threads,
            runner,
            baselines,
            default,
            overrides,
            levels: findings.0,
        })
    }

    /// From the weakest: `[default]`, attribute, `[[override]]`s, environment, flags.
    pub fn limits(
        &self,
        subject: Subject<'_>,
        attribute: &Layer,
        environment: &Layer,
        flags: &Layer,
    ) -> Limits {
        Limits::resolve(subject.family, self.layers(subject, attribute, environment, flags))
    }

    /// The limits that need no iterations, for a profiled program. One that no source sets is off,
    /// because the system frees the memory that a program holds when it ends.
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
        let part: Vec<(Source, Layer)> = self
            .layers(subject, &attribute, environment, flags)
            .map(|(source, layer)| (source, layer.clone().for_program()))
            .collect();
        let part = part.iter().map(|(source, layer)| (source.clone(), layer));
        let built_in = std::iter::once((Source::BuiltIn, &unlimited));
        Limits::resolve(subject.family, built_in.chain(part))
    }

    /// The layers of all sources for `subject`, from the weakest to the strongest.
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

    /// The overrides that match `subject`, each with its number, counted from 1.
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
    /// The package that the override is restricted to, if it names one.
    pub fn package(&self) -> Option<&str> {
        self.package.as_deref()
    }

    /// True if this override matches `subject`.
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
    fn every_key_of_the_documented_example_is_parsed() {
        let config = Config::parse(
            r#"
            device = ["sim:h200", "cpu"]
            threads = 2
            runner = "srun --gres=gpu:1"
            baselines = "../baselines"
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
        assert_eq!(config.baselines, Some("../baselines".into()));
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
    fn features_by_kind_of_device_leave_the_devices_as_they_are() {
        let config = |text: &str| Config::parse(text).unwrap();
        let both = config(
            "package_cuda = false\n[device]\nrun = [\"sim:h200\", \"cpu\"]\n[device.sim]\n\
             features = [\"cuda\", \"app/fast\"]\n[device.cpu]\nfeatures = []",
        );
        assert_eq!(both.devices.len(), 2);
        let FeatureLists { cpu, sim, cuda } = both.features;
        assert_eq!(sim, Some(vec!["cuda".to_owned(), "app/fast".to_owned()]));
        assert_eq!((cpu, cuda, both.package_cuda), (Some(Vec::new()), None, Some(false)));
        let only = config("[device.cuda]\nfeatures = [\"cudnn\"]");
        assert_eq!((only.devices.len(), only.features.cuda.map(|list| list.len())), (0, Some(1)));
        assert_eq!(config("device = \"cpu\"").features, FeatureLists::default());
    }

    #[test]
    fn sources_of_limits_have_the_documented_precedence() {
        let config = Config::parse(
            "[default]\niterations = 1\nwarmup = 1\nmax_growth = 1\nmax_retained = 1\n\
             [[override]]\ntest = \"a\"\nwarmup = 3\nmax_growth = 3\nmax_retained = 3",
        )
        .unwrap();
        let part = |iterations, warmup, max_growth: Option<u64>, max_retained: Option<u64>| Layer {
            iterations,
            warmup,
            max_growth: max_growth.map(Size),
            max_retained: max_retained.map(Size),
            ..Layer::default()
        };
        let limits = config.limits(
            Subject { package: "p", test: "a", family: Family::Cuda },
            &part(Some(2), Some(2), Some(2), Some(2)),
            &part(None, None, Some(4), Some(4)),
            &part(None, None, None, Some(5)),
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
    fn unknown_and_invalid_values_are_errors_with_a_position() {
        for (text, part, at) in [
            ("max_growth = 3", "unknown field", (1, 1)),
            ("[default]\nmax_grwth = 3", "unknown field", (2, 1)),
            ("[default]\nmax_growth = \"3 parsec\"", "parsec", (2, 14)),
            ("[default]\nmax_growth = 3\nmax_growth_mb = 1.0", "`max_growth_mb` state", (3, 17)),
            ("[default]\nmax_peak_mb = -1.0", "a number of MiB, zero or more", (2, 15)),
            ("threads = 2\n[default]\n\niterations = 0", "at least 1", (4, 14)),
            ("[default]\ntimeout = \"soon\"", "`soon` is not a duration", (2, 11)),
            ("[default]\nfits = \"rtx4091\"", "did you mean `rtx4090`", (2, 8)),
            ("[default]\nmax_peak = \"60% x other\"", "`60%` is not a factor", (2, 12)),
            ("[default]\nmax_growth = \"0.6 x other\"", "is not a size", (2, 14)),
            ("[default]\ntest = \"a\"", "unknown field `test`", (2, 1)),
            ("[[override]]\ntest = \"a\"\nfits = \"a100\"", "`a100`", (3, 8)),
            ("[[override]]\ntest = \"a\"\nmax_peek = 3", "unknown field `max_peek`", (3, 1)),
            ("[[override]]\ntset = \"a\"", "`baseline`, `test`, `package`, `device`", (2, 1)),
            ("[[override]]\ntest = 3", "expected a string", (2, 8)),
            ("[[override]]\ndevice = \"gpu\"", "unknown variant `gpu`", (2, 10)),
            ("[[override]]\ntest = \"a\"\n[[override]]\nmax_growth = 3", "use [default]", (3, 1)),
            (
                "[[override]]\ntest = \"a\"\n\n[[override]]\ntest = \"b\"\niterations = 0",
                "at least 1",
                (6, 14),
            ),
            ("[[override]]\ntest = \"a[\"", "does not close `[`", (2, 8)),
            ("[findings]\nleek = \"deny\"", "`leek` is not a finding: leak", (2, 1)),
            ("[findings]\nleak = \"allow\"", "`leak` always fails its test", (2, 8)),
            ("[findings]\nimproved = \"no\"", "unknown variant `no`", (2, 12)),
            ("device = \"gpu\"", "sim:CARD", (1, 10)),
            ("device = [\"cpu\", \"gpu\"]", "sim:CARD", (1, 10)),
            ("device = 3", "a device or a list of devices", (1, 10)),
            ("[device]\nrun = \"gpu\"", "sim:CARD", (2, 7)),
            ("[device]\nruns = \"cpu\"", "unknown field `runs`", (2, 1)),
            ("[device.gpu]\nfeatures = []", "unknown field `gpu`", (1, 9)),
            ("[device.sim]\nfeature = []", "unknown field `feature`", (2, 1)),
            ("[device.sim]\nfeatures = \"cuda\"", "expected a sequence", (2, 12)),
            ("package_cuda = 1", "expected a boolean", (1, 16)),
            ("threads = 0", "`threads` must be at least 1", (1, 11)),
            ("threads", "expected", (1, 8)),
        ] {
            let error = Config::parse(text).expect_err(text).to_string();
            assert!(error.contains(part), "{text}\n{error}");
            let place = format!("line {}, column {}\n", at.0, at.1);
            assert!(error.contains(&place), "{text}\n{place}{error}");
        }
    }
}
