//! All environment variables that memcheck reads, so that `--help` and `doctor` are complete. That
//! of a limit is weaker than a flag, and stronger than configuration and attribute.

use std::ffi::OsString;
use std::fmt::Display;

use crate::limits::Layer;
use crate::limits::kinds::{
    AtLeastOne, Bytes, Count, Deviation, Faults, Kept, LimitKind, Number, Optional, Room, Share,
    Switch, Time,
};
use crate::{spelling, with_limits};

/// A variable that users set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// Its meaning in one line, for `--help`.
    pub meaning: &'static str,
}

/// The devices to run on, in the syntax of `--device`; several are separated by commas.
pub const DEVICE: Variable = Variable {
    name: "MEMCHECK_DEVICE",
    meaning: "devices to run on, as --device; several separated by commas",
};
/// The configuration file, instead of `.config/memcheck.toml`.
pub const CONFIG_FILE: Variable =
    Variable { name: "MEMCHECK_CONFIG_FILE", meaning: "configuration file, as --config-file" };
/// `true` or `false`: true if memcheck must not write into the source tree.
pub const CI: Variable = Variable {
    name: "MEMCHECK_CI",
    meaning: "true or false: leave the source tree unchanged, as --ci",
};
/// The folder of the baselines, if they are not next to their sources. A relative path is one of the
/// workspace, because a test under a plain harness starts in the folder of its package.
pub const BASELINES: Variable = Variable {
    name: "MEMCHECK_BASELINES",
    meaning: "directory of the baselines, as --baselines, but relative to the workspace",
};
/// The condition under which tests are run with call stacks.
pub const EXPLAIN: Variable = Variable {
    name: "MEMCHECK_EXPLAIN",
    meaning: "never, failed or always: when call sites are resolved, as --explain",
};
/// The command that starts each test process.
pub const RUNNER: Variable = Variable {
    name: "MEMCHECK_RUNNER",
    meaning: "command that starts each test process, as --runner",
};
/// Folders with shared libraries that tests need.
pub const LIBRARY_PATH: Variable = Variable {
    name: "MEMCHECK_LIBRARY_PATH",
    meaning: "directories with shared libraries, as --library-path; several separated by colons",
};
/// Features of the packages in builds for a GPU.
pub const FEATURES_GPU: Variable = Variable {
    name: "MEMCHECK_FEATURES_GPU",
    meaning: "features of the packages in builds for a GPU, as --features-gpu",
};
/// `true` or `false`: true if builds for a GPU leave the packages' own features off.
pub const NO_PACKAGE_CUDA: Variable = Variable {
    name: "MEMCHECK_NO_PACKAGE_CUDA",
    meaning: "true or false: leave the package's own feature for CUDA off, as --no-package-cuda",
};
/// The simulated machine if the device is `sim` without a card.
pub const SIM: Variable = Variable {
    name: "MEMCHECK_SIM",
    meaning: "simulated machine if --device does not name a card: h200, 2xrtx4090,capacity=8GiB",
};
/// Faults that the simulated device produces on request.
pub const SIM_FAULTS: Variable = Variable {
    name: "MEMCHECK_SIM_FAULTS",
    meaning: "faults of the simulated device: oom-at=N, free-fails=N, lost-at=N and others",
};
/// Other processes on the simulated machine.
pub const SIM_PROCESSES: Variable = Variable {
    name: "MEMCHECK_SIM_PROCESSES",
    meaning: "other processes on the simulated machine: PID:NAME:SIZE, several separated by commas",
};
/// Threads of a test's rayon pool. The variable belongs to rayon; memcheck reads and sets it.
pub const RAYON_NUM_THREADS: Variable = Variable {
    name: "RAYON_NUM_THREADS",
    meaning: "threads of a test's rayon pool; if unset, `threads` of the configuration",
};

/// Makes the variables of the limits, and their reader, from the table of limits.
macro_rules! define {
    ($(
        $(#[$doc:meta])+
        $name:ident $(or $mib:ident)?: $kind:ty,
        $variable:literal, programs: $programs:literal, default: $default:expr;
    )*) => {
        /// The limits, as `MEMCHECK_<LIMIT>`.
        pub const LIMITS: &[Variable] = &[$(Variable {
            name: $variable,
            meaning: concat!("the limit `", stringify!($name), "`"),
        },)*];

        /// The layer of the environment, whose variables `get` returns.
        pub fn layer(get: impl Fn(&str) -> Option<String>) -> Result<Layer, VariableError> {
            Ok(Layer { $($name: parse(&get, $variable, <$kind>::parse)?,)* ..Layer::default() })
        }
    };
}

with_limits!(everywhere define);

/// The value of a variable, whose text `get` returns. An empty text counts as unset.
pub fn parse<T, E: Display>(
    get: impl Fn(&str) -> Option<String>,
    name: &'static str,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<Option<T>, VariableError> {
    let text = get(name).filter(|text| !text.is_empty());
    let parsed = text.map(|text| parse(&text)).transpose();
    parsed.map_err(|error| VariableError::new(name, error))
}

/// The value of [`CI`].
pub fn ci(get: impl Fn(&str) -> Option<String>) -> Result<Option<bool>, VariableError> {
    switch(get, CI)
}

/// The value of a variable that is `true` or `false`.
pub fn switch(
    get: impl Fn(&str) -> Option<String>,
    variable: Variable,
) -> Result<Option<bool>, VariableError> {
    parse(get, variable.name, |text| match text {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        other => Err(format!("`{other}` is neither true nor false")),
    })
}

/// All variables for users, for `--help`, `doctor` and the documentation.
pub fn all() -> impl Iterator<Item = Variable> {
    [
        DEVICE,
        CONFIG_FILE,
        CI,
        BASELINES,
        EXPLAIN,
        RUNNER,
        LIBRARY_PATH,
        FEATURES_GPU,
        NO_PACKAGE_CUDA,
        SIM,
        SIM_FAULTS,
        SIM_PROCESSES,
        RAYON_NUM_THREADS,
    ]
    .into_iter()
    .chain(LIMITS.iter().copied())
}

/// The beginning of the names of all variables except [`RAYON_NUM_THREADS`]. No other variable may
/// begin with it, so that a mistyped name is an error and not a limit that is not judged.
pub const PREFIX: &str = "MEMCHECK_";

/// Refuses the names of the environment `set` that begin with [`PREFIX`] and that memcheck does not
/// read. An empty value counts as unset.
pub fn check_names(
    set: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<(), UnknownVariable> {
    let is_known = |name: &str| all().any(|known| known.name == name) || INTERNAL.contains(&name);
    let set = set.into_iter().filter(|(_, value)| !value.is_empty());
    let names = set.map(|(name, _)| name.to_string_lossy().into_owned());
    // The order of the environment differs between machines.
    let first = names.filter(|name| name.starts_with(PREFIX) && !is_known(name)).min();
    first.map_or(Ok(()), |name| Err(UnknownVariable { name }))
}

/// A variable with the beginning of memcheck's own, which is none of them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("environment variable {name}: memcheck has no variable of this name")]
pub struct UnknownVariable {
    name: String,
}

impl UnknownVariable {
    /// The next step: the name that is most similar, or the list of all names.
    pub fn hint(&self) -> String {
        let own = |name: &str| name.strip_prefix(PREFIX).unwrap_or_default().to_owned();
        let typed = own(&self.name);
        let edits = |known: &Variable| spelling::edits(&typed, &own(known.name));
        let near = all().min_by_key(edits);
        match near.filter(|near| edits(near) <= spelling::most_edits(&typed)) {
            Some(near) => format!("did you mean `{}`?", near.name),
            None => format!(
                "`cargo memcheck --help` lists all variables; a variable of another program must \
                 not begin with {PREFIX}: rename it or unset it"
            ),
        }
    }
}

/// The job of a test process, as JSON. The command sets it; users should not.
pub const JOB: &str = "MEMCHECK_JOB";
/// The job of a profiled program, as JSON. The command sets it; users should not.
pub const PROGRAM: &str = "MEMCHECK_PROGRAM";
/// Paths of libcupti in Python's CUDA wheels, separated by colons. The command sets it.
pub const CUPTI: &str = "MEMCHECK_CUPTI";
/// Makes a test binary list its tests. The command sets it; users should not.
pub const LIST: &str = "MEMCHECK_LIST";
/// The path of the simulated NVML. The command sets it, and `cargo memcheck env` prints it.
pub const SIM_NVML: &str = "MEMCHECK_SIM_NVML";
/// The path of this command, which the simulated toolkit's nvcc starts. The command sets it for
/// builds, and `cargo memcheck env` prints it.
pub const COMMAND: &str = "MEMCHECK_COMMAND";

/// The variables that memcheck sets for its own processes.
const INTERNAL: [&str; 6] = [JOB, PROGRAM, CUPTI, LIST, SIM_NVML, COMMAND];

/// The reason why a variable of the environment is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("environment variable {name}: {why}")]
pub struct VariableError {
    name: &'static str,
    why: String,
}

impl VariableError {
    /// An error about the variable `name`.
    pub fn new(name: &'static str, why: impl Display) -> Self {
        Self { name, why: why.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_variable_is_read() {
        let layer = layer(|name| {
            Some(match name {
                "MEMCHECK_TOLERANCE" => "2%".to_owned(),
                "MEMCHECK_STRICT_VALUES" => "true".to_owned(),
                "MEMCHECK_TIMEOUT" | "MEMCHECK_EVIDENCE" | "MEMCHECK_MIN_TIME" => "5s".to_owned(),
                _ => "3".to_owned(),
            })
        })
        .unwrap();
        let json = serde_json::to_value(&layer).unwrap();
        assert_eq!(json.as_object().unwrap().len(), LIMITS.len());
    }

    #[test]
    fn a_wrong_value_names_its_variable() {
        for variable in LIMITS {
            let error = layer(|name| (name == variable.name).then(|| "nonsense".to_owned()));
            assert!(error.expect_err(variable.name).to_string().contains(variable.name));
        }
    }

    #[test]
    fn an_unknown_name_with_the_own_prefix_is_refused() {
        let check = |set: &[(&str, &str)]| {
            let error = check_names(set.iter().map(|(name, value)| (name.into(), value.into())));
            error.map_err(|error| (error.to_string(), error.hint()))
        };
        for known in all().map(|variable| variable.name).chain(INTERNAL) {
            assert_eq!(check(&[(known, "1")]), Ok(()), "{known}");
        }
        assert_eq!(check(&[("MEMCHECK_MAX_PEEK", ""), ("MEMCHECKER", "1"), ("CI", "1")]), Ok(()));
        for (typed, near) in [
            ("MEMCHECK_MAX_PEEK", "MEMCHECK_MAX_PEAK"),
            ("MEMCHECK_MAXGROWTH", "MEMCHECK_MAX_GROWTH"),
            ("MEMCHECK_DEVICES", "MEMCHECK_DEVICE"),
        ] {
            let (error, hint) = check(&[("MEMCHECK_Z", "1"), (typed, "1 GB")]).unwrap_err();
            assert!(error.contains(typed), "{error}");
            assert_eq!(hint, format!("did you mean `{near}`?"));
        }
        let (_, hint) = check(&[("MEMCHECK_SERVICE_HOST", "10.0.0.1")]).unwrap_err();
        assert!(hint.contains("--help"), "{hint}");
    }
}
