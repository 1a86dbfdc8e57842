//! Counters of the program: the bytes of a pool that only the program knows.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use memcheck_core::quiet;
use memcheck_core::space::Space;

use super::Trial;

type Read = Box<dyn FnMut() -> u64 + Send>;

/// The counters of a trial, by their space. Must not be locked while the recorder is, because a
/// counter can use the trial.
#[derive(Default)]
pub(super) struct Counters(Mutex<Vec<(Space, Read)>>);

impl fmt::Debug for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all().iter().map(|(space, _)| space)).finish()
    }
}

impl Counters {
    fn all(&self) -> MutexGuard<'_, Vec<(Space, Read)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes of each counter now. The caller must be quiet.
    pub(super) fn read(&self) -> Vec<(Space, u64)> {
        self.all().iter_mut().map(|(space, read)| (*space, read())).collect()
    }
}

impl Trial {
    /// Adds a counter: `read` returns the bytes of a pool or an allocator of the program. Its space
    /// is `counter/NAME`. `read` is called when the iterations begin, after each iteration and when
    /// the body has returned, and the limits of growth judge it. A negative number counts as 0.
    ///
    /// A counter of the same name is replaced. What `read` allocates is in no figure.
    ///
    /// ```no_run
    /// # use std::sync::{Arc, atomic::{AtomicUsize, Ordering::Relaxed}};
    /// # fn test(trial: &memcheck_runtime::Trial) {
    /// let bytes = Arc::new(AtomicUsize::new(0));
    /// let of_pool = Arc::clone(&bytes);
    /// trial.counter("pool", move || of_pool.load(Relaxed));
    /// # }
    /// ```
    ///
    /// # Panics
    /// If the name is not a word of 1 to 64 ASCII letters, digits, `_`, `-` and `.`.
    pub fn counter<B: TryInto<u64>>(
        &self,
        name: &str,
        mut read: impl FnMut() -> B + Send + 'static,
    ) {
        let _quiet = quiet::enter();
        let Some(space) = Space::counter(name) else {
            panic!(
                "`{name}` is not the name of a counter: use 1 to 64 ASCII letters, digits, `_`, \
                 `-`, `.`"
            );
        };
        let read: Read = Box::new(move || read().try_into().unwrap_or(0));
        let mut all = self.counters.all();
        match all.iter_mut().find(|(known, _)| *known == space) {
            Some((_, known)) => *known = read,
            None => all.push((space, read)),
        }
    }
}
