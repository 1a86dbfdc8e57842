//! The purpose of a run, which changes the meaning of some flags.

use memcheck_core::capacity::Capacity;
use memcheck_core::limits::Layer;
use memcheck_core::runs::explain::Explain;
use memcheck_core::size::Size;

use crate::devices::Sharing;

/// The purpose for which the command runs tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aim {
    /// To judge them.
    Run,
    /// To build an archive. No test runs on this machine.
    Archive,
    /// To make a profile. The first run already records call stacks, and baselines are neither compared nor written.
    Profile,
    /// To find out which values of a case or which placements fit on a device. The limits of the tests do not matter.
    Room,
}

impl Aim {
    /// Decides how tests use several real GPUs.
    pub(crate) fn sharing(self) -> Sharing {
        match self {
            Self::Run | Self::Archive | Self::Profile => Sharing::Together,
            Self::Room => Sharing::Apart,
        }
    }

    /// Returns when tests run with call stacks. `said` is the requested setting.
    pub(super) fn explain(self, said: Explain) -> Explain {
        match self {
            Self::Run | Self::Archive => said,
            Self::Profile => Explain::Always,
            Self::Room => Explain::Never,
        }
    }

    /// Returns the limits of the command line. `said` are the requested limits.
    pub(super) fn limits(self, said: Layer) -> Layer {
        match self {
            Self::Run | Self::Archive => said,
            Self::Profile => Layer { baseline: Some(false), ..said },
            // The requested device decides, even if the test states in which capacity it must fit.
            Self::Room => {
                let all = Capacity::Bytes(Size(u64::MAX));
                Layer { baseline: Some(false), fits: said.fits.or(Some(all)), ..said }
            }
        }
    }
}
