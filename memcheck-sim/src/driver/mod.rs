//! The CUDA driver API, a room per family of functions.
//!
//! Handles are integers on this side of the border, and pointers on the other.

use crate::ffi::Symbol;

mod context;
pub(crate) mod current;
mod device;
mod event;
mod memory;
mod module;
mod pool;
mod stream;

pub(crate) use device::{VERSION, attribute, pci_bus, pci_bus_id};
pub(crate) use module::checked;

/// The functions of every room.
pub(crate) static EXPORTS: &[&[Symbol]] = &[
    device::EXPORTS,
    context::EXPORTS,
    stream::EXPORTS,
    stream::CALLBACKS,
    event::EXPORTS,
    memory::EXPORTS,
    pool::EXPORTS,
    module::EXPORTS,
];

#[cfg(test)]
pub(crate) mod tests;
