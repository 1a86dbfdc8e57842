//! A machine on which host and device share one memory. The host's part of it is the heap of the
//! process, and pinned and managed memory. Memory of a graph and of a pool belongs to the device.

use std::ops::Range;

use super::{Machine, existing};
use crate::code::{Answer, Code};
use crate::host::{HostBlock, Origin};
use crate::memory::DeviceMemory;

/// Returns the bytes that live blocks of the device got by copies from these addresses of the host;
/// 0 unless host and device share one memory.
pub fn copied_from(source: Range<u64>) -> u64 {
    existing(|machine| machine.copies.from(&source)).unwrap_or(0)
}

impl Machine {
    /// The memory that host and device share; `None` if each has its own.
    fn shared_memory(&mut self) -> Option<&mut DeviceMemory> {
        let device = self.devices.first_mut()?;
        device.spec.card.memory.is_shared().then_some(&mut device.memory)
    }

    /// Allocates pinned or managed memory.
    pub(crate) fn allocate_host(&mut self, bytes: u64, origin: Origin, flags: u32) -> Answer<u64> {
        if self.shared_memory().is_some_and(|memory| bytes > memory.free_bytes()) {
            return Err(Code::OUT_OF_MEMORY);
        }
        let address = self.host.allocate(bytes, origin, flags)?;
        if let Some(memory) = self.shared_memory() {
            memory.take_for_host(bytes);
        }
        Ok(address)
    }

    /// Frees pinned or managed memory.
    pub(crate) fn release_host(
        &mut self,
        address: u64,
        accepted: impl Fn(Origin) -> bool,
    ) -> Answer<HostBlock> {
        let block = self.host.release(address, accepted)?;
        if let Some(memory) = self.shared_memory() {
            memory.give_back_from_host(block.bytes);
        }
        Ok(block)
    }

    /// Notes a copy from pageable memory of the host.
    pub(crate) fn note_copy(&mut self, to: u64, from: u64, bytes: u64) {
        if self.shared_memory().is_some() && self.host.find(from).is_none() {
            // The former contents of the range are gone.
            self.copies.forget(to..to + bytes);
            self.copies.add(to, from, bytes);
        }
    }

    /// Notes that a block of the device is free.
    pub(crate) fn forget_copies(&mut self, block: Range<u64>) {
        self.copies.forget(block);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use super::*;
    use crate::spec::Spec;
    use crate::transfer::End;
    use crate::unified::count_heap;

    static REPORTED: AtomicU64 = AtomicU64::new(0);

    fn machine(text: &str) -> Machine {
        Machine::new(&text.parse::<Spec>().unwrap())
    }

    #[test]
    fn the_heap_and_pinned_memory_reduce_the_memory_of_the_device_only_if_it_is_shared() {
        count_heap(|| REPORTED.load(Relaxed));
        for (text, is_shared) in [("gb10,capacity=1000B", true), ("gh200,capacity=1000B", false)] {
            let mut machine = machine(text);
            let context = machine.create_context(0, 0).unwrap();
            let free = |machine: &Machine| machine.devices[0].memory.free_bytes();
            REPORTED.store(300, Relaxed);
            let pinned = machine.allocate_host(200, Origin::Pinned, 0).unwrap();
            assert_eq!(free(&machine), if is_shared { 500 } else { 1000 }, "{text}");
            let refused = machine.allocate(context, 501);
            assert_eq!(refused.is_err(), is_shared, "{text}");
            assert_eq!(machine.allocate_host(501, Origin::Managed(0), 0).is_err(), is_shared);
            REPORTED.store(0, Relaxed);
            machine.release_host(pinned, |origin| origin == Origin::Pinned).unwrap();
            assert_eq!(free(&machine), if is_shared { 1000 } else { 499 }, "{text}");
            // More than the whole memory is not less than nothing.
            REPORTED.store(2000, Relaxed);
            assert_eq!(free(&machine), if is_shared { 0 } else { 499 }, "{text}");
            REPORTED.store(0, Relaxed);
        }
    }

    #[test]
    fn a_copy_from_the_host_is_known_until_its_target_is_free_or_overwritten() {
        for (text, expected) in [("agx-orin-64g", 1000), ("h200", 0)] {
            let mut machine = machine(text);
            let context = machine.create_context(0, 0).unwrap();
            let source = vec![1_u8; 1000];
            let address = source.as_ptr() as u64;
            let copy = |machine: &mut Machine, bytes: usize| {
                let to = machine.allocate(context, bytes).unwrap();
                let from = End::Host(source.as_ptr().cast_mut().cast());
                // SAFETY: the source has at least this many bytes.
                unsafe { machine.copy(End::Device(to), from, bytes) }.unwrap();
                to
            };
            let whole = copy(&mut machine, 1000);
            let known = |machine: &Machine| machine.copies.from(&(address..address + 1000));
            assert_eq!(known(&machine), expected, "{text}");
            assert_eq!(machine.copies.from(&(address + 900..address + 2000)), expected / 10);
            let part = copy(&mut machine, 100);
            assert_eq!(known(&machine), expected + expected / 10, "{text}");
            machine.free(part).unwrap();
            assert_eq!(known(&machine), expected, "{text}");
            machine.free(whole).unwrap();
            assert_eq!(known(&machine), 0, "{text}");
        }
    }
}
