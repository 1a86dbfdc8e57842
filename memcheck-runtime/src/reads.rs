//! Reads of unknown values of the simulated device: counts them while the body runs, and walks the
//! call stacks of the first ones, also in a run that only counts.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use memcheck_core::measurement::unknown_reads::{ReadSite, UnknownReads, UnresolvedReads};

use crate::site::{Executable, sources};

static READS: Mutex<Reads> = Mutex::new(Reads::new());

/// The number of reads whose call stacks are walked. A walk takes some microseconds.
#[cfg_attr(not(feature = "sim"), expect(dead_code, reason = "only the simulator reports reads"))]
const WALKED: u64 = 256;

/// The reads so far.
struct Reads {
    is_counting: bool,
    reads: u64,
    bytes: u64,
    /// The distinct call stacks and element types of the first reads, with their numbers.
    stacks: Vec<(Vec<u64>, Option<&'static str>, u64)>,
}

impl Reads {
    const fn new() -> Self {
        Self { is_counting: false, reads: 0, bytes: 0, stacks: Vec::new() }
    }
}

fn reads() -> MutexGuard<'static, Reads> {
    READS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts to count, before the body runs. The caller must be quiet.
pub(crate) fn start() {
    #[cfg(feature = "sim")]
    memcheck_sim::observe_unknown_reads(|read| observe(read.bytes, read.element));
    *reads() = Reads { is_counting: true, ..Reads::new() };
}

/// Counts, or stops counting while iterations beyond the measured ones run, because their number
/// depends on time.
pub(crate) fn set_counting(is_counting: bool) {
    reads().is_counting = is_counting;
}

/// Stops counting. Returns the reads so far; `None` if there were none. Source files below
/// `workspace` are named relative to it.
pub(crate) fn finish(workspace: &Path) -> Option<UnknownReads> {
    let Reads { reads, bytes, stacks, .. } = std::mem::replace(&mut *reads(), Reads::new());
    if reads == 0 {
        return None;
    }
    let executable = Executable::find();
    let site = |(frames, element, reads): (Vec<u64>, Option<&str>, u64)| {
        let site = ReadSite { at: None, element: element.map(str::to_owned), reads };
        (executable.calls(&frames), site)
    };
    let sites = stacks.into_iter().map(site).collect();
    let unresolved = Some(UnresolvedReads { sources: sources(workspace), sites });
    Some(UnknownReads { reads, bytes, sites: Vec::new(), unresolved })
}

#[cfg(feature = "sim")]
fn observe(bytes: u64, element: Option<&'static str>) {
    let _quiet = memcheck_core::measurement::quiet::enter();
    let mut known = reads();
    if !known.is_counting {
        return;
    }
    known.bytes = known.bytes.saturating_add(bytes);
    known.reads += 1;
    if known.reads > WALKED {
        return;
    }
    let frames = crate::site::frames();
    match known.stacks.iter_mut().find(|stack| stack.0 == frames && stack.1 == element) {
        Some((_, _, count)) => *count += 1,
        None => known.stacks.push((frames, element, 1)),
    }
}
