//! The arguments of `bench`.

use std::path::PathBuf;

use crate::invocation::values::{CargoOptions, Color};

/// `cargo memcheck bench`.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct BenchArgs {
    /// Measure only benchmarks that match FILTER, as in `cargo bench`.
    #[arg(value_name = "FILTER")]
    pub(crate) filter: Option<String>,
    /// Run only this bench (may be repeated).
    #[arg(long, value_name = "NAME", help_heading = "Cargo options")]
    pub(crate) bench: Vec<String>,
    /// Device to run on: auto, cpu, sim, sim:CARD, cuda or cuda:N (may be repeated).
    #[arg(long, value_name = "DEVICE")]
    pub(crate) device: Vec<String>,
    /// Read this configuration file instead of .config/memcheck.toml.
    #[arg(long, value_name = "PATH")]
    pub(crate) config_file: Option<PathBuf>,
    /// Command that starts each process ("srun --gres=gpu:1").
    ///
    /// The command line of the process follows it.
    #[arg(long, value_name = "COMMAND", help_heading = "Running")]
    pub(crate) runner: Option<String>,
    /// Produce color output.
    #[arg(long, value_name = "WHEN", default_value = "auto", help_heading = "Output")]
    pub(crate) color: Color,
    #[command(flatten)]
    pub(crate) cargo: CargoOptions,
    /// Arguments for the harness of the benches.
    #[arg(last = true, value_name = "ARGS")]
    pub(crate) arguments: Vec<String>,
}
