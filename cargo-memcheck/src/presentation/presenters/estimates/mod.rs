//! The output of the commands that search for what a device has room for.

pub(crate) mod estimate;
pub(crate) mod fit;
pub(crate) mod plan;
