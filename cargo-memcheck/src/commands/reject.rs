//! `cargo memcheck reject`: pending snapshots are thrown away.

use memcheck_core::exit;

use crate::cli::SnapshotArgs;
use crate::error::Failure;
use crate::present::say;
use crate::snapshots;

/// Rejects all that are meant, sound or not.
pub(super) fn reject(args: &SnapshotArgs) -> Result<u8, Failure> {
    let workspace = snapshots::workspace(args)?;
    for file in snapshots::gather(args, &workspace)? {
        snapshots::reject(&file)?;
        say!("rejected {}", snapshots::shown(&file.path, &workspace));
    }
    Ok(exit::OK)
}
