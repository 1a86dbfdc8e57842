//! The CUDA driver API, with a file for each family of functions.
//!
//! Handles are integers in the simulator and pointers in C.

use crate::ffi::Symbol;

mod context;
pub(crate) mod current;
mod device;
pub(crate) mod event;
pub(crate) mod graph;
mod memory;
mod module;
pub(crate) mod node;
mod pool;
pub(crate) mod stream;

pub(crate) use device::{VERSION, attribute, pci_bus, pci_bus_id};
pub(crate) use module::check_sizes;

pub(crate) static EXPORTS: &[&[Symbol]] = &[
    device::EXPORTS,
    context::EXPORTS,
    stream::EXPORTS,
    stream::CALLBACKS,
    event::EXPORTS,
    graph::EXPORTS,
    node::EXPORTS,
    memory::EXPORTS,
    pool::EXPORTS,
    module::EXPORTS,
];

#[cfg(test)]
pub(crate) mod tests;
