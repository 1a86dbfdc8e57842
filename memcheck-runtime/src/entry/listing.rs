//! The list of the memory tests in this executable.

use std::path::PathBuf;

use memcheck_core::wire::protocol::{Entry, Listing, VERSION};

use crate::description::{DESCRIPTIONS, Description};

/// Prints the list and ends the process.
pub(super) fn print() -> ! {
    use std::io::Write;
    let json = serde_json::to_string(&listing()).expect("a listing is JSON");
    let written = writeln!(std::io::stdout(), "{json}");
    std::process::exit(i32::from(written.is_err()));
}

pub(super) fn listing() -> Listing {
    let mut tests: Vec<Entry> = DESCRIPTIONS.iter().map(|description| entry(description)).collect();
    // The linker decides the order of the registrations.
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
