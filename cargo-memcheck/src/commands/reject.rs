//! `cargo memcheck reject`: pending snapshots are thrown away.

use memcheck_core::exit;

use crate::cli::SnapshotArgs;
use crate::error::Failure;
use crate::present::{json, say};
use crate::snapshots;

/// Rejects all that are meant, sound or not.
pub(super) fn reject(args: &SnapshotArgs) -> Result<u8, Failure> {
    let workspace = snapshots::workspace(args)?;
    for file in snapshots::gather(args, &workspace)? {
        snapshots::reject(&file)?;
        json::snapshot(args.output.form.message_format, "rejected", &file.path);
        say!("rejected {}", snapshots::shown(&file.path, &workspace));
    }
    Ok(exit::OK)
}
