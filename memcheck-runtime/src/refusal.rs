//! Refuses one device allocation of an iteration on purpose, as a device without memory does.
//!
//! The probes ask before they forward an allocation. The answer takes no lock and allocates no
//! memory.

use memcheck_ledger::site;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

static ON: AtomicBool = AtomicBool::new(false);
/// The number of requests since [`begin`].
static COUNT: AtomicU64 = AtomicU64::new(0);
/// The number of the request that is refused, from 1; 0 if none is.
static REFUSED: AtomicU64 = AtomicU64::new(0);
/// True if the request with that number was made.
static WAS_REFUSED: AtomicBool = AtomicBool::new(false);

/// The most requests of an iteration whose call stacks are known.
const KNOWN: usize = 1 << 16;
static REQUESTS: [AtomicU64; KNOWN] = [const { AtomicU64::new(0) }; KNOWN];

/// A request for device memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RefusalRequest {
    /// Call stack and scope, as a number of [`memcheck_ledger::site`]; 0 if it is not known.
    pub(crate) context: u32,
    pub(crate) bytes: u64,
}

impl RefusalRequest {
    const CONTEXT_BITS: u32 = 24;
    /// Marks a word as a request. A request above 512 GiB is recorded with this size.
    const IS_REQUEST: u64 = 1 << 63;
    const MOST_BYTES: u64 = (1 << 39) - 1;

    fn pack(self) -> u64 {
        let context = u64::from(self.context) & ((1 << Self::CONTEXT_BITS) - 1);
        Self::IS_REQUEST | self.bytes.min(Self::MOST_BYTES) << Self::CONTEXT_BITS | context
    }

    fn unpack(word: u64) -> Option<Self> {
        let context = (word & ((1 << Self::CONTEXT_BITS) - 1)) as u32;
        let bytes = word >> Self::CONTEXT_BITS & Self::MOST_BYTES;
        (word & Self::IS_REQUEST != 0).then_some(Self { context, bytes })
    }
}

/// Counts requests from now on, and refuses the one with this number; `None` refuses none.
pub(crate) fn begin(number: Option<u64>) {
    COUNT.store(0, Relaxed);
    WAS_REFUSED.store(false, Relaxed);
    REFUSED.store(number.unwrap_or(0), Relaxed);
    ON.store(true, Relaxed);
}

/// Stops counting. True if a request was refused.
pub(crate) fn end() -> bool {
    ON.store(false, Relaxed);
    WAS_REFUSED.load(Relaxed)
}

/// The number of requests between the last [`begin`] and [`end`], and the first [`KNOWN`] of them.
pub(crate) fn requests() -> (u64, Vec<RefusalRequest>) {
    let count = COUNT.load(Relaxed);
    let known = usize::try_from(count).unwrap_or(KNOWN).min(KNOWN);
    let of = |word: &AtomicU64| {
        RefusalRequest::unpack(word.load(Relaxed))
            .unwrap_or(RefusalRequest { context: 0, bytes: 0 })
    };
    (count, REQUESTS[..known].iter().map(of).collect())
}

/// True if requests are counted.
#[cfg(feature = "cuda")]
#[inline]
pub(crate) fn is_on() -> bool {
    ON.load(Relaxed)
}

/// Counts a request. True if it must be refused.
#[cfg_attr(
    not(any(feature = "cuda", test)),
    expect(dead_code, reason = "only the CUDA probe asks")
)]
pub(crate) fn refuses(bytes: u64) -> bool {
    let request = RefusalRequest { context: site::current_context(), bytes };
    let number = COUNT.fetch_add(1, Relaxed) + 1;
    if let Some(word) = usize::try_from(number - 1).ok().and_then(|at| REQUESTS.get(at)) {
        word.store(request.pack(), Relaxed);
    }
    let is_refused = number == REFUSED.load(Relaxed);
    if is_refused {
        WAS_REFUSED.store(true, Relaxed);
    }
    is_refused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_request_is_refused_by_its_number() {
        let asked = |number| {
            begin(number);
            let refused: Vec<bool> = (1..=4).map(|number| refuses(number * 10)).collect();
            (refused, end())
        };
        assert_eq!(asked(None), (vec![false; 4], false));
        let request = RefusalRequest { context: 0, bytes: 30 };
        assert_eq!(asked(Some(3)), (vec![false, false, true, false], true));
        let (count, known) = requests();
        assert_eq!((count, known.len(), known[2]), (4, 4, request));
        assert!(!asked(Some(5)).1, "the iteration made fewer requests");
    }

    #[test]
    fn a_request_is_one_word() {
        for request in [
            RefusalRequest { context: 0, bytes: 0 },
            RefusalRequest { context: (1 << 24) - 1, bytes: 1 << 38 },
            RefusalRequest { context: 7, bytes: RefusalRequest::MOST_BYTES },
        ] {
            assert_eq!(RefusalRequest::unpack(request.pack()), Some(request));
        }
        assert_eq!(RefusalRequest::unpack(0), None);
    }
}
