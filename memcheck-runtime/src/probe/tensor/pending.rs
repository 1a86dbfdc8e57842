//! Candidates: blocks that may be tensors and have not been examined yet, at most one for each
//! thread.
//!
//! A thread puts the block into its slot and examines it at its next allocation or free. Before
//! that, the tensor can be moved to another thread and dropped there. A thread that frees a block
//! therefore empties the slot that contains it. If the slot is *marked*, its thread is examining
//! the block, and the freeing thread waits.
//!
//! ```text
//! empty ──put──► address ──mark──► address, marked ──► empty
//!                   └────────emptied (freed elsewhere)────┘
//! ```

use std::cell::Cell;
use std::sync::atomic::{
    AtomicBool, AtomicU64, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

use memcheck_core::quiet;

/// The number of threads that can have a slot at the same time.
const SLOTS: usize = 256;
/// The flag of a marked slot. The addresses of blocks are aligned, so this bit of them is 0.
const MARK: u64 = 1;

/// The slot of one thread, on cache lines that it shares with no other data.
#[repr(align(128))]
struct Slot {
    /// An address, or 0; with [`MARK`] while the block is examined.
    block: AtomicU64,
    /// The number of the thread's last tensor.
    last: AtomicU64,
    owned: AtomicBool,
}

static ALL: [Slot; SLOTS] = [const {
    Slot { block: AtomicU64::new(0), last: AtomicU64::new(0), owned: AtomicBool::new(false) }
}; SLOTS];
/// The number of slots that were ever used. All slots after them are empty.
static USED: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    // Has no destructor, so that an access is a plain load.
    static MINE: Cell<Option<&'static Slot>> = const { Cell::new(None) };
    static SLOT_GUARD: SlotGuard = const { SlotGuard };
}

/// Releases the thread's slot when the thread ends.
struct SlotGuard;

impl Drop for SlotGuard {
    fn drop(&mut self) {
        // Otherwise the last tensor of the thread is never examined.
        super::settle();
        if let Some(slot) = MINE.take() {
            slot.block.store(0, Relaxed);
            // Release, because the next owner must see the slot without a block.
            slot.owned.store(false, Release);
        }
    }
}

/// The reason why a thread has no slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoSlot {
    /// Other threads use all slots.
    Taken,
    /// The thread is ending and would never examine the block.
    Ending,
}

#[cold]
fn claim() -> Result<&'static Slot, NoSlot> {
    let _quiet = quiet::enter();
    // The access registers the destructor, which is too late once destructors run.
    SLOT_GUARD.try_with(|_| ()).map_err(|_| NoSlot::Ending)?;
    let mut slots = ALL.iter().enumerate();
    let is_free = |(_, slot): &(usize, &Slot)| {
        // Acquire, because the block of the former owner must be gone.
        slot.owned.compare_exchange(false, true, AcqRel, Relaxed).is_ok()
    };
    let (at, slot) = slots.find(is_free).ok_or(NoSlot::Taken)?;
    // Before the slot gets a block, so that `forget` searches it.
    USED.fetch_max(at + 1, AcqRel);
    slot.last.store(0, Relaxed);
    MINE.set(Some(slot));
    Ok(slot)
}

/// Stores a block that the calling thread has just allocated.
pub(super) fn put(address: u64) -> Result<(), NoSlot> {
    let slot = MINE.get().map_or_else(claim, Ok)?;
    slot.block.store(address, Release);
    Ok(())
}

/// True if the calling thread has a block to examine.
#[inline(always)]
pub(super) fn has_candidate() -> bool {
    MINE.get().is_some_and(|slot| slot.block.load(Relaxed) != 0)
}

/// Marks the block of the calling thread. `None` if it has none, or if another thread has removed
/// it.
pub(super) fn mark() -> Option<Marked> {
    let slot = MINE.get()?;
    let address = slot.block.load(Relaxed);
    // A signal handler that allocates finds the block marked, so it is not examined twice.
    let marked = address != 0
        && address & MARK == 0
        && slot.block.compare_exchange(address, address | MARK, AcqRel, Relaxed).is_ok();
    // Created only on success, because dropping a `Marked` empties the slot.
    marked.then(|| Marked { slot, address })
}

/// Removes this block from the slot of another thread. If that thread is examining it, waits until
/// the examination has ended.
pub(super) fn forget(address: u64) {
    for slot in ALL.iter().take(USED.load(Acquire)) {
        // PERF: only a load if the slot of the other thread has another block.
        while slot.block.load(Acquire) & !MARK == address {
            if slot.block.compare_exchange(address, 0, AcqRel, Relaxed).is_ok() {
                return;
            }
            // The slot is marked, and an examination is short.
            std::thread::yield_now();
        }
    }
}

/// A marked block: a thread that frees it waits until this value is dropped.
pub(super) struct Marked {
    slot: &'static Slot,
    pub(super) address: u64,
}

impl Marked {
    /// The number of the thread's last tensor.
    pub(super) fn last(&self) -> u64 {
        self.slot.last.load(Relaxed)
    }

    pub(super) fn set_last(&self, number: u64) {
        self.slot.last.store(number, Relaxed);
    }
}

impl Drop for Marked {
    fn drop(&mut self) {
        // Release, because the thread that waits frees the block as soon as it sees this.
        self.slot.block.store(0, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_that_another_thread_frees_is_not_examined() {
        assert!(!has_candidate());
        assert_eq!(put(0x1000), Ok(()));
        std::thread::spawn(|| {
            forget(0x2000);
            forget(0x1000);
        })
        .join()
        .unwrap();
        assert!(!has_candidate());
        assert!(mark().is_none());
    }

    #[test]
    fn a_thread_that_frees_a_block_waits_while_it_is_examined() {
        static DONE: AtomicBool = AtomicBool::new(false);
        assert_eq!(put(0x3000), Ok(()));
        let marked = mark().unwrap();
        assert!(mark().is_none(), "the block is already marked");
        let freeing = std::thread::spawn(|| {
            forget(0x3000);
            assert!(DONE.load(Acquire), "the free did not wait for the examination");
        });
        std::thread::sleep(std::time::Duration::from_millis(20));
        DONE.store(true, Release);
        drop(marked);
        freeing.join().unwrap();
        assert!(!has_candidate());
    }

    #[test]
    fn a_thread_that_is_ending_takes_no_slot_from_another() {
        struct Late(std::sync::mpsc::Sender<Result<(), NoSlot>>);
        impl Drop for Late {
            fn drop(&mut self) {
                let _ = self.0.send(put(0x7000));
            }
        }
        thread_local!(static LATE: Cell<Option<Late>> = const { Cell::new(None) });
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            // Destructors run in the reverse order of the first uses.
            LATE.set(Some(Late(sender)));
            assert_eq!(put(0x6000), Ok(()));
        })
        .join()
        .unwrap();
        assert_eq!(receiver.recv().unwrap(), Err(NoSlot::Ending));
        assert!(ALL.iter().all(|slot| slot.block.load(Relaxed) != 0x7000));
    }

    #[test]
    fn threads_that_come_and_go_share_slots() {
        for _ in 0..2 * SLOTS {
            assert_eq!(std::thread::spawn(|| put(0x5000)).join().unwrap(), Ok(()));
        }
        assert!(USED.load(Relaxed) < SLOTS);
        assert!(ALL.iter().all(|slot| slot.block.load(Relaxed) != 0x5000));
    }
}
