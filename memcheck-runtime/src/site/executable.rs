//! Where the executable of this process was loaded, and where its sources were
//! compiled: all that is needed to look up the names of its addresses elsewhere.

use std::ops::Range;
use std::path::Path;

use memcheck_core::stack::Sources;

use super::modules;

/// The folders that the crates of this tool were compiled in.
const OWN: &[(&str, &str)] = &[
    (env!("CARGO_MANIFEST_DIR"), "memcheck_runtime"),
    (memcheck_core::FOLDER, "memcheck_core"),
    #[cfg(feature = "sim")]
    (memcheck_sim::FOLDER, "memcheck_sim"),
];

/// The folders of sources in the line tables of this executable.
pub(crate) fn sources(workspace: &Path) -> Sources {
    let own = OWN.iter().map(|&(folder, krate)| (folder.to_owned(), krate.to_owned())).collect();
    Sources { workspace: workspace.to_string_lossy().into_owned(), own }
}

/// The executable in the memory of this process.
#[derive(Debug, Default)]
pub(crate) struct Executable {
    base: u64,
    range: Range<u64>,
}

impl Executable {
    /// Asks the loader for it.
    pub(crate) fn find() -> Self {
        modules::first().map(|(base, range)| Self { base, range }).unwrap_or_default()
    }

    /// The calls that return to these addresses, relative to the executable's base.
    /// Frames of the libraries that are loaded next to it are plumbing and left out.
    pub(crate) fn calls(&self, frames: &[u64]) -> Vec<u64> {
        // The byte before the return address is part of the call.
        let calls = frames.iter().map(|address| address.saturating_sub(1));
        calls.filter(|call| self.range.contains(call)).map(|call| call - self.base).collect()
    }
}
