//! Execution: tests and programs run, and outcomes are judged beyond their own process.

pub(crate) mod bookkeeping;
pub(crate) mod estimator;
pub(crate) mod fit;
pub(crate) mod lock_file;
pub(crate) mod note;
pub(crate) mod proof;
pub(crate) mod relations;
pub(crate) mod revision;
pub(crate) mod run;
pub(crate) mod schedule;
