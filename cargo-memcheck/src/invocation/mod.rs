//! The invocation: flags, variables and configuration become options and devices.

pub(crate) mod cli;
pub(crate) mod config;
pub(crate) mod devices;
pub(crate) mod options;
pub(crate) mod suggestion;
pub(crate) mod values;
