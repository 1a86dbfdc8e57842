//! `cargo memcheck reject`: removes pending snapshots.

use memcheck_core::wire::exit;

use super::pending;
use crate::cli::SnapshotArgs;
use crate::error::Failure;
use crate::present::json;
use crate::snapshots;
use crate::talk::say;
use crate::values::Verbosity;

/// Rejects all selected snapshots, valid or not.
pub(super) fn reject(args: &SnapshotArgs) -> Result<u8, Failure> {
    let (workspace, files) = pending::gather(args)?;
    let verbosity = args.output.verbosity();
    for file in files {
        // A snapshot that cannot be read has no changes to show.
        let changes = (verbosity == Verbosity::Verbose)
            .then(|| snapshots::check(&file.path).ok())
            .flatten()
            .map(|checked| snapshots::diff::text(&file, &checked));
        snapshots::reject(&file)?;
        json::snapshot(args.output.form.message_format, "rejected", &file.path);
        if verbosity > Verbosity::Quiet {
            say!("rejected {}", pending::shown(&file.path, &workspace));
        }
        if let Some(changes) = changes {
            say!("{changes}");
        }
    }
    Ok(exit::OK)
}
