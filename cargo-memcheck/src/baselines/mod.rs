//! Snapshots on disk: finds those of memory tests, reads them, and turns pending ones into
//! baselines. `cargo insta` can process all of them.

pub(crate) mod diff;
mod earlier;
mod find;
mod resolve;
pub(crate) mod selected;
mod source_functions;

pub(crate) use earlier::{SetAside, set_aside};
pub(crate) use find::{SnapshotFile, accepted, pending, pending_below};
pub(crate) use resolve::{
    Body, CheckedSnapshot, SnapshotError, accept, check, check_target, reject,
};
pub(crate) use source_functions::SourceFunctions;
