//! Discovery: the devices to run on, and the tests of each.

pub(crate) mod archive;
pub(crate) mod legs;
pub(crate) mod listing;
pub(crate) mod matching;
pub(crate) mod select;
pub(crate) mod session;
pub(crate) mod task;
