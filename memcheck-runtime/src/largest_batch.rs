//! Searches for the largest batch that fits into the memory of a device: batches are halved after
//! out-of-memory (or doubled on the CPU), then bisected.

use std::fmt::{Debug, Display};
use std::ops::{Bound, RangeBounds, RangeInclusive};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use candle_core::Device;
use memcheck_core::judgement::verdict::{gist, says_out_of_memory};
use memcheck_core::limits::{DEFAULT_MAX_RETAINED_DEVICE, DEFAULT_MAX_RETAINED_HOST};
use memcheck_core::search::{RangeError, Search, Start};
use memcheck_core::size::{Size, both};
use memcheck_core::space::Space;
use memcheck_core::tolerance::Tolerance;
use memcheck_ledger::{self as ledger, PeakWindow};

use crate::{device, outcome, usage};

/// The default margin. A part of a real device's memory is needed for contexts, libraries and
/// rounding.
const MARGIN: Tolerance = Tolerance { percent: 5.0, bytes: 0 };

/// Finds the largest of `batches` for which `attempt` fits into the memory of `device`. 5 % of the
/// device are left free; use [`LargestBatch`] for another margin.
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

/// The reason why there is no largest batch.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LargestBatchError<E: Debug + Display> {
    /// An attempt failed for a reason other than memory. This is its error.
    #[error("{0}")]
    Failed(E),
    /// The smallest batch does not fit into the memory.
    #[error("a batch of {batch}, the smallest of the range, does not fit: {why}")]
    NoRoom {
        /// The smallest batch.
        batch: usize,
        /// The error of the attempt.
        why: String,
    },
    /// An attempt did not free all of its memory, so that the next attempt would have less.
    #[error(
        "the attempt with a batch of {batch} kept {}: an attempt must free the memory that it \
         allocates (`max_retained` allows a library's workspace)",
        both(*.bytes)
    )]
    Kept {
        /// The batch of the attempt.
        batch: usize,
        /// Bytes that were live after the attempt, minus those that were live before it.
        bytes: u64,
    },
    /// The range has no end, so that only a failing allocation could end the search.
    #[error("the range of batches has no end: add the largest batch to try, as in `1..=512`")]
    Endless,
    /// The range of batches is invalid.
    #[error(transparent)]
    Range(#[from] RangeError),
    /// A margin, a limit or a value of `max_retained` cannot be parsed.
    #[error("{0}")]
    Written(String),
    /// The CPU has no capacity, and no limit was set.
    #[error("the CPU has no capacity: set a limit with `LargestBatch::limit(\"8 GiB\")`")]
    NoCapacity,
    /// The device returned an error.
    #[error(transparent)]
    Device(candle_core::Error),
}

/// An error of an attempt is returned unchanged.
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
    /// `None` if the range has no end.
    batches: Option<RangeInclusive<usize>>,
    margin: Result<Tolerance, String>,
    limit: Result<Option<Size>, String>,
    max_retained: Result<Option<Size>, String>,
}

impl LargestBatch {
    /// A search over these batches (`1..=512`, `1..513`, `..=512`) that leaves 5 % of the device
    /// free. A range without a start begins at 1.
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

    /// Sets the share of the device that is left free: `"5%"`, `"2 GiB"`, or the larger of both,
    /// `"5% | 2 GiB"`.
    #[must_use]
    pub fn margin(self, margin: impl AsRef<str>) -> Self {
        Self { margin: margin.as_ref().parse().map_err(error_text), ..self }
    }

    /// Sets the most bytes that may be live at once, for example `"8 GiB"`. A limit is required on
    /// the CPU, which has no capacity, and useful on a device that other programs also use.
    #[must_use]
    pub fn limit(self, limit: impl AsRef<str>) -> Self {
        Self { limit: limit.as_ref().parse().map(Some).map_err(error_text), ..self }
    }

    /// Sets the bytes that an attempt may leave live, for example `"32 MiB"` for the workspace of a
    /// library. The default is 0 on a GPU and 64 KiB on the CPU.
    #[must_use]
    pub fn max_retained(self, bytes: impl AsRef<str>) -> Self {
        Self { max_retained: bytes.as_ref().parse().map(Some).map_err(error_text), ..self }
    }

    /// Returns the largest batch that fits. `attempt` has been called with this batch and, unless
    /// it is the last of the range, with the next larger one, which does not fit. The values that
    /// `attempt` returns are dropped.
    ///
    /// On a GPU the search starts with the largest batch of the range and halves it until one fits.
    /// On the CPU, whose memory must not run out, it starts with the smallest batch and doubles it.
    /// A batch does not fit if `attempt` fails or panics with an out-of-memory error or after a
    /// refused allocation, or if its peak is above the limit or within the margin. After each
    /// attempt the device is synchronized and its cached memory is released.
    ///
    /// # Errors
    /// If the smallest batch does not fit, an attempt fails for another reason, or an attempt
    /// leaves more memory live than [`LargestBatch::max_retained`] allows. Also if the range is
    /// empty, contains 0 or has no end, if an option cannot be parsed, if the CPU has no limit, or
    /// if the device returns an error.
    ///
    /// # Panics
    /// If an attempt panics for a reason other than memory.
    pub fn find<R, E: Debug + Display>(
        self,
        device: &Device,
        attempt: impl FnMut(usize) -> Result<R, E>,
    ) -> Result<usize, LargestBatchError<E>> {
        let found = self.search(device, attempt);
        // A refused allocation is a normal part of a search and is forgotten, except after
        // `NoRoom`. A test that ends with that error must be reported as out of memory at the
        // refused allocation.
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
                (AttemptResult::Fits, peak) if peak > most => {
                    let why = format!("its peak is {} (limit {})", both(peak), both(most));
                    (Some(why), peak)
                }
                (AttemptResult::Fits, peak) => (None, peak),
                (AttemptResult::TooLarge(why), peak) => (Some(why), peak),
                (AttemptResult::Failed(error), _) => return Err(LargestBatchError::Failed(error)),
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

fn error_text(error: impl Display) -> String {
    error.to_string()
}

/// The result of one attempt.
enum AttemptResult<E> {
    Fits,
    TooLarge(String),
    Failed(E),
}

/// Runs one attempt. Returns its result and the most bytes that were live during it. A refusal that
/// ended the attempt is kept until the next attempt.
fn run<R, E: Debug + Display>(
    space: Space,
    attempt: impl FnOnce() -> Result<R, E>,
) -> (AttemptResult<E>, u64) {
    ledger::forget_refusal(space);
    let window = PeakWindow::open(space);
    // Unwind safe, because the state of an attempt that panicked is dropped.
    let result = catch_unwind(AssertUnwindSafe(|| attempt().map(drop)));
    let peak = window.close();
    // Formatting an error can resolve a backtrace, whose allocations are not the attempt's.
    let quiet = memcheck_core::quiet::enter();
    let after = ledger::snapshot(space);
    // If allocations followed the refusal, the attempt handled it and did not end because of it.
    let refused = after.refused_bytes > 0 && after.refused_after == after.allocations;
    let is_full = |text: &str| refused || says_out_of_memory(text);
    let ended = match result {
        Ok(Ok(())) => {
            ledger::forget_refusal(space);
            AttemptResult::Fits
        }
        Ok(Err(error)) if is_full(&format!("{error:?}")) => {
            AttemptResult::TooLarge(gist(&error.to_string()).to_owned())
        }
        Ok(Err(error)) => AttemptResult::Failed(error),
        Err(payload) => match outcome::panic_message(&*payload) {
            text if is_full(&text) => AttemptResult::TooLarge(gist(&text).to_owned()),
            _ => {
                drop(quiet);
                resume_unwind(payload)
            }
        },
    };
    (ended, peak)
}

/// The bytes of the device that this process can use: its live bytes plus the free ones. `None` on
/// the CPU.
#[cfg(feature = "cuda")]
fn available(device: &Device, space: Space) -> candle_core::Result<Option<u64>> {
    use candle_core::cuda_backend::{WrapErr, cudarc::driver::result};
    let Device::Cuda(cuda) = device else { return Ok(None) };
    let stream = cuda.cuda_stream();
    // Not `mem_get_info` of the context, which cudarc 0.19.0 lacks.
    stream.context().bind_to_thread().w()?;
    let (free, _) = result::mem_get_info().w()?;
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
    fn every_form_of_range_is_searched_except_one_without_an_end() {
        let found = |search: LargestBatch| {
            let attempt = |batch: usize| match batch {
                // No memory is allocated: batches above 7 return the error.
                0..=7 => Ok(()),
                _ => Err("out of memory"),
            };
            // Generous limits, because other tests of this process allocate at the same time.
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
        assert!(endless.contains("add the largest batch to try, as in `1..=512`"), "{endless}");
        assert!(found(LargestBatch::new(8..8)).is_err(), "the range is empty");
    }
}
