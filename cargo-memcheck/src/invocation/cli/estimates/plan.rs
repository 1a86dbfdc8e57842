//! The arguments of `plan`.

use std::path::PathBuf;

use clap::Arg;

use super::one::{MarginFlag, OneTestFlags};

/// `cargo memcheck plan`.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(
    override_usage = "cargo memcheck plan [OPTIONS] TEST --devices DEVICES [-- LIBTEST-ARGS]"
)]
#[command(mut_args(replace_help))]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) placement: PlacementFlags,
    #[command(flatten)]
    pub(crate) test: OneTestFlags,
}

/// Flags of the placement.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Placement")]
pub(crate) struct PlacementFlags {
    /// Devices to place the model on, in this order: 2xrtx4090, rtx4090,h100-80g or
    /// t4,capacity=8GiB.
    #[arg(long, value_name = "DEVICES")]
    pub(crate) devices: String,
    #[command(flatten)]
    pub(crate) margin: MarginFlag,
    /// File for the device map (default: stdout).
    #[arg(long = "output", value_name = "FILE")]
    pub(crate) output_map: Option<PathBuf>,
}

/// Replaces the help of flags that have another meaning in `run`. `--device` is hidden, because a
/// plan is always measured on a simulated device that is large enough.
fn replace_help(argument: Arg) -> Arg {
    match argument.get_id().as_str() {
        "filters" => {
            argument.value_name("TEST").help("Path of the test, or a part that no other path has")
        }
        "device" => argument.hide(true),
        _ => argument,
    }
}
