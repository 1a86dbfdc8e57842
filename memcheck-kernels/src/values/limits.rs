//! The limits of what the simulated device stores and computes.
//!
//! The limits count bytes and operations and never time, so that a program computes the same values
//! on every computer.

use memcheck_limits::size::Size;
use memcheck_limits::values::Contents;

/// The limits of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of contents that are stored at the same time.
    pub(crate) bytes: u64,
    /// Operations of one launch.
    pub(crate) launch: u64,
    /// Random numbers of one launch. They cost more than what is computed with them, but a program
    /// makes them once, for the initial weights.
    pub(crate) numbers: u64,
    /// Operations of all launches together.
    pub(crate) total: u64,
}

impl Limits {
    /// The limits of a process that does not set its own.
    pub(crate) const DEFAULT: Self =
        Self { bytes: 256 << 20, launch: 1 << 24, numbers: 1 << 23, total: 1 << 31 };
    /// No byte is known.
    const NONE: Self = Self { bytes: 0, launch: 0, numbers: 0, total: 0 };

    /// Returns the limits of a setting.
    ///
    /// A size above the default raises the limits of work in proportion, because larger blocks
    /// need more operations. A smaller size leaves them.
    pub fn of(contents: Contents) -> Self {
        let Size(bytes) = match contents {
            Contents::Auto => return Self::DEFAULT,
            Contents::Never => return Self::NONE,
            Contents::AtMost(size) => size,
        };
        let raised = |work: u64| {
            let more = u128::from(work) * u128::from(bytes) / u128::from(Self::DEFAULT.bytes);
            u64::try_from(more).unwrap_or(u64::MAX).max(work)
        };
        let Self { launch, numbers, total, .. } = Self::DEFAULT;
        let [launch, numbers, total] = [launch, numbers, total].map(raised);
        Self { bytes, launch, numbers, total }
    }
}

/// Counts the operations of a process.
#[derive(Debug, Clone, Copy)]
pub(super) struct OperationCount {
    limits: Limits,
    done: u64,
}

impl OperationCount {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, done: 0 }
    }

    /// The operations so far.
    pub(super) fn done(&self) -> u64 {
        self.done
    }

    /// Counts on from an earlier number of operations, so that later ones are permitted again.
    pub(super) fn count_from(&mut self, done: u64) {
        self.done = done;
    }

    pub(super) fn permits(&self, operations: u64) -> bool {
        operations <= self.limits.launch && self.leaves(operations)
    }

    /// Returns whether the limits permit a launch of this many random numbers.
    pub(super) fn permits_numbers(&self, count: u64, operations: u64) -> bool {
        count <= self.limits.numbers && self.leaves(operations)
    }

    /// Returns whether this many operations are left.
    fn leaves(&self, operations: u64) -> bool {
        self.done.saturating_add(operations) <= self.limits.total
    }

    /// Counts operations that were permitted.
    pub(super) fn add(&mut self, operations: u64) {
        self.done = self.done.saturating_add(operations);
    }

    /// Counts the operations of a launch. Returns false, and counts nothing, if a limit does not
    /// permit them.
    pub(super) fn charge(&mut self, operations: u64) -> bool {
        let allowed = self.permits(operations);
        if allowed {
            self.done += operations;
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_changes_the_limits_of_bytes_and_raises_those_of_work() {
        let of = |bytes| Limits::of(Contents::AtMost(Size(bytes)));
        assert_eq!(Limits::of(Contents::Auto), Limits::DEFAULT);
        assert_eq!(of(256 << 20), Limits::DEFAULT);
        let larger = Limits { bytes: 1 << 30, launch: 1 << 26, numbers: 1 << 25, total: 1 << 33 };
        assert_eq!(of(1 << 30), larger);
        assert_eq!(of(1), Limits { bytes: 1, ..Limits::DEFAULT });
        assert_eq!(of(u64::MAX).total, u64::MAX);
        assert!(!OperationCount::new(Limits::of(Contents::Never)).permits(1));
    }

    #[test]
    fn a_launch_that_is_refused_does_not_count() {
        let limits = Limits { bytes: 0, launch: 10, numbers: 3, total: 15 };
        let mut work = OperationCount::new(limits);
        assert!(!work.charge(11));
        assert!(work.charge(10));
        assert!(!work.charge(6));
        assert!(work.charge(5));
        assert!(!work.charge(1));
        assert!(work.charge(0));
        work.count_from(10);
        assert!(!work.charge(6));
        assert!(work.charge(5));
        assert_eq!(work.done(), 15);
        work.count_from(1);
        assert!(work.permits_numbers(3, 14));
        assert!(!work.permits_numbers(4, 14) && !work.permits_numbers(3, 15));
    }
}
