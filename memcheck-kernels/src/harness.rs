//! Memory for the tests of kernels, which are launched by name.

use std::collections::BTreeMap;

use super::arguments::Arguments;
use super::asserts::FailedAssert;
use super::element::Element;
use super::launch::Shape;
use super::memory::Memory;
use super::table;
use super::values::{Limits, Span, Values};

/// Returns the arguments of a launch, each with the width of its type.
macro_rules! arguments {
    ($($value:expr),* $(,)?) => {
        [$($crate::harness::bytes_of(&$value.to_ne_bytes())),*]
    };
}
pub(super) use arguments;

pub(super) fn bytes_of(value: &[u8]) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..value.len()].copy_from_slice(value);
    bytes
}

/// Blocks of memory, whose values are known or not.
pub(super) struct TestMemory {
    pub(super) values: Values,
    /// Sizes by address.
    blocks: BTreeMap<u64, u64>,
    next: u64,
    pub(super) failed_assert: Option<FailedAssert>,
}

impl Memory for TestMemory {
    fn values(&self) -> &Values {
        &self.values
    }

    fn values_mut(&mut self) -> &mut Values {
        &mut self.values
    }

    fn fail_assert(&mut self, failed: FailedAssert) {
        self.failed_assert.get_or_insert(failed);
    }

    fn span(&self, address: u64, length: u64) -> Option<Span> {
        self.span_to_end(address)
            .filter(|rest| length <= rest.length)
            .map(|rest| Span { length, ..rest })
    }

    fn span_to_end(&self, address: u64) -> Option<Span> {
        let (&block, &size) = self.blocks.range(..=address).next_back()?;
        let offset = address - block;
        (offset < size).then(|| Span { block, size, offset, length: size - offset })
    }

    fn host_bytes(&self, _address: u64, _length: u64) -> Option<Vec<u8>> {
        None
    }

    fn write_bytes(&mut self, address: u64, bytes: &[u8]) {
        if let Some(span) = self.accessed(address, bytes.len() as u64) {
            self.values.write(span, bytes);
        }
    }
}

pub(super) struct TestDevice {
    pub(super) memory: TestMemory,
}

impl TestDevice {
    pub(super) fn new() -> Self {
        let values = Values::new(Limits::DEFAULT);
        let blocks = BTreeMap::new();
        Self { memory: TestMemory { values, blocks, next: 1 << 32, failed_assert: None } }
    }

    /// Allocates a block, which is unknown.
    pub(super) fn allocate(&mut self, bytes: usize) -> u64 {
        let (address, size) = (self.memory.next, bytes.max(1) as u64);
        // As on a device, a block begins at a multiple of 512.
        self.memory.next += size.next_multiple_of(512);
        self.memory.blocks.insert(address, size);
        address
    }

    pub(super) fn upload<T: Element>(&mut self, elements: &[T]) -> u64 {
        let address = self.allocate(elements.len() * T::WIDTH);
        let mut bytes = Vec::new();
        elements.iter().for_each(|element| element.store(&mut bytes));
        self.memory.write_bytes(address, &bytes);
        address
    }

    /// Returns the elements if all of them are known.
    pub(super) fn download<T: Element>(&self, address: u64, count: usize) -> Option<Vec<T>> {
        let span = self.memory.span(address, (count * T::WIDTH) as u64).unwrap();
        let bytes = self.memory.values.bytes(span)?;
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
        kernel.launch(&mut self.memory, shape, Arguments::of(arguments));
    }

    /// Returns whether any byte of the block is known.
    pub(super) fn is_known(&self, address: u64) -> bool {
        let span = self.memory.span_to_end(address).unwrap();
        self.memory.values.view(span).is_some()
    }
}
