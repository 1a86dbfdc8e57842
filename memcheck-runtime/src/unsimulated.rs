//! Counts the launches that the simulated device did not compute while the body runs.

use std::sync::{Mutex, MutexGuard, PoisonError};

use memcheck_core::measurement::unsimulated::{self, UnsimulatedLaunches};

static LAUNCHES: Mutex<Launches> = Mutex::new(Launches::new());

/// The launches so far.
struct Launches {
    is_counting: bool,
    /// True while iterations beyond the measured ones run, whose number depends on time.
    is_further: bool,
    by_kernel: Vec<UnsimulatedLaunches>,
}

impl Launches {
    const fn new() -> Self {
        Self { is_counting: false, is_further: false, by_kernel: Vec::new() }
    }

    #[cfg_attr(
        not(any(feature = "sim", test)),
        expect(dead_code, reason = "only the simulator reports")
    )]
    fn add(&mut self, launched: UnsimulatedLaunches) {
        if !self.is_counting {
            return;
        }
        let is_same = |known: &&mut UnsimulatedLaunches| {
            known.name == launched.name && known.source == launched.source
        };
        let number = u64::from(!self.is_further);
        match self.by_kernel.iter_mut().find(is_same) {
            Some(known) => known.launches += number,
            None => self.by_kernel.push(UnsimulatedLaunches { launches: number, ..launched }),
        }
    }
}

fn launches() -> MutexGuard<'static, Launches> {
    LAUNCHES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts to count, before the body runs. The caller must be quiet.
pub(crate) fn start() {
    #[cfg(feature = "sim")]
    memcheck_sim::observe_unsimulated_launches(|launch| {
        let _quiet = memcheck_core::quiet::enter();
        launches().add(UnsimulatedLaunches {
            name: launch.name.to_owned(),
            source: launch.source.to_owned(),
            allocations: launch.allocations.to_owned(),
            is_of_candle: launch.is_of_candle,
            replaces_candle: launch.replaces_candle,
            launches: 0,
        });
    });
    *launches() = Launches { is_counting: true, ..Launches::new() };
}

/// Must be called before and after iterations beyond the measured ones.
pub(crate) fn set_further(is_further: bool) {
    launches().is_further = is_further;
}

/// Stops counting. Returns the notes about the launches so far.
pub(crate) fn finish() -> Vec<String> {
    let Launches { by_kernel, .. } = std::mem::replace(&mut *launches(), Launches::new());
    unsimulated::notes(&by_kernel)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_of_further_iterations_are_not_counted() {
        let launch = |name: &str| UnsimulatedLaunches {
            name: name.to_owned(),
            ..UnsimulatedLaunches::default()
        };
        let mut launches = Launches::new();
        launches.add(launch("before"));
        launches.is_counting = true;
        for name in ["a", "b", "a"] {
            launches.add(launch(name));
        }
        launches.is_further = true;
        for name in ["a", "c"] {
            launches.add(launch(name));
        }
        let counts: Vec<_> = launches.by_kernel.iter().map(|it| (&*it.name, it.launches)).collect();
        assert_eq!(counts, [("a", 2), ("b", 1), ("c", 0)]);
    }
}
