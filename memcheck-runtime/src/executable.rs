//! The executable of this process: the address at which it was loaded, and the folders in which its
//! sources were compiled. Another process needs both to look up the names of its addresses.

use std::ops::Range;
use std::path::Path;

use memcheck_core::measurement::stack::Sources;
use memcheck_ledger::site;

/// The folders in which the crates of this tool were compiled.
const OWN: &[(&str, &str)] = &[
    (env!("CARGO_MANIFEST_DIR"), "memcheck_runtime"),
    (memcheck_core::FOLDER, "memcheck_core"),
    (memcheck_ledger::FOLDER, "memcheck_ledger"),
    #[cfg(feature = "sim")]
    (memcheck_sim::FOLDER, "memcheck_sim"),
];

/// The folders of sources in the line tables of this executable.
pub(crate) fn sources(workspace: &Path) -> Sources {
    let own = OWN.iter().map(|&(folder, krate)| (folder.to_owned(), krate.to_owned())).collect();
    Sources { workspace: workspace.to_string_lossy().into_owned(), own }
}

/// The position of the executable in the memory of this process.
#[derive(Debug, Default)]
pub(crate) struct Executable {
    base: u64,
    range: Range<u64>,
}

impl Executable {
    /// Gets the position from the loader.
    pub(crate) fn find() -> Self {
        site::executable().map(|(base, range)| Self { base, range }).unwrap_or_default()
    }

    /// The calls that return to these addresses, relative to the executable's base. Frames of
    /// shared libraries are omitted, because they are plumbing.
    pub(crate) fn calls(&self, frames: &[u64]) -> Vec<u64> {
        frames.iter().filter_map(|frame| self.call(*frame)).collect()
    }

    /// The same for one address.
    pub(crate) fn call(&self, frame: u64) -> Option<u64> {
        // The byte before the return address belongs to the call.
        let call = frame.saturating_sub(1);
        self.range.contains(&call).then(|| call - self.base)
    }
}
