//! Snapshots on disk: which are ours, what they say, and how a pending one
//! becomes a baseline. Written by insta in the test process; `cargo insta` can
//! work on the same files.

pub(crate) mod diff;
mod find;
mod gather;
mod resolve;
mod written;

pub(crate) use find::{SnapshotFile, accepted, pending, pending_below};
pub(crate) use gather::{gather, shown, workspace};
pub(crate) use resolve::{Body, Checked, SnapshotError, accept, check, reject};
pub(crate) use written::Written;
