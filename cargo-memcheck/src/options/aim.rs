//! What the command line is for, beyond what it says.

use memcheck_core::capacity::Capacity;
use memcheck_core::explain::Explain;
use memcheck_core::limits::Layer;
use memcheck_core::size::Size;

use crate::devices::Sharing;

/// What tests are run for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Aim {
    /// Their verdicts.
    Run,
    /// An archive: nothing is run here.
    Archive,
    /// A profile: every block is followed, at once, and no baseline is compared
    /// or written.
    Profile,
    /// What there is room for, and where: limits of a test are beside the point.
    Room,
}

impl Aim {
    /// What becomes of several real GPUs.
    pub(crate) fn sharing(self) -> Sharing {
        match self {
            Self::Run | Self::Archive | Self::Profile => Sharing::Together,
            Self::Room => Sharing::Apart,
        }
    }

    /// When tests are run with call stacks, of what was said.
    pub(super) fn explain(self, said: Explain) -> Explain {
        match self {
            Self::Run | Self::Archive => said,
            Self::Profile => Explain::Always,
            Self::Room => Explain::Never,
        }
    }

    /// The limits of the command line, of what was said.
    pub(super) fn limits(self, said: Layer) -> Layer {
        match self {
            Self::Run | Self::Archive => said,
            Self::Profile => Layer { baseline: Some(false), ..said },
            // Whatever the test says that it fits into, the device asked for counts.
            Self::Room => {
                let all = Capacity::Bytes(Size(u64::MAX));
                Layer { baseline: Some(false), fits: said.fits.or(Some(all)), ..said }
            }
        }
    }
}
