//! The commands that search for what a device has room for. A build without the feature `estimates`
//! does not have them.

mod estimate;
mod fit;
mod one;
mod plan;

use clap::Subcommand;

pub(crate) use estimate::EstimateArgs;
pub(crate) use fit::FitArgs;
pub(crate) use one::OneTestFlags;
pub(crate) use plan::PlanArgs;

use super::FormFlags;

#[derive(Debug, Subcommand)]
pub(crate) enum EstimatesCommand {
    /// Estimate the memory of a model from its Hugging Face configuration, without weights.
    Estimate(EstimateArgs),
    /// Search for the largest value of a case, such as a batch, that a device has room for.
    Fit(FitArgs),
    /// Place the layers of a model on several devices, by the measured memory of each layer.
    Plan(PlanArgs),
}

impl EstimatesCommand {
    pub(crate) fn form(&self) -> &FormFlags {
        match self {
            Self::Estimate(args) => &args.output.form,
            Self::Fit(args) => &args.test.output.form,
            Self::Plan(args) => &args.test.output.form,
        }
    }
}
