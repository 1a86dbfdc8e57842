//! The arguments of `plan`.

use std::path::PathBuf;

use clap::Arg;
use memcheck_core::tolerance::Tolerance;

use super::limits::PaceFlags;
use super::{CargoFlags, LimitFlags, OutputFlags, RunArgs, SelectFlags};

/// `cargo memcheck plan`.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(
    override_usage = "cargo memcheck plan [OPTIONS] TEST --devices DEVICES [-- LIBTEST-ARGS]"
)]
#[command(mut_args(own_words))]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) placement: PlacementFlags,
    #[command(flatten)]
    pub(crate) select: SelectFlags,
    /// Show the output of the test while it runs.
    #[arg(long, visible_alias = "nocapture", help_heading = "Running")]
    pub(crate) no_capture: bool,
    #[command(flatten)]
    pub(crate) pace: PaceFlags,
    #[command(flatten)]
    pub(crate) output: OutputFlags,
    #[command(flatten)]
    pub(crate) cargo: CargoFlags,
    /// Arguments of the test harness.
    #[arg(last = true, value_name = "LIBTEST-ARGS")]
    pub(crate) libtest: Vec<String>,
}

/// Where to, and what is written.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Placement")]
pub(crate) struct PlacementFlags {
    /// Devices to place the model on, in their order: 2xrtx4090, rtx4090,h100-80g or t4,capacity=8GiB.
    #[arg(long, value_name = "DEVICES")]
    pub(crate) devices: String,
    /// What is left free of each device: a share ("5%"), bytes ("2 GiB"), or the larger of both.
    #[arg(long, value_name = "MARGIN", default_value = "5%")]
    pub(crate) margin: Option<Tolerance>,
    /// File that the device map is written to (without it: printed).
    #[arg(long = "output", value_name = "FILE")]
    pub(crate) output_map: Option<PathBuf>,
}

/// Flags of `run` that mean something else here. What a plan is measured on is
/// simulated, and large enough.
fn own_words(argument: Arg) -> Arg {
    match argument.get_id().as_str() {
        "filters" => argument
            .value_name("TEST")
            .help("The test: its path, or a part of it that no other test has"),
        "device" => argument.hide(true),
        _ => argument,
    }
}

impl PlanArgs {
    /// The same as arguments of `run`, on this device.
    pub(crate) fn as_run(&self, device: String) -> RunArgs {
        let Self { placement: _, select, no_capture, pace, output, cargo, libtest } = self.clone();
        let mut args = RunArgs {
            select: SelectFlags { device: vec![device], ..select },
            limits: LimitFlags::from(pace),
            output,
            cargo,
            libtest,
            ..RunArgs::default()
        };
        args.schedule.no_capture = no_capture;
        args
    }
}
