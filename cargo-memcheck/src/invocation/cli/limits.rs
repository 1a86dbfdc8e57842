//! Limits on the command line: stronger than every other source that states them.

use std::time::Duration;

use memcheck_core::limits::Layer;
use memcheck_core::limits::kinds::{
    AtLeastOne, Bytes, Count, Deviation, Faults, Kept, LimitKind, Number, Optional, Room, Share,
    Switch, Time,
};
use memcheck_core::with_limits;

/// Makes one flag per limit from the table of limits.
macro_rules! define {
    ($(
        $(#[$help:meta])+
        $name:ident $(or $mib:ident)?: $kind:ty,
        $variable:literal, programs: $programs:literal, default: $default:expr;
    )*) => {
        /// One flag per limit.
        #[derive(Debug, Clone, Default, clap::Args)]
        #[command(next_help_heading = "Limits (stronger than attribute and configuration)")]
        pub(crate) struct LimitFlags {
            $(
                $(#[$help])+
                #[arg(
                    long,
                    value_name = <$kind>::PLACEHOLDER,
                    value_parser = <$kind as LimitKind>::parse,
                    num_args = usize::from(<$kind>::IF_BARE.is_empty())..=1,
                    require_equals = !<$kind>::IF_BARE.is_empty(),
                    default_missing_values = <$kind>::IF_BARE,
                )]
                pub(crate) $name: Option<<$kind as LimitKind>::Stated>,
            )*
        }

        impl LimitFlags {
            /// The same as a layer of limits.
            pub(crate) fn layer(&self) -> Layer {
                Layer { $($name: self.$name.clone(),)* ..Layer::default() }
            }
        }
    };
}

with_limits!(everywhere define);

/// How long and how often a test is run whose other limits are not asked for.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Running")]
pub(crate) struct PaceFlags {
    /// Measured iterations
    #[arg(long, value_name = "N", value_parser = AtLeastOne::parse)]
    pub(crate) iterations: Option<u32>,
    /// Iterations before the measured ones
    #[arg(long, value_name = "N")]
    pub(crate) warmup: Option<u32>,
    /// Longest time that a test may take ("60s", "10m")
    #[arg(long, value_name = "DURATION", value_parser = Time::parse)]
    pub(crate) timeout: Option<Duration>,
}

impl From<PaceFlags> for LimitFlags {
    fn from(PaceFlags { iterations, warmup, timeout }: PaceFlags) -> Self {
        Self { iterations, warmup, timeout, ..Self::default() }
    }
}
