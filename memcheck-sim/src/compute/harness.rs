//! A simulated device for the tests of kernels, which launches them by name.

use super::arguments::Arguments;
use super::element::Element;
use super::launch::Shape;
use super::memory::Memory as _;
use super::table;
use crate::machine::{Handle, Machine};

/// Returns the arguments of a launch, each with the width of its type.
macro_rules! arguments {
    ($($value:expr),* $(,)?) => {
        [$($crate::compute::harness::bytes_of(&$value.to_ne_bytes())),*]
    };
}
pub(super) use arguments;

pub(super) fn bytes_of(value: &[u8]) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..value.len()].copy_from_slice(value);
    bytes
}

pub(super) struct TestDevice {
    pub(super) machine: Machine,
    context: Handle,
}

impl TestDevice {
    pub(super) fn new() -> Self {
        let mut machine = Machine::new(&"h200".parse().unwrap());
        let context = machine.retain_primary(0).unwrap();
        Self { machine, context }
    }

    /// Allocates a block, which is unknown.
    pub(super) fn allocate(&mut self, bytes: usize) -> u64 {
        self.machine.allocate(self.context, bytes.max(1)).unwrap()
    }

    pub(super) fn upload<T: Element>(&mut self, elements: &[T]) -> u64 {
        let address = self.allocate(elements.len() * T::WIDTH);
        let mut bytes = Vec::new();
        elements.iter().for_each(|element| element.store(&mut bytes));
        self.machine.write_bytes(address, &bytes);
        address
    }

    /// Returns the elements if all of them are known.
    pub(super) fn download<T: Element>(&self, address: u64, count: usize) -> Option<Vec<T>> {
        let span = self.machine.span(address, (count * T::WIDTH) as u64).unwrap();
        let bytes = self.machine.values.bytes(span)?;
        Some(bytes.chunks_exact(T::WIDTH).map(T::load).collect())
    }

    /// Launches a kernel that does not read its shape.
    #[track_caller]
    pub(super) fn launch(&mut self, name: &str, arguments: &[[u8; 8]]) {
        self.launch_blocks(name, 1, 1, arguments);
    }

    /// Launches a kernel with this number of blocks and of threads in each of them.
    #[track_caller]
    pub(super) fn launch_blocks(
        &mut self,
        name: &str,
        blocks: u32,
        threads: u32,
        arguments: &[[u8; 8]],
    ) {
        self.launch_shaped(name, Shape { grid: [blocks, 1, 1], block: [threads, 1, 1] }, arguments);
    }

    #[track_caller]
    pub(super) fn launch_shaped(&mut self, name: &str, shape: Shape, arguments: &[[u8; 8]]) {
        let kernel = table::find(table::all(), name, 90)
            .unwrap_or_else(|| panic!("the table has no kernel {name}"));
        assert_eq!(kernel.widths().count(), arguments.len(), "the arguments of {name}");
        kernel.launch(&mut self.machine, shape, Arguments::of(arguments));
    }

    /// Returns whether any byte of the block is known.
    pub(super) fn is_known(&self, address: u64) -> bool {
        let span = self.machine.span_to_end(address).unwrap();
        self.machine.values.view(span).is_some()
    }
}
