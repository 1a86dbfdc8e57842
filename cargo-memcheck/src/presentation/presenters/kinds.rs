//! The groups of the tests that did not pass: memory first, then the ends of processes, then the rest.

use memcheck_core::judgement::finding::Code;

/// A group, in the order of lists.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FailureKind {
    Growth,
    Capacity,
    Limit,
    Regression,
    End,
    Timeout,
    Unmeasured,
    #[default]
    Review,
}

impl FailureKind {
    /// The group of a test by its first finding.
    pub(super) fn of(code: Code) -> Self {
        match code {
            Code::Leak | Code::GrowthLimit | Code::KeptLimit | Code::Retained => Self::Growth,
            Code::OutOfMemory | Code::DoesNotFit | Code::FaultUnsafe => Self::Capacity,
            Code::PeakLimit
            | Code::AllocationsLimit
            | Code::AllocatedLimit
            | Code::Unstable
            | Code::Scaling => Self::Limit,
            Code::PeakRegression | Code::AllocationsRegression | Code::GrowthRegression => {
                Self::Regression
            }
            Code::TestFailed | Code::Crashed => Self::End,
            Code::TimedOut => Self::Timeout,
            Code::DeviceFault | Code::NotMeasured | Code::NoDevice | Code::NotBuilt => {
                Self::Unmeasured
            }
            Code::MissingBaseline
            | Code::UncomparableBaseline
            | Code::CorruptBaseline
            | Code::StaleBaseline
            | Code::UnmatchedOverride
            | Code::Improved
            | Code::Undecided => Self::Review,
        }
    }

    #[cfg(feature = "exports")]
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Growth => "Leaks",
            Self::Capacity => "Out of memory",
            Self::Limit => "Limits",
            Self::Regression => "Regressions",
            Self::End => "Crashes, panics and errors",
            Self::Timeout => "Time-outs",
            Self::Unmeasured => "Not measured",
            Self::Review => "To review",
        }
    }
}

#[cfg(test)]
mod tests {
    use memcheck_core::judgement::finding::TABLE;

    use super::*;

    #[test]
    fn findings_about_memory_come_before_all_others() {
        let last_of_memory = FailureKind::Regression;
        for row in TABLE {
            let is_early = FailureKind::of(row.code) <= last_of_memory;
            let refuses = row.code == Code::FaultUnsafe;
            assert_eq!(is_early, row.code.is_about_memory() || refuses, "{}", row.name);
        }
    }
}
