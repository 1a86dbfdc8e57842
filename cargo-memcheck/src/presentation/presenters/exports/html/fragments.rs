//! The addresses of tests within the page: `#app::mem/training::step/cpu`. They have the names of the
//! executable, the test and the device, so that a link leads to the same test in the report of another run.

use std::collections::BTreeMap;

use crate::build::workspace::escaped;
use crate::discovery::task::Task;

/// How often each address was asked for.
#[derive(Debug, Default)]
pub(super) struct Fragments(BTreeMap<String, usize>);

impl Fragments {
    /// The address of the next test with these names, without `#`.
    pub(super) fn add(&mut self, task: &Task) -> String {
        let names = [task.binary.id.as_str(), task.name(), &task.leg.name()].join("/");
        // A colon needs no escape there, and names of tests are full of them.
        let fragment = escaped(&names).replace("%3A", ":");
        let count = self.0.entry(fragment.clone()).or_default();
        *count += 1;
        match *count {
            1 => fragment,
            again => format!("{fragment}/{again}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discovery::task::example::task;

    #[test]
    fn every_test_has_an_address_of_its_own() {
        let mut fragments = Fragments::default();
        assert_eq!(fragments.add(&task()), "app::mem/a::b/cpu");
        assert_eq!(fragments.add(&task()), "app::mem/a::b/cpu/2");
        assert_eq!(fragments.add(&task()), "app::mem/a::b/cpu/3");
    }
}
