//! The table of live blocks: address -> size, space, iteration of birth.
//!
//! Open addressing over buckets of seven, mapped once and never grown, without
//! locks. There are no tombstones: a bucket counts the blocks that had to go
//! past it, as F14 tables do, so a search stops at the first bucket that
//! nothing has overflowed.
//!
//! ```text
//! bucket (192 B)   keys[7] | overflow          one cache line: what a search reads
//!                  size[7], meta[7]            read when the key is found
//! ```
//!
//! One address is live at most once, and it is freed by whoever owns it, so
//! insertion and removal of the same key never race; those of different keys
//! in a bucket do, and meet only in the compare-exchange of a free slot and in
//! the overflow count.
//!
//! Memory: 96 MiB of address space, of which pages are touched as blocks fall
//! on them. Full is not an error here: `insert` says no, the event counts as
//! lost, and the test is `not-measured`.

use std::sync::atomic::{
    AtomicPtr, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

use super::Block;

const SLOTS: usize = 7;
const BUCKETS: usize = 1 << 19;
/// Buckets that a block may go past: enough for a table that is 90 % full.
const REACH: usize = 64;

/// A key that is no address: the slot is taken, its block is being written.
const CLAIMED: u64 = 1;

#[repr(C, align(64))]
pub(super) struct Bucket {
    keys: [AtomicU64; SLOTS],
    overflow: AtomicU64,
    sizes: [AtomicU64; SLOTS],
    metas: [AtomicU64; SLOTS],
    _pad: [u64; 2],
}

const _: () = assert!(size_of::<Bucket>() == 192);

/// A bit for each bucket that was ever used, so that a census does not read
/// the whole table.
static USED: [AtomicU64; BUCKETS / 64] = [const { AtomicU64::new(0) }; BUCKETS / 64];
static BASE: AtomicPtr<Bucket> = AtomicPtr::new(std::ptr::null_mut());

/// Maps the table, once.
pub(super) fn map() -> std::io::Result<()> {
    if !BASE.load(Acquire).is_null() {
        return Ok(());
    }
    // SAFETY: an anonymous private mapping of a fixed size at an address of
    // the kernel's choice; nothing else is passed.
    let memory = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            BUCKETS * size_of::<Bucket>(),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if memory == libc::MAP_FAILED {
        return Err(std::io::Error::last_os_error());
    }
    // A table that another thread mapped first wins; ours costs address space only.
    let _ = BASE.compare_exchange(std::ptr::null_mut(), memory.cast(), AcqRel, Acquire);
    Ok(())
}

#[inline]
fn bucket(base: *mut Bucket, index: usize) -> &'static Bucket {
    // SAFETY: `base` is the mapping of `BUCKETS` buckets that `map` made and
    // that is never unmapped; `index` is masked below `BUCKETS`; a bucket
    // consists of atomics, for which all bytes zero is a value.
    unsafe { &*base.add(index & (BUCKETS - 1)) }
}

#[inline]
fn home(address: u64) -> usize {
    // Fibonacci hashing: the low bits of addresses are alike.
    ((address >> 4).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - BUCKETS.trailing_zeros())) as usize
}

fn pack(block: Block) -> u64 {
    let space = super::index(block.space).unwrap_or(0) as u64;
    space << 32 | u64::from(block.birth)
}

fn unpack(size: u64, meta: u64) -> Block {
    Block { size, space: super::space((meta >> 32) as usize), birth: meta as u32 }
}

/// Adds a block. `false` if there is no table, or no room near its place.
#[inline]
pub(super) fn insert(address: u64, block: Block) -> bool {
    let base = BASE.load(Acquire);
    if base.is_null() || address <= CLAIMED {
        return false;
    }
    let home = home(address);
    for step in 0..REACH {
        let index = (home + step) & (BUCKETS - 1);
        let bucket = bucket(base, index);
        for slot in 0..SLOTS {
            let key = &bucket.keys[slot];
            if key.load(Relaxed) == 0 && key.compare_exchange(0, CLAIMED, Acquire, Relaxed).is_ok()
            {
                bucket.sizes[slot].store(block.size, Relaxed);
                bucket.metas[slot].store(pack(block), Relaxed);
                // Last: a census on another thread sees a whole block or none.
                key.store(address, Release);
                let (word, bit) = (&USED[index / 64], 1 << (index % 64));
                if word.load(Relaxed) & bit == 0 {
                    word.fetch_or(bit, Relaxed);
                }
                return true;
            }
        }
        bucket.overflow.fetch_add(1, Relaxed);
    }
    for step in 0..REACH {
        bucket(base, home + step).overflow.fetch_sub(1, Relaxed);
    }
    false
}

/// Takes a block out. `None` if it is not there.
#[inline]
pub(super) fn remove(address: u64) -> Option<Block> {
    let base = BASE.load(Acquire);
    if base.is_null() || address <= CLAIMED {
        return None;
    }
    let home = home(address);
    for step in 0..REACH {
        let found = bucket(base, home + step);
        for slot in 0..SLOTS {
            if found.keys[slot].load(Relaxed) == address {
                let meta = found.metas[slot].load(Acquire);
                let block = unpack(found.sizes[slot].load(Relaxed), meta);
                found.keys[slot].store(0, Release);
                for passed in 0..step {
                    bucket(base, home + passed).overflow.fetch_sub(1, Relaxed);
                }
                return Some(block);
            }
        }
        if found.overflow.load(Relaxed) == 0 {
            return None;
        }
    }
    None
}

/// Shows every live block to `see`. What other threads do meanwhile may or may
/// not be seen; a workload between two iterations does nothing.
pub(super) fn each(mut see: impl FnMut(Block)) {
    let base = BASE.load(Acquire);
    if base.is_null() {
        return;
    }
    for (place, word) in USED.iter().enumerate() {
        let mut bits = word.load(Relaxed);
        while bits != 0 {
            let bucket = bucket(base, place * 64 + bits.trailing_zeros() as usize);
            bits &= bits - 1;
            for slot in 0..SLOTS {
                if bucket.keys[slot].load(Acquire) > CLAIMED {
                    let meta = bucket.metas[slot].load(Acquire);
                    see(unpack(bucket.sizes[slot].load(Relaxed), meta));
                }
            }
        }
    }
}
