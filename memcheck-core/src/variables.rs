//! All environment variables that memcheck reads. Each must be declared here, so that `--help`,
//! `doctor` and the documentation are complete.
//!
//! A `MEMCHECK_` variable of a limit is weaker than a flag, and stronger than the configuration and
//! the attribute.

use crate::limits::Layer;
use crate::settings::{Written, WrittenError};

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
    meaning: "true or false: write nothing into the source tree, as --ci",
};
/// The condition under which tests are run with call stacks.
pub const EXPLAIN: Variable = Variable {
    name: "MEMCHECK_EXPLAIN",
    meaning: "never, failed or always: when call sites are looked for, as --explain",
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
    meaning: "simulated machine where --device names no card: h200, 2xrtx4090,capacity=8GiB",
};
/// Faults that the simulated device produces on request.
pub const SIM_FAULTS: Variable = Variable {
    name: "MEMCHECK_SIM_FAULTS",
    meaning: "faults of the simulated device: oom-at=N, free-fails=N, lost-at=N and others",
};
/// Other processes on the simulated machine.
pub const SIM_PROCESSES: Variable = Variable {
    name: "MEMCHECK_SIM_PROCESSES",
    meaning: "processes of others on the simulated machine: PID:NAME:SIZE, several separated by commas",
};
/// Threads of a test's rayon pool. The variable belongs to rayon; memcheck reads and sets it.
pub const RAYON_NUM_THREADS: Variable = Variable {
    name: "RAYON_NUM_THREADS",
    meaning: "threads of a test's rayon pool; set to `threads` of the configuration where unset",
};

/// The limits, as `MEMCHECK_<LIMIT>`.
pub const LIMITS: &[Variable] = &[
    Variable { name: "MEMCHECK_MAX_GROWTH", meaning: "limit max_growth, as --max-growth" },
    Variable { name: "MEMCHECK_MAX_PEAK", meaning: "limit max_peak, as --max-peak" },
    Variable { name: "MEMCHECK_MAX_RETAINED", meaning: "limit max_retained, as --max-retained" },
    Variable {
        name: "MEMCHECK_MAX_ALLOCATIONS",
        meaning: "limit max_allocations, as --max-allocations",
    },
    Variable {
        name: "MEMCHECK_MAX_RESERVED_GROWTH",
        meaning: "limit max_reserved_growth, as --max-reserved-growth",
    },
    Variable { name: "MEMCHECK_FITS", meaning: "what a test must fit into, as --fits" },
    Variable { name: "MEMCHECK_ITERATIONS", meaning: "measured iterations, as --iterations" },
    Variable {
        name: "MEMCHECK_WARMUP",
        meaning: "iterations before the measured ones, as --warmup",
    },
    Variable {
        name: "MEMCHECK_MAX_ITERATIONS",
        meaning: "measured iterations of an undecided test at most, as --max-iterations",
    },
    Variable {
        name: "MEMCHECK_EVIDENCE",
        meaning: "how long an undecided test is followed, as --evidence",
    },
    Variable {
        name: "MEMCHECK_TOLERANCE",
        meaning: "tolerance against the baseline, as --tolerance",
    },
    Variable { name: "MEMCHECK_TIMEOUT", meaning: "time-out of a test, as --timeout" },
];

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
/// The paths of libcupti in Python's CUDA wheels, separated by colons. The command sets it; users
/// should not.
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
    pub fn new(name: &'static str, why: impl std::fmt::Display) -> Self {
        Self { name, why: why.to_string() }
    }
}

/// The layer of the environment. The parameter `get` returns the value of a variable, so that this
/// function is pure.
///
/// # Errors
/// A variable is set to a value that is not valid for its limit.
pub fn layer(get: impl Fn(&str) -> Option<String>) -> Result<Layer, VariableError> {
    fn read<T: std::str::FromStr<Err: std::fmt::Display>>(
        get: &impl Fn(&str) -> Option<String>,
        name: &'static str,
    ) -> Result<Option<T>, VariableError> {
        get(name)
            .filter(|text| !text.is_empty())
            .map(|text| text.parse().map_err(|error| VariableError::new(name, error)))
            .transpose()
    }
    let written = Written {
        max_growth: read(&get, "MEMCHECK_MAX_GROWTH")?,
        max_peak: read(&get, "MEMCHECK_MAX_PEAK")?,
        max_retained: read(&get, "MEMCHECK_MAX_RETAINED")?,
        max_allocations: read(&get, "MEMCHECK_MAX_ALLOCATIONS")?,
        max_reserved_growth: read(&get, "MEMCHECK_MAX_RESERVED_GROWTH")?,
        fits: read(&get, "MEMCHECK_FITS")?,
        iterations: read(&get, "MEMCHECK_ITERATIONS")?,
        warmup: read(&get, "MEMCHECK_WARMUP")?,
        max_iterations: read(&get, "MEMCHECK_MAX_ITERATIONS")?,
        evidence: read(&get, "MEMCHECK_EVIDENCE")?,
        tolerance: read(&get, "MEMCHECK_TOLERANCE")?,
        timeout: read(&get, "MEMCHECK_TIMEOUT")?,
        ..Written::default()
    };
    Layer::try_from(written).map_err(|error| match error {
        WrittenError::NoIterations => VariableError::new("MEMCHECK_ITERATIONS", error),
        WrittenError::NoMaxIterations => VariableError::new("MEMCHECK_MAX_ITERATIONS", error),
        WrittenError::Evidence(_) => VariableError::new("MEMCHECK_EVIDENCE", error),
        other => VariableError::new("MEMCHECK_TIMEOUT", other),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_variable_is_read() {
        let layer = layer(|name| {
            Some(match name {
                "MEMCHECK_TOLERANCE" => "2%".to_owned(),
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
