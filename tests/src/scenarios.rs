//! The corpus against which detection is measured: programs that leak, the fixed twin of each, and
//! random clean programs.
//!
//! A [`Scenario`] states the expected report of its leak: the finding, a formula for the bytes per
//! iteration, the line that allocates the kept blocks, the pattern of the growth and the cause.
//! This module does not measure. The test target `detection` makes a memory test of each program,
//! the functional tests assert the findings, and the benchmark `detection` prints them as a table.
//!
//! | module | kept memory |
//! |---|---|
//! | [`graphs`] | the graph of a value (candle#1241, #3482, #3508) |
//! | [`gradients`] | gradients, in their store or out of it |
//! | [`optimizers`] | the state of an optimizer, copies of variables (#2079) |
//! | [`caches`] | key-value caches of finished requests (#2950, #2987, #3437) |
//! | [`growing`] | caches that grow with the position (#1599, #2937) |
//! | [`ratchets`] | the largest buffer that was ever needed: retained, without growth |
//! | [`views`] | a whole storage, by a small view |
//! | [`outputs`] | attention weights and hidden states |
//! | [`batches`] | batches, by a loader, a queue or a worker |
//! | [`devices`] | the memory of a reopened device, and memory whose free the driver refuses |
//! | [`kept`] | tensors, by a list, a static, a cycle or a channel |
//! | [`rhythms`] | tensors, at irregular times and in irregular sizes |
//! | [`host`] | bytes that do not belong to a tensor |
//! | [`shapes`] | no more than before, but in varying sizes: a profile remarks on it |
//! | [`clean`] | no growing memory, in patterns that resemble leaks |
//!
//! **The line** is the one below a comment `// leaks: NAME`. The compiler computes
//! [`Scenario::line`] from the source, and rejects a scenario whose comment is missing or occurs
//! twice.
//!
//! **The bytes** depend on the [`Family`]: a device counts every byte, the host only blocks of at
//! least 1 KiB ([`small_bytes`] is the difference). If a program leaks at a constant rate, the
//! figure is in bytes per iteration. If only some iterations leak, it is the mean over whole
//! periods. If the leak has no rate ([`Pattern::Growing`] and [`Pattern::Irregular`]), it is the
//! sum over the measured iterations.

pub use memcheck_core::device::Family;
pub use memcheck_core::growth::survivors::Pattern;
use memcheck_runtime::Trial;

/// `count` f32 of zero on a device. This is a macro, so that the line of a scenario is the one that
/// calls candle.
#[collapse_debuginfo(yes)]
macro_rules! zeros {
    ($count:expr, $device:expr) => {
        candle_core::Tensor::zeros($count, candle_core::DType::F32, $device)
    };
}

pub mod batches;
pub mod caches;
pub mod clean;
mod compare;
pub mod devices;
pub mod gradients;
pub mod graphs;
pub mod growing;
pub mod host;
pub mod kept;
mod line;
pub mod optimizers;
pub mod outputs;
pub mod ratchets;
pub mod rhythms;
pub mod shapes;
pub mod views;

pub use compare::Agreement;
pub use line::line_of;

/// The share of `bytes`, in blocks of less than 1 KiB, that a figure of this device includes.
pub const fn small_bytes(family: Family, bytes: u64) -> u64 {
    match family {
        Family::Cpu => 0,
        Family::Cuda => bytes,
    }
}

/// The legs on which a scenario runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runs {
    /// On the CPU and on a GPU. It is judged in the memory of that device.
    Everywhere,
    /// On a GPU only.
    OnGpu,
    /// On the CPU on every leg, because the body has no device. It is judged in the host's memory.
    OnHost,
}

/// The expected finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Growth, in bytes per iteration.
    Leak,
    /// No growth, but bytes that are live after the body returned.
    Retained,
}

impl Expected {
    /// The code of the finding.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Leak => "leak",
            Self::Retained => "retained",
        }
    }

    /// The finding's field that holds the bytes.
    pub const fn figure(self) -> &'static str {
        match self {
            Self::Leak => "bytes_per_iteration",
            Self::Retained => "figure",
        }
    }
}

/// A program, as the body of a memory test.
#[derive(Debug, Clone, Copy)]
pub enum Program {
    /// A body that calls `Trial::iterate`.
    Trial(fn(&mut Trial) -> anyhow::Result<()>),
    /// A body that is one iteration, without a device.
    Iteration(fn()),
}

/// A leak, its fixed twin, and the expected report.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    /// The name of the scenario and of its memory tests.
    pub name: &'static str,
    /// The cause that the finding must name.
    pub cause: &'static str,
    /// The pattern of the growth, or `None` if the scenario does not grow.
    pub pattern: Option<Pattern>,
    /// The expected finding.
    pub expected: Expected,
    /// The bytes of the leak as the module defines them, or the bytes of [`Expected::Retained`].
    pub bytes: fn(Family) -> u64,
    /// The file of [`Self::line`], from the root of the workspace.
    pub file: &'static str,
    /// The line that allocates the kept memory, or that calls candle to allocate it.
    pub line: u32,
    /// The legs on which the scenario runs.
    pub runs: Runs,
    /// The program that leaks.
    pub leaky: Program,
    /// The same program without the leak.
    pub fixed: Program,
}

impl Scenario {
    /// The memory in which the scenario is judged when the command runs on `leg`, or `None` if it
    /// does not run there.
    pub const fn judged_on(&self, leg: Family) -> Option<Family> {
        match (self.runs, leg) {
            (Runs::Everywhere, leg) => Some(leg),
            (Runs::OnGpu, Family::Cuda) => Some(Family::Cuda),
            (Runs::OnGpu, Family::Cpu) => None,
            (Runs::OnHost, _) => Some(Family::Cpu),
        }
    }

    /// The path of its leaky test in the target `detection`.
    pub fn leaky_test(&self) -> String {
        format!("leaky::{}", self.name)
    }

    /// The path of its fixed test in the target `detection`.
    pub fn fixed_test(&self) -> String {
        format!("fixed::{}", self.name)
    }
}

/// A row of the table: `scenario!(SOURCE, name, "cause", Pattern)`. `name` is a module with `bytes`,
/// `leaky` and `fixed`, and `SOURCE` is the text of its file. Fields that differ from the default
/// follow at the end.
macro_rules! scenario {
    ($source:ident, $name:ident, $cause:literal, $pattern:ident $(, $field:ident: $value:expr)* $(,)?) => {
        $crate::scenarios::Scenario {
            $($field: $value,)*
            ..scenario!(@ $source, $name, $cause, Some($crate::scenarios::Pattern::$pattern), Trial)
        }
    };
    ($source:ident, retained $name:ident, $cause:literal $(, $field:ident: $value:expr)* $(,)?) => {
        $crate::scenarios::Scenario {
            expected: $crate::scenarios::Expected::Retained,
            $($field: $value,)*
            ..scenario!(@ $source, $name, $cause, None, Trial)
        }
    };
    ($source:ident, iteration $name:ident, $cause:literal, $pattern:ident) => {
        $crate::scenarios::Scenario {
            runs: $crate::scenarios::Runs::OnHost,
            ..scenario!(@ $source, $name, $cause, Some($crate::scenarios::Pattern::$pattern), Iteration)
        }
    };
    (@ $source:ident, $name:ident, $cause:literal, $pattern:expr, $program:ident) => {
        $crate::scenarios::Scenario {
            name: stringify!($name),
            cause: $cause,
            pattern: $pattern,
            expected: $crate::scenarios::Expected::Leak,
            bytes: $name::bytes,
            file: file!(),
            line: const { $crate::scenarios::line_of($source, stringify!($name)) },
            runs: $crate::scenarios::Runs::Everywhere,
            leaky: $crate::scenarios::Program::$program($name::leaky),
            fixed: $crate::scenarios::Program::$program($name::fixed),
        }
    };
}
use scenario;

/// Every scenario, by module.
pub const TABLES: &[&[Scenario]] = &[
    graphs::SCENARIOS,
    gradients::SCENARIOS,
    optimizers::SCENARIOS,
    caches::SCENARIOS,
    growing::SCENARIOS,
    ratchets::SCENARIOS,
    views::SCENARIOS,
    outputs::SCENARIOS,
    batches::SCENARIOS,
    devices::SCENARIOS,
    kept::SCENARIOS,
    rhythms::SCENARIOS,
    host::SCENARIOS,
];

/// Every scenario.
pub fn all() -> impl Iterator<Item = &'static Scenario> {
    TABLES.iter().copied().flatten()
}

/// The scenario of this name.
///
/// # Panics
///
/// When no scenario has this name.
pub fn named(name: &str) -> &'static Scenario {
    let named = all().find(|scenario| scenario.name == name);
    named.unwrap_or_else(|| panic!("`{name}` is not a scenario"))
}

/// The capacity of lists that are never emptied, so that they do not grow in the measured
/// iterations.
const HISTORY: usize = 64;

/// The capacity of lists of numbers, so that they do not grow however long a test is followed.
const NUMBERS: usize = 1_024;
