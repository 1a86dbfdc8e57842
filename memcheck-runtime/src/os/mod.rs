//! The differences between systems: the process of a test and its end, files that stay open while a
//! body runs, and the figures of the system.
//!
//! `linux` is complete. `portable` is the path of other systems: it starts a test without a
//! supervisor, and knows no figure of the system. `RUSTFLAGS="--cfg memcheck_portable"` selects it on
//! Linux too (`just portable`). `unix` has the descriptors and handlers, which are the same on Linux and
//! macOS; `elsewhere` replaces them on other systems.

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(memcheck_portable)
))]
mod linux;
#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(memcheck_portable)
)))]
mod portable;

mod descriptor;
mod silence;

#[cfg(not(unix))]
mod elsewhere;
#[cfg(unix)]
mod unix;

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(memcheck_portable)
))]
pub(crate) use linux::*;
#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(memcheck_portable)
)))]
pub(crate) use portable::*;

#[cfg(not(unix))]
pub(crate) use elsewhere::*;
#[cfg(unix)]
pub(crate) use unix::*;

pub(crate) use descriptor::{Identity, KeptFile};
pub(crate) use silence::Silence;

/// What memcheck can measure on a system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(dead_code, reason = "a system has one of them")]
pub(crate) enum Instrument {
    /// All that is documented.
    Complete,
    /// The blocks of the host, without call sites.
    HostOnly,
    /// Nothing, because the path of this system has not been tested there.
    None,
}
