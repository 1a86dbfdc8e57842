//! Answers a request for the list of memory tests in this binary before the harness starts.

use std::path::PathBuf;

use memcheck_core::request::variables;
use memcheck_core::wire::protocol::{Entry, Listing, VERSION};

use super::job::{self, Purpose};
use super::{parent, program};
use crate::description::{DESCRIPTIONS, Description};

/// Runs before `main`. Answers a listing request, starts to follow a profiled program, makes the
/// main thread of a test process quiet, because the test harness runs on it, and ties the process
/// to its parent.
#[ctor::ctor(unsafe)]
fn before_main() {
    if std::env::var_os(variables::LIST).is_some() {
        print_listing();
    }
    if let Ok(job) = std::env::var(variables::PROGRAM) {
        program::start(&job);
    }
    // An invalid job is reported when the test begins.
    if let Purpose::Job(job) = job::take() {
        std::mem::forget(memcheck_core::measurement::quiet::enter());
        if let Some(id) = job.parent {
            parent::request_signal(id);
        }
    }
}

fn print_listing() -> ! {
    use std::io::Write;
    let json = serde_json::to_string(&listing()).expect("a listing is JSON");
    let written = writeln!(std::io::stdout(), "{json}");
    std::process::exit(i32::from(written.is_err()));
}

pub(super) fn listing() -> Listing {
    let mut tests: Vec<Entry> = DESCRIPTIONS.iter().map(|description| entry(description)).collect();
    tests.sort_by(|a, b| a.name.cmp(&b.name));
    let built_for = match (cfg!(feature = "sim"), cfg!(feature = "cuda")) {
        (true, _) => vec!["sim".to_owned()],
        (false, true) => vec!["cuda".to_owned()],
        (false, false) => Vec::new(),
    };
    Listing { memcheck: VERSION, built_for, tests }
}

pub(super) fn entry(description: &Description) -> Entry {
    Entry {
        name: description.path(),
        module: description.module.to_owned(),
        case: description.case(),
        file: PathBuf::from(description.file),
        line: description.line,
        ignored: description.ignored,
        need: description.need,
        deviceless: description.deviceless,
        attribute: (description.limits)(),
        scaling: description.scaling(),
        manifest_dir: PathBuf::from(description.manifest_dir),
        snapshot: description.snapshot_stem(),
    }
}
