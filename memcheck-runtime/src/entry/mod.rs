//! The entry points of a memory test: the registration, and the function that the generated
//! `#[test]` calls.
//!
//! ```text
//! cargo test, nextest ──► run ──► isolate ──► supervisor ──► a process of its own ─┐
//! cargo memcheck ─────────────────────────────► supervisor ──► (the same) ─────────┤
//!                                                                    ▼
//!                                          run ──► session: measure, report
//!                                            └───► sweep: allocations are refused in turn
//! cargo memcheck profile --bin ──► before main ──► program: from there to its exit
//! ```

mod before_main;
mod body;
mod harness;
mod isolate;
mod job;
mod listing;
mod measure;
mod observe;
mod open;
mod ordinary;
mod pool;
mod program;
mod restart;
mod rounds;
mod session;
mod settings;
mod sweep;

use memcheck_core::request::variables;
use memcheck_core::wire::protocol::Reach;

use job::Purpose;

use crate::description::Description;
use crate::os::{self, Instrument};

/// Runs a memory test. The `#[test]` that the attribute generates calls this function.
///
/// # Panics
/// If the test fails, with its findings.
pub fn run(description: &'static Description) {
    match job::purpose() {
        Purpose::None if os::INSTRUMENT == Instrument::None => ordinary::run(description),
        Purpose::None => isolate::run(description),
        Purpose::Job(job) if job.test == description.path() => {
            job::end_if_forked();
            match job.reach {
                Reach::Faults => sweep::run(description, job),
                Reach::Screen | Reach::Horizon | Reach::Decision | Reach::Soak(_) => {
                    session::run(description, job)
                }
            }
        }
        Purpose::Job(job) => panic!("this process was started for `{}`", job.test),
        Purpose::Foreign => panic!(
            "{} was set by another version of memcheck: use the same version of cargo-memcheck \
             and memcheck-runtime",
            variables::JOB
        ),
    }
}
