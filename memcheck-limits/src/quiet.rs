//! Marks the instrument's own work, so that its allocations are not counted as the workload's. The
//! state is constant-initialized and has no destructor, so that reading it is one thread-local load
//! and is safe while a thread starts or ends.

use std::cell::Cell;
use std::marker::PhantomData;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// While it lives, its thread allocates for the instrument. Not `Send`: dropped where it was made.
#[derive(Debug)]
#[must_use = "the thread is quiet only while the guard lives"]
pub struct Quiet {
    weight: u32,
    _not_send: PhantomData<*const ()>,
}

/// Makes the current thread quiet until the guard is dropped. Guards can be nested.
#[inline]
pub fn enter() -> Quiet {
    Quiet::with(1)
}

/// The weight of a guard that also hides the memory of devices.
const UNMEASURED: u32 = 1 << 16;

/// Like [`enter`], and the thread's allocations on devices are not counted either. Those of the
/// instrument are, because its canaries prove that the probes of devices see blocks.
pub fn stop_measuring() -> Quiet {
    Quiet::with(UNMEASURED)
}

/// True if the current thread's allocations on devices are not counted.
#[inline]
pub fn is_unmeasured() -> bool {
    DEPTH.with(Cell::get) >= UNMEASURED
}

/// True if the current thread works for the instrument.
#[inline]
pub fn is_quiet() -> bool {
    DEPTH.with(Cell::get) != 0
}

/// Runs `work` as part of the workload, even if the caller holds guards.
pub fn lifted<R>(work: impl FnOnce() -> R) -> R {
    struct Restore(u32);
    impl Drop for Restore {
        fn drop(&mut self) {
            DEPTH.with(|depth| depth.set(self.0));
        }
    }
    let _restore = Restore(DEPTH.with(|depth| depth.replace(0)));
    work()
}

impl Quiet {
    #[inline]
    fn with(weight: u32) -> Self {
        DEPTH.with(|depth| depth.set(depth.get() + weight));
        Self { weight, _not_send: PhantomData }
    }
}

impl Drop for Quiet {
    #[inline]
    fn drop(&mut self) {
        DEPTH.with(|depth| depth.set(depth.get() - self.weight));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guards_nest_and_end() {
        assert!(!is_quiet());
        let outer = enter();
        {
            let _inner = enter();
            assert!(is_quiet());
        }
        assert!(is_quiet());
        drop(outer);
        assert!(!is_quiet());
    }

    #[test]
    fn only_a_thread_that_is_not_measured_hides_devices() {
        let instrument = enter();
        assert!(!is_unmeasured());
        let unmeasured = stop_measuring();
        assert!(is_quiet() && is_unmeasured());
        assert!(!lifted(is_unmeasured));
        drop(instrument);
        assert!(is_quiet() && is_unmeasured());
        drop(unmeasured);
        assert!(!is_quiet() && !is_unmeasured());
    }

    #[test]
    fn lifted_work_is_counted_and_a_panic_in_it_restores() {
        let _guard = enter();
        assert!(!lifted(is_quiet));
        let _ = std::panic::catch_unwind(|| lifted(|| panic!("in the workload")));
        assert!(is_quiet());
    }

    #[test]
    fn a_guard_is_for_its_own_thread() {
        let _guard = enter();
        assert!(!std::thread::spawn(is_quiet).join().unwrap());
    }
}
