//! The corpus that detection is measured against: programs that leak, each
//! beside its fixed twin, and clean programs made at random.
//!
//! A [`Scenario`] says everything that a report ought to say of its leak: the
//! finding, the bytes an iteration as a formula, the line that allocates what
//! stays, the pattern of the growth and the cause. Nothing here measures; the
//! test target `detection` makes a memory test of each program, the functional
//! tests assert what is found, and the bench `detection` prints it as a table.
//!
//! | module | what is kept |
//! |---|---|
//! | [`graphs`] | the graph behind a value (candle#1241, #3482, #3508) |
//! | [`gradients`] | gradients, in their store or out of it |
//! | [`optimizers`] | the state of an optimiser, copies of variables (#2079) |
//! | [`caches`] | key-value caches of requests that are over (#2950, #2987, #3437) |
//! | [`growing`] | caches that grow with the position (#1599, #2937) |
//! | [`ratchets`] | the largest buffer ever needed: not growth, but kept |
//! | [`views`] | a storage by a small view |
//! | [`outputs`] | attention weights and hidden states |
//! | [`batches`] | batches by a loader, a queue, a worker |
//! | [`devices`] | what belongs to a device, frees that the driver refuses |
//! | [`kept`] | tensors, by a list, a static, a cycle, a channel |
//! | [`rhythms`] | tensors, at times and in sizes that are hard to read |
//! | [`host`] | bytes that never were a tensor |
//! | [`shapes`] | no more than before, of other sizes: a profile remarks on it |
//! | [`clean`] | nothing, in patterns that look as if |
//!
//! **The line** is the one below a comment `// leaks: NAME`.
//! [`Scenario::line`] is computed from the source by the compiler, which
//! refuses a scenario whose comment is missing or there twice.
//!
//! **The bytes** are those of a [`Leg`]: a device counts every byte, the host
//! blocks of at least 1 KiB only ([`Leg::small`] is the difference). Where each
//! iteration leaves more than the one before, the figure is the mean over the
//! measured iterations without the last, whose blocks may only be kept for now.
//! Where only some iterations leave something, it is the mean over whole periods.

use memcheck_runtime::Trial;

/// `count` f32 of zero on a device. A macro, so that the line of a scenario is
/// the one that calls candle.
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
use line::line_of;

/// Why something stays, by the code that a diagnosis gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// A value that carries the graph it was computed by.
    GraphKept,
    /// Gradients of steps that are over.
    GradStoreKept,
    /// An optimiser made anew and kept.
    OptimizerRecreated,
    /// Copies of variables.
    VariablesCopied,
    /// The cache of requests that are over.
    CacheNeverCleared,
    /// A cache that is larger with every position.
    CacheGrows,
    /// A cache of a library with an entry for each input shape.
    CacheByShape,
    /// A buffer that never gets smaller again.
    CacheKeepsLargest,
    /// A view, which keeps all of the storage that it looks at.
    ViewKeepsStorage,
    /// What a model gives beside its result.
    OutputsCollected,
    /// Batches of data.
    BatchesKept,
    /// A device opened anew, with what is on it.
    DeviceRecreated,
    /// A free on a thread that has no CUDA context.
    FreeWithoutContext,
    /// A tensor in a list, a static, a cycle or a channel.
    TensorKept,
    /// Bytes of the host that are no tensor's.
    BuffersKept,
    /// Nothing: shapes differ, and so does memory.
    VariableShapes,
}

impl Cause {
    /// The code in a finding.
    pub const fn code(self) -> &'static str {
        match self {
            Self::GraphKept => "graph-kept",
            Self::GradStoreKept => "grad-store-kept",
            Self::OptimizerRecreated => "optimizer-recreated",
            Self::VariablesCopied => "variables-copied",
            Self::CacheNeverCleared => "cache-never-cleared",
            Self::CacheGrows => "cache-grows",
            Self::CacheByShape => "cache-by-shape",
            Self::CacheKeepsLargest => "cache-keeps-largest",
            Self::ViewKeepsStorage => "view-keeps-storage",
            Self::OutputsCollected => "outputs-collected",
            Self::BatchesKept => "batches-kept",
            Self::DeviceRecreated => "device-recreated",
            Self::FreeWithoutContext => "free-without-context",
            Self::TensorKept => "tensor-kept",
            Self::BuffersKept => "buffers-kept",
            Self::VariableShapes => "variable-shapes",
        }
    }
}

/// How something grows, by its name in a finding's sites.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// The same in every iteration.
    Steady,
    /// The same in every k-th iteration.
    Periodic,
    /// More in every iteration than in the one before.
    Growing,
    /// In some iterations, in no regular order.
    Irregular,
    /// What is old is replaced, by more: nothing old survives, the sum rises.
    Enlarged,
}

impl Pattern {
    /// The name in a finding.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Steady => "steady",
            Self::Periodic => "periodic",
            Self::Growing => "growing",
            Self::Irregular => "irregular",
            Self::Enlarged => "enlarged",
        }
    }
}

/// The kind of memory that a scenario is judged on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leg {
    /// The host: blocks of at least 1 KiB.
    Host,
    /// A GPU, real or simulated: every byte.
    Device,
}

impl Leg {
    /// What `bytes` in blocks of less than 1 KiB add to a figure.
    pub const fn small(self, bytes: u64) -> u64 {
        match self {
            Self::Host => 0,
            Self::Device => bytes,
        }
    }
}

/// Where a scenario runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runs {
    /// On the CPU and on a GPU, judged on the one it runs on.
    Everywhere,
    /// On a GPU only.
    OnGpu,
    /// On the CPU whatever the leg, judged on the host: a body without a device.
    OnHost,
}

/// What a report finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Growth, in bytes an iteration.
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
    /// A body that iterates itself.
    Trial(fn(&mut Trial) -> anyhow::Result<()>),
    /// A body that is one iteration, without a device.
    Iteration(fn()),
}

/// A leak, its fixed twin, and what is to be found.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    /// Its name, and that of its memory tests.
    pub name: &'static str,
    /// Why something stays.
    pub cause: Cause,
    /// How it grows; `None` where it does not.
    pub pattern: Option<Pattern>,
    /// What a report finds.
    pub expected: Expected,
    /// Bytes an iteration of [`Expected::Leak`], bytes of [`Expected::Retained`].
    pub bytes: fn(Leg) -> u64,
    /// The file of [`Self::line`], from the root of the workspace.
    pub file: &'static str,
    /// The line that allocates what stays, or calls candle to.
    pub line: u32,
    /// Where it runs.
    pub runs: Runs,
    /// The program that leaks.
    pub leaky: Program,
    /// The same program without the leak.
    pub fixed: Program,
}

impl Scenario {
    /// What it is judged on when the command runs on `leg`; `None` where it
    /// does not run there.
    pub const fn judged_on(&self, leg: Leg) -> Option<Leg> {
        match (self.runs, leg) {
            (Runs::Everywhere, leg) => Some(leg),
            (Runs::OnGpu, Leg::Device) => Some(Leg::Device),
            (Runs::OnGpu, Leg::Host) => None,
            (Runs::OnHost, _) => Some(Leg::Host),
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

/// A row of the table: `scenario!(SOURCE, name, Cause, Pattern)`, where `name`
/// is a module with `bytes`, `leaky` and `fixed`, and `SOURCE` the text of its
/// file. What is different from most is set behind `..`.
macro_rules! scenario {
    ($source:ident, $name:ident, $cause:ident, $pattern:ident $(, $field:ident: $value:expr)* $(,)?) => {
        $crate::scenarios::Scenario {
            $($field: $value,)*
            ..scenario!(@ $source, $name, $cause, Some($crate::scenarios::Pattern::$pattern), Trial)
        }
    };
    ($source:ident, retained $name:ident, $cause:ident $(, $field:ident: $value:expr)* $(,)?) => {
        $crate::scenarios::Scenario {
            expected: $crate::scenarios::Expected::Retained,
            $($field: $value,)*
            ..scenario!(@ $source, $name, $cause, None, Trial)
        }
    };
    ($source:ident, iteration $name:ident, $cause:ident, $pattern:ident) => {
        $crate::scenarios::Scenario {
            runs: $crate::scenarios::Runs::OnHost,
            ..scenario!(@ $source, $name, $cause, Some($crate::scenarios::Pattern::$pattern), Iteration)
        }
    };
    (@ $source:ident, $name:ident, $cause:ident, $pattern:expr, $program:ident) => {
        $crate::scenarios::Scenario {
            name: stringify!($name),
            cause: $crate::scenarios::Cause::$cause,
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
/// When there is none.
pub fn named(name: &str) -> &'static Scenario {
    all().find(|scenario| scenario.name == name).expect("a scenario of this name")
}

/// How much a list that is never emptied may hold before it has to grow itself.
const HISTORY: usize = 64;

#[cfg(test)]
mod tests;
