//! The output of the commands that compare runs.

pub(crate) mod bisect;
pub(crate) mod compare;
pub(crate) mod history;
