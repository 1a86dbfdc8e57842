//! The invocation: flags, variables and configuration become options and devices.

pub(crate) mod cli;
#[cfg(all(target_os = "linux", not(memcheck_portable)))]
pub(crate) mod config;
#[cfg(all(target_os = "linux", not(memcheck_portable)))]
pub(crate) mod devices;
pub(crate) mod features;
#[cfg(all(target_os = "linux", not(memcheck_portable)))]
pub(crate) mod options;
pub(crate) mod printed;
#[cfg(all(target_os = "linux", not(memcheck_portable)))]
pub(crate) mod suggestion;
pub(crate) mod values;
