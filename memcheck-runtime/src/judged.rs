//! The spaces of a test that are judged.
//!
//! With candle, memcheck opens the device of a test, so that its space is known before the body
//! runs. Without candle, the program opens devices itself or uses none: on a leg with a GPU the
//! devices on which it has allocated are judged, and the host if there are none.

use memcheck_core::limits::Limits;
use memcheck_core::measurement::record::{Outcome, Record};
use memcheck_core::size::both;
use memcheck_core::space::Space;
use memcheck_ledger::{self as ledger, block};

use crate::device::IS_OPENED_FOR_TEST;

fn is_used(space: Space) -> bool {
    ledger::snapshot(space).allocations > 0
}

/// True if the host can turn out to be the judged space of a test whose device has the space `own`.
pub(crate) fn may_be_host(own: Space) -> bool {
    own == Space::Host || !IS_OPENED_FOR_TEST
}

/// The space of the test's own device, after the body has run.
pub(crate) fn own(own: Space) -> Space {
    let is_host = || !block::spaces().any(|space| space.is_of_driver() && is_used(space));
    if !IS_OPENED_FOR_TEST && is_host() { Space::Host } else { own }
}

/// The test's own space, all other spaces of the same kind in which it has allocated, and those
/// with a limit of their own. In a test on a GPU the host is one of them.
pub(crate) fn spaces(opened: Space, limits: &Limits) -> Vec<Space> {
    let own = own(opened);
    let is_certain = IS_OPENED_FOR_TEST || own == Space::Host;
    let of_same_kind = block::spaces()
        .filter(|space| !space.has_own_limit() && space.is_of_driver() == own.is_device())
        .filter(|&space| (space == own && is_certain) || is_used(space));
    let host = [
        (Space::Host, limits.judges_host()),
        (Space::HostSmall, limits.max_host_growth.value.is_some()),
    ];
    let host = host.into_iter().filter(|(_, is_judged)| *is_judged && own.is_device());
    let host = host.map(|(space, _)| space);
    let c_heap = limits.max_c_growth.value.map(|_| Space::CHeap);
    let resident = limits.max_rss_growth.value.map(|_| Space::Process);
    of_same_kind.chain(host).chain(c_heap).chain(resident).collect()
}

/// The note of a test on a leg with a GPU that has used no GPU, as far as memcheck can see.
pub(crate) fn note(opened: Space, record: &Record) -> Option<String> {
    if cfg!(feature = "cuda") && !IS_OPENED_FOR_TEST && own(opened) == Space::Host {
        return Some(not_linked(opened));
    }
    let is_used = || block::spaces().any(|space| space.is_of_driver() && is_used(space));
    let returned = record.outcome == Outcome::Returned;
    (opened.is_device() && returned && !is_used()).then(|| not_used(opened, record))
}

fn not_linked(opened: Space) -> String {
    let how = match opened.is_device() {
        true => {
            "the body allocated no memory by a call of the CUDA driver or runtime that is linked \
             into it"
        }
        false => "the executable does not link the CUDA driver",
    };
    format!(
        "no GPU was measured, only the host: {how}. Calls of a library that loads CUDA at run time \
         (`dlopen`) are not counted"
    )
}

/// A body that picks another device has no figures of its own.
fn not_used(opened: Space, record: &Record) -> String {
    let growth = record.spaces.get(&Space::Host).and_then(|host| {
        let (first, last) = (host.allocated.first()?, host.allocated.last()?);
        let steps = host.allocated.len().checked_sub(1).filter(|&steps| steps > 0)?;
        Some(last.saturating_sub(*first) / steps as u64)
    });
    let host = match growth {
        Some(growth) if growth > 0 => {
            format!("; the host, which is not judged, grew by {} per iteration", both(growth))
        }
        _ => String::new(),
    };
    format!(
        "GPU not used: the body allocated no memory on {opened}, so that its figures are 0 B{host}. \
         Use the device of the test (`trial.device()`), judge the host too (`max_host_growth`), or \
         run the test on the CPU (`device = \"cpu\"`)"
    )
}
