//! Renews the limit of operations, so that values stay known however often a test iterates.

use crate::machine;

/// The operations that a process had counted at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Operations(u64);

impl Operations {
    /// The operations that are counted now.
    pub fn now() -> Self {
        machine::existing(|machine| Self(machine.values.operations())).unwrap_or_default()
    }

    /// Permits the operations again that were counted since.
    pub fn permit_again(self) {
        machine::existing(|machine| machine.values.count_operations_from(self.0));
    }
}
