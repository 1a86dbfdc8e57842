//! The largest batch that a device has room for, found by trying: halving after
//! out-of-memory, then bisecting.

use std::fmt::{Debug, Display};
use std::ops::{Bound, RangeBounds, RangeInclusive};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use candle_core::Device;
use memcheck_core::limits::{DEFAULT_MAX_RETAINED_DEVICE, DEFAULT_MAX_RETAINED_HOST};
use memcheck_core::search::{RangeError, Search, Start};
use memcheck_core::size::{Size, both};
use memcheck_core::space::Space;
use memcheck_core::tolerance::Tolerance;
use memcheck_core::verdict::{gist, says_out_of_memory};

use crate::ledger::{self, PeakWindow};
use crate::{device, outcome, usage};

/// What is left free where nobody says: contexts, libraries and rounding take
/// their part of a real device.
const MARGIN: Tolerance = Tolerance { percent: 5.0, bytes: 0 };

/// The largest of `batches` that `attempt` has room for on `device`, with 5 %
/// of the device left free; see [`LargestBatch`] for other margins.
///
/// ```no_run
/// # fn step(batch: usize) -> candle_core::Result<()> { Ok(()) }
/// # fn train(device: &candle_core::Device) -> candle_core::Result<()> {
/// let batch = memcheck_runtime::largest_batch(device, 1..=512, |batch| step(batch))?;
/// # let _ = batch;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// See [`LargestBatch::find`].
pub fn largest_batch<R, E: Debug + Display>(
    device: &Device,
    batches: impl RangeBounds<usize>,
    attempt: impl FnMut(usize) -> Result<R, E>,
) -> Result<usize, LargestBatchError<E>> {
    LargestBatch::new(batches).find(device, attempt)
}

/// Why there is no largest batch.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LargestBatchError<E: Debug + Display> {
    /// An attempt failed for another reason than memory: its own error.
    #[error("{0}")]
    Failed(E),
    /// There is no room for the smallest batch.
    #[error("no room for a batch of {batch}, the smallest allowed: {why}")]
    NoRoom {
        /// That batch.
        batch: usize,
        /// What it failed with.
        why: String,
    },
    /// An attempt left memory behind: the next would have less room for it.
    #[error(
        "the attempt with a batch of {batch} kept {}: what it allocates has to be dropped when it \
         ends (`max_retained` allows a library's workspace)",
        both(*.bytes)
    )]
    Kept {
        /// The batch.
        batch: usize,
        /// Bytes that were live when it had ended, and not before it began.
        bytes: u64,
    },
    /// A range without an end: only a device that refuses would end it.
    #[error("the range of batches has no end: write the largest one to try, as in `1..=512`")]
    Endless,
    /// The range of batches.
    #[error(transparent)]
    Range(#[from] RangeError),
    /// A margin, a limit or `max_retained` that cannot be read.
    #[error("{0}")]
    Written(String),
    /// The CPU has no capacity of its own.
    #[error("the CPU has no capacity: `LargestBatch::limit(\"8 GiB\")` says what may be used")]
    NoCapacity,
    /// The device does not answer.
    #[error(transparent)]
    Device(candle_core::Error),
}

/// An attempt's own error comes out as it is.
impl From<LargestBatchError<candle_core::Error>> for candle_core::Error {
    fn from(error: LargestBatchError<candle_core::Error>) -> Self {
        match error {
            LargestBatchError::Failed(error) | LargestBatchError::Device(error) => error,
            other => Self::wrap(other),
        }
    }
}

/// A search for the largest batch.
#[derive(Debug, Clone)]
pub struct LargestBatch {
    /// `None`: they have no end.
    batches: Option<RangeInclusive<usize>>,
    margin: Result<Tolerance, String>,
    limit: Result<Option<Size>, String>,
    max_retained: Result<Option<Size>, String>,
}

impl LargestBatch {
    /// Over these batches (`1..=512`, `1..513`, `..=512`; from 1 where there is
    /// no beginning), with 5 % of the device left free.
    pub fn new(batches: impl RangeBounds<usize>) -> Self {
        let from = match batches.start_bound() {
            Bound::Included(&from) => from,
            Bound::Excluded(&before) => before.saturating_add(1),
            Bound::Unbounded => 1,
        };
        let to = match batches.end_bound() {
            Bound::Included(&to) => Some(to),
            Bound::Excluded(&behind) => Some(behind.saturating_sub(1)),
            Bound::Unbounded => None,
        };
        let batches = to.map(|to| from..=to);
        Self { batches, margin: Ok(MARGIN), limit: Ok(None), max_retained: Ok(None) }
    }

    /// What is left free of the device: `"5%"`, `"2 GiB"`, or the larger of
    /// both, `"5% | 2 GiB"`.
    #[must_use]
    pub fn margin(self, margin: impl AsRef<str>) -> Self {
        Self { margin: margin.as_ref().parse().map_err(shown), ..self }
    }

    /// The most that may be live at once, `"8 GiB"`: on the CPU, which has no
    /// capacity of its own, and on a device that others use as well.
    #[must_use]
    pub fn limit(self, limit: impl AsRef<str>) -> Self {
        Self { limit: limit.as_ref().parse().map(Some).map_err(shown), ..self }
    }

    /// What an attempt may leave behind, `"32 MiB"`: the workspace of a library,
    /// say. Nothing unless said, on the CPU 64 KiB.
    #[must_use]
    pub fn max_retained(self, bytes: impl AsRef<str>) -> Self {
        Self { max_retained: bytes.as_ref().parse().map(Some).map_err(shown), ..self }
    }

    /// The largest batch that `attempt` has room for: with it and with the next
    /// one, which has none, it has been called. What it returns is dropped.
    ///
    /// On a GPU the first batch is the largest of the range, halved as long as
    /// memory runs out; on the CPU, where memory must not run out, the smallest,
    /// doubled. Memory has run out where `attempt` fails or panics with
    /// an error that says so, or after an allocation that was refused, and where
    /// its peak is above the limit or in the margin. After each attempt the
    /// device is synchronised and its cached memory released.
    ///
    /// # Errors
    /// When there is no room for the smallest batch, an attempt fails for
    /// another reason, or leaves memory behind; when the range has no end.
    ///
    /// # Panics
    /// When an attempt panics for another reason than memory.
    pub fn find<R, E: Debug + Display>(
        self,
        device: &Device,
        attempt: impl FnMut(usize) -> Result<R, E>,
    ) -> Result<usize, LargestBatchError<E>> {
        let found = self.search(device, attempt);
        // A search lives with what was refused, unless that is why it found nothing:
        // a test that ends with this error is out of memory, where it was refused.
        if !matches!(found, Err(LargestBatchError::NoRoom { .. })) {
            ledger::forget_refusal(device::space(device));
        }
        found
    }

    fn search<R, E: Debug + Display>(
        self,
        device: &Device,
        mut attempt: impl FnMut(usize) -> Result<R, E>,
    ) -> Result<usize, LargestBatchError<E>> {
        use LargestBatchError::{Device as OfDevice, Endless, Kept, NoCapacity, NoRoom, Written};
        let batches = self.batches.ok_or(Endless)?;
        let margin = self.margin.map_err(Written)?;
        let limit = self.limit.map_err(Written)?.map(|Size(bytes)| bytes);
        let allowed = self.max_retained.map_err(Written)?.map(|Size(bytes)| bytes);
        let start = if device.is_cpu() { Start::Lowest } else { Start::Highest };
        let (from, to) = (*batches.start() as u64, *batches.end() as u64);
        let mut search = Search::new(from..=to, start)?;
        let space = device::space(device);
        let allowed = allowed.unwrap_or(if space.is_device() {
            DEFAULT_MAX_RETAINED_DEVICE
        } else {
            DEFAULT_MAX_RETAINED_HOST
        });
        usage::arm();
        usage::release_cached(device).map_err(OfDevice)?;
        let capacity = available(device, space).map_err(OfDevice)?;
        let of_device = capacity.map(|bytes| margin.floor(bytes));
        let most = match (limit, of_device) {
            (Some(limit), Some(of_device)) => limit.min(of_device),
            (Some(limit), None) => limit,
            (None, Some(of_device)) => of_device,
            (None, None) => return Err(NoCapacity),
        };
        let mut last = String::new();
        while let Some(value) = search.next() {
            let batch = usize::try_from(value).unwrap_or(usize::MAX);
            let before = ledger::snapshot(space).live;
            let ended = run(space, || attempt(batch));
            let (full, peak) = match ended {
                (Ended::Room, peak) if peak > most => {
                    let why =
                        format!("its peak is {}, at most {} may be used", both(peak), both(most));
                    (Some(why), peak)
                }
                (Ended::Room, peak) => (None, peak),
                (Ended::Full(why), peak) => (Some(why), peak),
                (Ended::Failed(error), _) => return Err(LargestBatchError::Failed(error)),
            };
            tracing::info!(target: "memcheck", batch, has_room = full.is_none(), peak, "largest_batch");
            usage::release_cached(device).map_err(OfDevice)?;
            let bytes = ledger::snapshot(space).live.saturating_sub(before);
            if bytes > allowed {
                return Err(Kept { batch, bytes });
            }
            search.tried(value, full.is_none());
            last = full.unwrap_or(last);
        }
        let largest = search.largest().and_then(|value| usize::try_from(value).ok());
        largest.ok_or(NoRoom { batch: *batches.start(), why: last })
    }
}

fn shown(error: impl Display) -> String {
    error.to_string()
}

/// How one attempt ended.
enum Ended<E> {
    Room,
    Full(String),
    Failed(E),
}

/// Runs one attempt: how it ended, and the most that was live meanwhile. A refusal
/// that ended it is kept until the next one.
fn run<R, E: Debug + Display>(
    space: Space,
    attempt: impl FnOnce() -> Result<R, E>,
) -> (Ended<E>, u64) {
    ledger::forget_refusal(space);
    let window = PeakWindow::open(space);
    // Whatever is half done is dropped: nobody sees it after a panic.
    let result = catch_unwind(AssertUnwindSafe(|| attempt().map(drop)));
    let peak = window.close();
    // To show an error may resolve a backtrace, which is not the attempt's.
    let quiet = memcheck_core::quiet::enter();
    let after = ledger::snapshot(space);
    // One that the attempt lived with did not end it.
    let refused = after.refused_bytes > 0 && after.refused_after == after.allocations;
    let is_full = |text: &str| refused || says_out_of_memory(text);
    let ended = match result {
        Ok(Ok(())) => {
            ledger::forget_refusal(space);
            Ended::Room
        }
        Ok(Err(error)) if is_full(&format!("{error:?}")) => {
            Ended::Full(gist(&error.to_string()).to_owned())
        }
        Ok(Err(error)) => Ended::Failed(error),
        Err(payload) => match outcome::panic_message(&*payload) {
            text if is_full(&text) => Ended::Full(gist(&text).to_owned()),
            _ => {
                drop(quiet);
                resume_unwind(payload)
            }
        },
    };
    (ended, peak)
}

/// What this process may have of the device: what it has, and what is free.
/// `None` on the CPU.
#[cfg(feature = "cuda")]
fn available(device: &Device, space: Space) -> candle_core::Result<Option<u64>> {
    use candle_core::cuda_backend::WrapErr;
    let Device::Cuda(cuda) = device else { return Ok(None) };
    let stream = cuda.cuda_stream();
    let (free, _) = stream.context().mem_get_info().w()?;
    Ok(Some(ledger::snapshot(space).live.saturating_add(free as u64)))
}

#[cfg(not(feature = "cuda"))]
fn available(_: &Device, _: Space) -> candle_core::Result<Option<u64>> {
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_any_form_is_searched_and_one_without_an_end_refused() {
        let found = |search: LargestBatch| {
            let attempt = |batch: usize| match batch {
                // No memory is asked for: what has no room says so.
                0..=7 => Ok(()),
                _ => Err("out of memory"),
            };
            // Other tests of this process allocate meanwhile.
            let search = search.limit(String::from("1 GiB")).max_retained("1 GiB");
            search.find(&Device::Cpu, attempt)
        };
        for search in [
            LargestBatch::new(1..=64),
            LargestBatch::new(1..65),
            LargestBatch::new(..=64),
            LargestBatch::new((Bound::Excluded(6), Bound::Included(8))),
        ] {
            assert_eq!(found(search).unwrap(), 7);
        }
        assert_eq!(found(LargestBatch::new(1..7)).unwrap(), 6, "the end is not tried");
        let endless = found(LargestBatch::new(1..)).unwrap_err().to_string();
        assert!(endless.contains("write the largest one to try, as in `1..=512`"), "{endless}");
        assert!(found(LargestBatch::new(8..8)).is_err(), "there is none");
    }
}
