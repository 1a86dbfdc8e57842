//! Reads of unknown values of the simulated device: counts them while the body runs, and walks the
//! call stacks of the first ones, also in a run that only counts.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use memcheck_core::measurement::unknown_reads::{ReadSite, UnknownReads, UnresolvedReads};

use crate::executable::{Executable, sources};

static READS: Mutex<Reads> = Mutex::new(Reads::new());

/// The number of reads whose call stacks are walked. A walk takes some microseconds, and such reads
/// are rare, so that runs that only count walk them too.
#[cfg_attr(not(feature = "sim"), expect(dead_code, reason = "only the simulator reports reads"))]
const WALKED: u64 = 256;

/// The reads so far.
struct Reads {
    #[cfg_attr(not(feature = "sim"), expect(dead_code, reason = "only the simulator reads it"))]
    is_counting: bool,
    /// True while iterations beyond the measured ones run.
    is_further: bool,
    measured: Tally,
    /// Those of iterations beyond the measured ones. Their number depends on time.
    further: Tally,
}

struct Tally {
    reads: u64,
    bytes: u64,
    /// The distinct call stacks and element types of the first reads, with their numbers.
    stacks: Vec<(Vec<u64>, Option<&'static str>, u64)>,
}

impl Tally {
    const NONE: Self = Self { reads: 0, bytes: 0, stacks: Vec::new() };

    #[cfg(feature = "sim")]
    fn add(&mut self, bytes: u64, element: Option<&'static str>) {
        self.bytes = self.bytes.saturating_add(bytes);
        self.reads += 1;
        if self.reads > WALKED {
            return;
        }
        let frames = memcheck_ledger::site::frames();
        match self.stacks.iter_mut().find(|stack| stack.0 == frames && stack.1 == element) {
            Some((_, _, count)) => *count += 1,
            None => self.stacks.push((frames, element, 1)),
        }
    }
}

impl Reads {
    const fn new() -> Self {
        Self { is_counting: false, is_further: false, measured: Tally::NONE, further: Tally::NONE }
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

/// Must be called before and after iterations beyond the measured ones.
pub(crate) fn set_further(is_further: bool) {
    reads().is_further = is_further;
}

/// Stops counting. Returns the reads so far; `None` if there were none. Source files below
/// `workspace` are named relative to it.
///
/// Reads of further iterations are left out if there are others, because they have no other reason
/// and their number depends on time.
pub(crate) fn finish(workspace: &Path) -> Option<UnknownReads> {
    let Reads { measured, further, .. } = std::mem::replace(&mut *reads(), Reads::new());
    let Tally { reads, bytes, stacks } = measured;
    let (further, stacks) = match reads {
        0 => (further.reads, further.stacks),
        _ => (0, stacks),
    };
    if reads == 0 && further == 0 {
        return None;
    }
    let executable = Executable::find();
    let site = |(frames, element, reads): (Vec<u64>, Option<&str>, u64)| {
        let site = ReadSite { at: None, element: element.map(str::to_owned), reads };
        (executable.calls(&frames), site)
    };
    let sites = stacks.into_iter().map(site).collect();
    let unresolved = Some(UnresolvedReads { sources: sources(workspace), sites });
    Some(UnknownReads { reads, bytes, further, sites: Vec::new(), unresolved })
}

#[cfg(feature = "sim")]
fn observe(bytes: u64, element: Option<&'static str>) {
    let _quiet = memcheck_core::quiet::enter();
    let mut known = reads();
    if !known.is_counting {
        return;
    }
    if !known.is_further {
        known.measured.add(bytes, element);
    } else if known.measured.reads == 0 {
        known.further.add(bytes, element);
    }
}
