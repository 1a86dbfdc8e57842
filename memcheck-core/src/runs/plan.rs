//! The runs that a test can have, with their settings.

use std::time::Duration;

use memcheck_limits::names;
use serde::{Deserialize, Serialize};

use crate::wire::protocol::{Follow, Reach};

/// The tests that are run with attribution.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Explain {
    /// No test: figures only.
    Never,
    /// A test that failed on memory or has new figures is run once more with attribution.
    #[default]
    Failed,
    /// Every test has attribution in its first run.
    Always,
}

names!(Explain { "never" => Never, "failed" => Failed, "always" => Always });

impl Explain {
    /// The first run of a test.
    pub fn first(self) -> RunPlan {
        match self {
            // The peak must be that of the measured iterations, so it does not go beyond them.
            // [`Stage::Extend`] does.
            Self::Always => RunPlan { follow: Follow::Yes, reach: Reach::Screen },
            Self::Never | Self::Failed => RunPlan { follow: Follow::No, reach: Reach::Horizon },
        }
    }

    pub(super) fn follow(self) -> Follow {
        if self == Self::Never { Follow::No } else { Follow::Yes }
    }
}

/// The settings of one run of a test.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunPlan {
    /// The detail in which the run follows blocks.
    pub follow: Follow,
    /// The number of iterations beyond the measured ones.
    pub reach: Reach,
}

impl From<Follow> for RunPlan {
    fn from(follow: Follow) -> Self {
        Self { follow, ..Self::default() }
    }
}

/// What a run of a test is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Measures the figures.
    First,
    /// Measures without further iterations, because those of the first run disturbed it.
    Repeat,
    /// Looks for late and rare leaks, because the first run had call stacks and did not.
    Extend,
    /// Iterates until the growth is decided.
    Decide,
    /// Follows every block, so that findings and new figures have call sites. If resident memory
    /// is judged, the run that decided the growth had none, and this one has as many iterations.
    Explain,
    /// Measures once more, because two runs measured different figures.
    Compare,
    /// Refuses the device allocations of one iteration in turn.
    Sweep,
    /// Iterates for this time, for leaks that begin late or are rare.
    Soak(Duration),
}

impl Stage {
    /// The stages after the first, in order. Two runs differ before the three comparisons, which
    /// makes [`crate::measurement::repeats::MOST_RUNS`].
    pub const ALL: [Self; 8] = [
        Self::Repeat,
        Self::Extend,
        Self::Decide,
        Self::Explain,
        Self::Compare,
        Self::Compare,
        Self::Compare,
        Self::Sweep,
    ];

    /// The stages that measure the figures of a test, without call sites.
    pub const FIGURES: [Self; 2] = [Self::Repeat, Self::Decide];

    /// The words for a run whose lost process fails the test; `None` if the run only explains
    /// another.
    pub(super) fn place(self) -> Option<&'static str> {
        match self {
            Self::Soak(_) => Some("in the soak"),
            Self::Decide => Some("in further iterations, which decide whether memory grows"),
            _ => None,
        }
    }
}
