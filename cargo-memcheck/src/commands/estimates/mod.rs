//! The commands that search for what a device has room for.

mod estimate;
mod fit;
mod plan;

use memcheck_core::capacity::Capacity;
use memcheck_core::limits::Layer;
use memcheck_core::runs::plan::Explain;
use memcheck_core::size::Size;

use crate::invocation::cli::{EstimatesCommand, LimitFlags, OneTestFlags};
use crate::invocation::devices::Sharing;
use crate::invocation::options::Flags;
use crate::system::error::Failure;

pub(super) fn run(command: &EstimatesCommand) -> Result<u8, Failure> {
    match command {
        EstimatesCommand::Estimate(args) => estimate::estimate(args),
        EstimatesCommand::Fit(args) => fit::fit(args),
        EstimatesCommand::Plan(args) => plan::plan(args),
    }
}

/// Limits and baselines do not matter for the room on a device.
fn measuring_flags(test: &OneTestFlags, fits: Option<Capacity>) -> Result<Flags, Failure> {
    let OneTestFlags { select, launch, pace, output, cargo, libtest } = test;
    // The requested device decides, even if the test states in which capacity it must fit.
    let fits = fits.or(Some(Capacity::Bytes(Size(u64::MAX))));
    let pace = LimitFlags::from(pace.clone()).layer();
    Ok(Flags {
        limits: Layer { baseline: Some(false), fits, ..pace },
        required_explain: Some(Explain::Never),
        sharing: Sharing::Apart,
        ..Flags::new(output, cargo).select(select)?.launch(launch)?.libtest(libtest)?
    })
}
