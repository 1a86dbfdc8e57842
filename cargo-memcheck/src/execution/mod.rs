//! Execution: tests and programs run, and outcomes are judged beyond their own process.

pub(crate) mod bookkeeping;
#[cfg(feature = "estimates")]
pub(crate) mod estimator;
#[cfg(feature = "estimates")]
pub(crate) mod fit;
#[cfg(feature = "comparison")]
pub(crate) mod lock_file;
pub(crate) mod note;
pub(crate) mod proof;
pub(crate) mod relations;
#[cfg(feature = "comparison")]
pub(crate) mod revision;
pub(crate) mod run;
pub(crate) mod schedule;
