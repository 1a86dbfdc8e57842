//! The differences between systems: memory for tables, and what a walk of a stack must know of the
//! process.
//!
//! `linux` is complete. `portable` is the path of every other system, and counts blocks without
//! their call sites. `RUSTFLAGS="--cfg memcheck_portable"` selects it on Linux too (`just
//! portable`).

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

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(memcheck_portable)
))]
pub use linux::*;
#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(memcheck_portable)
)))]
pub use portable::*;
