//! The counters of a stream-ordered memory pool.
//!
//! `used` is exact: the sum of the pool's live blocks as requested. `reserved` is an ESTIMATE:
//! `used` rounded up to [`RESERVE_STEP`]. It grows at once. When the program synchronizes, it falls
//! back to that value or to the release threshold. The rounding of a real driver has not been
//! measured yet.

use crate::code::{Answer, Code};

/// The step in which a pool is assumed to grow. An estimate: 32 MiB.
pub(crate) const RESERVE_STEP: u64 = 32 << 20;

/// The values of `CUmemPool_attribute` that are simulated.
pub(crate) mod attribute {
    pub(crate) const REUSE_FIRST: i32 = 1;
    pub(crate) const REUSE_LAST: i32 = 3;
    pub(crate) const RELEASE_THRESHOLD: i32 = 4;
    pub(crate) const RESERVED_CURRENT: i32 = 5;
    pub(crate) const RESERVED_HIGH: i32 = 6;
    pub(crate) const USED_CURRENT: i32 = 7;
    pub(crate) const USED_HIGH: i32 = 8;
}

#[derive(Debug)]
pub(crate) struct Pool {
    /// The ordinal of the pool's device.
    pub(crate) device: usize,
    /// False for the device's default pool, which cannot be destroyed.
    pub(crate) created: bool,
    threshold: u64,
    used: u64,
    used_high: u64,
    reserved: u64,
    reserved_high: u64,
    reuse: [i32; 3],
}

impl Pool {
    pub(crate) fn new(device: usize, created: bool) -> Self {
        Self {
            device,
            created,
            threshold: 0,
            used: 0,
            used_high: 0,
            reserved: 0,
            reserved_high: 0,
            reuse: [1; 3],
        }
    }

    pub(crate) fn allocated(&mut self, bytes: u64) {
        self.used += bytes;
        self.used_high = self.used_high.max(self.used);
        self.reserved = self.reserved.max(self.needed());
        self.reserved_high = self.reserved_high.max(self.reserved);
    }

    pub(crate) fn freed(&mut self, bytes: u64) {
        self.used -= bytes;
    }

    /// Releases the reserved memory above the release threshold.
    pub(crate) fn synchronized(&mut self) {
        self.trim(self.threshold);
    }

    /// Releases the reserved memory above `keep` that is not in use.
    pub(crate) fn trim(&mut self, keep: u64) {
        self.reserved = self.reserved.min(self.needed().max(keep));
    }

    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    pub(crate) fn reserved(&self) -> u64 {
        self.reserved
    }

    pub(crate) fn counter(&self, attribute: i32) -> Answer<u64> {
        match attribute {
            attribute::RELEASE_THRESHOLD => Ok(self.threshold),
            attribute::RESERVED_CURRENT => Ok(self.reserved),
            attribute::RESERVED_HIGH => Ok(self.reserved_high),
            attribute::USED_CURRENT => Ok(self.used),
            attribute::USED_HIGH => Ok(self.used_high),
            _ => Err(Code::INVALID_VALUE),
        }
    }

    /// Sets a 64-bit attribute. The high-water marks accept only 0, which resets them to the
    /// current value.
    pub(crate) fn set_counter(&mut self, attribute: i32, value: u64) -> Answer {
        match (attribute, value) {
            (attribute::RELEASE_THRESHOLD, _) => self.threshold = value,
            (attribute::RESERVED_HIGH, 0) => self.reserved_high = self.reserved,
            (attribute::USED_HIGH, 0) => self.used_high = self.used,
            _ => return Err(Code::INVALID_VALUE),
        }
        Ok(())
    }

    /// Returns one of the three reuse flags, which have no effect here.
    pub(crate) fn reuse(&mut self, attribute: i32) -> Option<&mut i32> {
        match attribute {
            attribute::REUSE_FIRST..=attribute::REUSE_LAST => {
                self.reuse.get_mut((attribute - attribute::REUSE_FIRST) as usize)
            }
            _ => None,
        }
    }

    fn needed(&self) -> u64 {
        self.used.next_multiple_of(RESERVE_STEP)
    }
}

#[cfg(test)]
mod tests {
    use super::attribute::*;
    use super::*;

    #[test]
    fn reserved_falls_to_used_when_the_program_synchronizes() {
        let mut pool = Pool::new(0, false);
        pool.allocated(RESERVE_STEP + 1);
        assert_eq!(pool.counter(USED_CURRENT), Ok(RESERVE_STEP + 1));
        assert_eq!(pool.reserved(), 2 * RESERVE_STEP);
        pool.freed(RESERVE_STEP);
        assert_eq!(pool.reserved(), 2 * RESERVE_STEP);
        pool.synchronized();
        assert_eq!(pool.reserved(), RESERVE_STEP);
        assert_eq!(pool.counter(RESERVED_HIGH), Ok(2 * RESERVE_STEP));
        pool.set_counter(RESERVED_HIGH, 0).unwrap();
        pool.set_counter(USED_HIGH, 0).unwrap();
        assert_eq!(pool.counter(RESERVED_HIGH), Ok(RESERVE_STEP));
        assert_eq!(pool.counter(USED_HIGH), Ok(1));
        assert_eq!(pool.set_counter(USED_HIGH, 1), Err(Code::INVALID_VALUE));
        assert_eq!(pool.set_counter(USED_CURRENT, 0), Err(Code::INVALID_VALUE));
    }

    #[test]
    fn a_threshold_keeps_memory_until_it_is_trimmed() {
        let mut pool = Pool::new(0, true);
        pool.set_counter(RELEASE_THRESHOLD, u64::MAX).unwrap();
        pool.allocated(3 * RESERVE_STEP);
        pool.freed(3 * RESERVE_STEP);
        pool.synchronized();
        assert_eq!(pool.reserved(), 3 * RESERVE_STEP);
        pool.trim(RESERVE_STEP);
        assert_eq!(pool.reserved(), RESERVE_STEP);
        pool.trim(0);
        assert_eq!(pool.reserved(), 0);
    }
}
