//! Runs before `main`, and so before the test harness starts.

use memcheck_core::request::variables;

use super::job::{self, Purpose};
use super::{listing, program};
use crate::{forked, os};

/// Answers a listing request, starts to follow a profiled program, and makes the main thread of a
/// test process quiet, because the test harness runs on it. Under a plain harness, supervises the
/// process of a test instead.
#[ctor::ctor(unsafe)]
fn before_main() {
    #[cfg(all(unix, not(feature = "cuda")))]
    crate::probe::no_device::link();
    // First, because a supervisor is this executable too, and must do nothing else.
    if os::supervise_if_named() {
        std::process::exit(0);
    }
    forked::begin();
    if std::env::var_os(variables::LIST).is_some() {
        listing::print();
    }
    if let Ok(job) = std::env::var(variables::PROGRAM) {
        program::start(&job);
    }
    // An invalid job is reported when the test begins.
    if let Purpose::Job(_) = job::take() {
        std::mem::forget(memcheck_core::quiet::enter());
        os::take_name();
    }
}
