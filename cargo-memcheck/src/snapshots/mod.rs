//! Snapshots on disk: which are ours, what they say, and how a pending one
//! becomes a baseline. Those of tests insta writes, in the test process, those of
//! laws and of shards that are joined the command; `cargo insta` can work on all
//! of them.

pub(crate) mod diff;
mod find;
mod gather;
pub(crate) mod leave;
mod resolve;
mod written;

pub(crate) use find::{SnapshotFile, accepted, pending, pending_below};
pub(crate) use gather::{gather, shown, workspace};
pub(crate) use resolve::{Body, Checked, SnapshotError, accept, check, reject};
pub(crate) use written::Written;
