//! All environment variables that memcheck reads, so that `--help` and `doctor` are complete. That
//! of a limit is weaker than a flag, and stronger than configuration and attribute.

use std::fmt::Display;

use crate::limits::Layer;
use crate::limits::kinds::{
    AtLeastOne, Bytes, Count, Deviation, Faults, Kept, LimitKind, Number, Optional, Room, Share,
    Switch, Time,
};
use crate::with_limits;

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
    parse(get, CI.name, |text| match text {
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
        EXPLAIN,
        RUNNER,
        LIBRARY_PATH,
        SIM,
        SIM_FAULTS,
        SIM_PROCESSES,
        RAYON_NUM_THREADS,
    ]
    .into_iter()
    .chain(LIMITS.iter().copied())
}

/// The job of a test process, as JSON. The command sets it; users should not.
pub const JOB: &str = "MEMCHECK_JOB";
/// The job of a profiled program, as JSON. The command sets it; users should not.
pub const PROGRAM: &str = "MEMCHECK_PROGRAM";
/// Paths of libcupti in Python's CUDA wheels, separated by colons. The command sets it.
pub const CUPTI: &str = "MEMCHECK_CUPTI";
/// Makes a test binary list its tests. The command sets it; users should not.
pub const LIST: &str = "MEMCHECK_LIST";

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
                "MEMCHECK_TIMEOUT" | "MEMCHECK_EVIDENCE" => "5s".to_owned(),
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
}
