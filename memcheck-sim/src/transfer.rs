//! Copies and fills, with a check of the bounds. They keep the values that are known.

use std::ffi::c_void;

use crate::code::{Answer, Code};
use crate::machine::graphs::NodeKind;
use crate::machine::{Handle, Machine};
use crate::memory::{self, Block};
use memcheck_kernels::FailedAssert;
use memcheck_kernels::Memory;
use memcheck_kernels::{Part, Span, Values};

/// One end of a copy, as the C function describes it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    /// A `CUdeviceptr`, which must be memory of the driver.
    Device(u64),
    /// A host pointer, pageable or pinned.
    Host(*mut c_void),
    /// A unified address: memory of the driver if the driver knows it, otherwise of the host.
    Any(u64),
}

/// An end of a copy that is recorded: its kind and its address.
#[derive(Debug, Clone, Copy)]
struct Detached(fn(u64) -> End, u64);

impl Detached {
    fn end(self) -> End {
        self.0(self.1)
    }

    fn address(self) -> u64 {
        self.1
    }
}

impl End {
    fn address(self) -> u64 {
        self.detached().address()
    }

    /// Returns the end without its pointer, so that another thread can launch the copy.
    fn detached(self) -> Detached {
        match self {
            Self::Device(address) => Detached(End::Device, address),
            Self::Host(pointer) => {
                Detached(|address| End::Host(address as *mut c_void), pointer as u64)
            }
            Self::Any(address) => Detached(End::Any, address),
        }
    }
}

/// One end of a copy after its address was looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Memory of a device.
    Device(Span),
    /// Memory of this process.
    Host(*mut u8),
}

impl Machine {
    /// Copies `length` bytes.
    ///
    /// # Safety
    ///
    /// A host end, also one given as [`End::Any`], must be valid for `length` bytes: readable as
    /// `from`, writable as `to`.
    pub(crate) unsafe fn copy(&mut self, to: End, from: End, length: usize) -> Answer {
        self.touch()?;
        if length == 0 {
            return Ok(());
        }
        let bytes = length as u64;
        let target = to.address();
        match (self.place(to, bytes)?, self.place(from, bytes)?) {
            (Place::Device(to), Place::Device(from)) => self.values.copy(to, from),
            (Place::Device(to), Place::Host(from)) => {
                // SAFETY: the source is readable for `length` bytes, because the caller promises it
                // or because the map of live host blocks contains it.
                let from = unsafe { std::slice::from_raw_parts(from, length) };
                self.values.write(to, from);
                self.note_copy(target, from.as_ptr() as u64, bytes);
            }
            (Place::Host(to), Place::Device(from)) => {
                // SAFETY: the target is writable for `length` bytes, for the same reasons. The
                // parts that `read` passes are within `length`. They are the simulator's memory,
                // so they do not overlap the target.
                let unknown = unsafe {
                    // Unknown parts are zeros for the program.
                    to.write_bytes(0, length);
                    self.values.read(from, |offset, part| {
                        if let Part::Bytes(bytes) = part {
                            to.add(offset as usize)
                                .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
                        }
                    })
                };
                self.count_read(unknown, self.values.element_type(from.block));
            }
            // SAFETY: both are valid for `length` bytes, for the same reasons; `copy_to` allows
            // overlap.
            (Place::Host(to), Place::Host(from)) => unsafe { from.copy_to(to, length) },
        }
        Ok(())
    }

    /// Copies on `stream`. If the stream is being captured, the launches of its graph copy.
    ///
    /// A launch reads no pageable memory, because the block can be free by then; the target is
    /// unknown instead.
    ///
    /// # Safety
    ///
    /// As for [`Machine::copy`]. A host end must be valid during the launches too.
    pub(crate) unsafe fn copy_on(
        &mut self,
        stream: Handle,
        to: End,
        from: End,
        length: usize,
    ) -> Answer {
        if self.graphs.capture_of(stream).is_none() {
            // SAFETY: the caller makes the same promise.
            return unsafe { self.copy(to, from, length) };
        }
        // SAFETY: the caller makes the same promise.
        let work = unsafe { self.copy_work(to, from, length) }?;
        if length > 0 {
            self.submit(stream, NodeKind::Copy, work);
        }
        Ok(())
    }

    /// Returns the work of a copy for the launches of a graph.
    ///
    /// # Safety
    ///
    /// As for [`Machine::copy_on`].
    pub(crate) unsafe fn copy_work(
        &self,
        to: End,
        from: End,
        length: usize,
    ) -> Answer<impl Fn(&mut Self) + Send + Sync + use<>> {
        let bytes = length as u64;
        // Now, because the call that records the copy returns the error, and a launch cannot.
        let (target, source) = (self.place(to, bytes)?, self.place(from, bytes)?);
        let (to, from) = (to.detached(), from.detached());
        let is_unknown = match (target, source) {
            (Place::Device(_), Place::Host(address)) => !self.host.holds(address as u64, bytes),
            _ => false,
        };
        Ok(move |machine: &mut Self| {
            // SAFETY: the caller promises that the host ends are valid during the launches.
            if is_unknown || unsafe { machine.copy(to.end(), from.end(), length) }.is_err() {
                machine.overwritten(to.address(), bytes);
            }
        })
    }

    /// Fills on `stream`. If the stream is being captured, the launches of its graph fill.
    pub(crate) fn fill_on(
        &mut self,
        stream: Handle,
        to: u64,
        pattern: &[u8],
        count: usize,
    ) -> Answer {
        if self.graphs.capture_of(stream).is_none() {
            return self.fill(to, pattern, count);
        }
        let work = self.fill_work(to, pattern, count)?;
        self.submit(stream, NodeKind::Fill, work);
        Ok(())
    }

    /// Returns the work of a fill for the launches of a graph.
    pub(crate) fn fill_work(
        &self,
        to: u64,
        pattern: &[u8],
        count: usize,
    ) -> Answer<impl Fn(&mut Self) + Send + Sync + use<>> {
        let length = pattern.len().checked_mul(count).ok_or(Code::INVALID_VALUE)? as u64;
        // Now, for the same reason as in `copy_work`.
        self.place(End::Device(to), length)?;
        let pattern = pattern.to_vec();
        Ok(move |machine: &mut Self| {
            if machine.fill(to, &pattern, count).is_err() {
                machine.overwritten(to, length);
            }
        })
    }

    /// Fills `count` elements at `to` with `pattern`, whose length is that of an element.
    pub(crate) fn fill(&mut self, to: u64, pattern: &[u8], count: usize) -> Answer {
        self.touch()?;
        let length = pattern.len().checked_mul(count).ok_or(Code::INVALID_VALUE)?;
        if length == 0 {
            return Ok(());
        }
        match self.place(End::Device(to), length as u64)? {
            // Zeros need neither storage nor work.
            Place::Device(to) if pattern.iter().all(|&byte| byte == 0) => self.values.zero(to),
            // A pattern that exceeds the limits is not stored.
            Place::Device(to) if !self.values.charge(length as u64) => self.values.forget(to),
            Place::Device(to) => self.values.write(to, &pattern.repeat(count)),
            Place::Host(to) => {
                for index in 0..count {
                    // SAFETY: a live host block contains `length` bytes at `to`, and `count`
                    // patterns have `length` bytes.
                    unsafe {
                        to.add(index * pattern.len())
                            .copy_from_nonoverlapping(pattern.as_ptr(), pattern.len());
                    }
                }
            }
        }
        Ok(())
    }

    fn place(&self, end: End, length: u64) -> Answer<Place> {
        let (address, may_be_pageable) = match end {
            End::Host(pointer) if pointer.is_null() => return Err(Code::INVALID_VALUE),
            End::Host(pointer) => return Ok(Place::Host(pointer.cast())),
            End::Device(address) => (address, false),
            End::Any(address) => (address, true),
        };
        // No host memory is in a region, so that an address without a block is an error there.
        if memory::region(address).is_some() {
            return self.span(address, length).map(Place::Device).ok_or(Code::INVALID_VALUE);
        }
        match address {
            0 => Err(Code::INVALID_VALUE),
            _ if may_be_pageable || self.host.holds(address, length) => {
                Ok(Place::Host(address as *mut u8))
            }
            _ => Err(Code::INVALID_VALUE),
        }
    }
}

impl Memory for Machine {
    fn values(&self) -> &Values {
        &self.values
    }

    fn values_mut(&mut self) -> &mut Values {
        &mut self.values
    }

    fn fail_assert(&mut self, failed: FailedAssert) {
        Machine::fail_assert(self, failed);
    }

    fn span(&self, address: u64, length: u64) -> Option<Span> {
        self.span_to_end(address)
            .filter(|rest| length <= rest.length)
            .map(|rest| Span { length, ..rest })
    }

    fn span_to_end(&self, address: u64) -> Option<Span> {
        let device = self.devices.get(memory::region(address)?)?;
        let (block, Block { bytes: size, .. }) = device.memory.find(address)?;
        let offset = address - block;
        Some(Span { block, size, offset, length: size - offset })
    }

    fn host_bytes(&self, address: u64, length: u64) -> Option<Vec<u8>> {
        self.host.holds(address, length).then(|| {
            // SAFETY: a live host block contains these bytes.
            unsafe { std::slice::from_raw_parts(address as *const u8, length as usize).to_vec() }
        })
    }

    fn write_bytes(&mut self, address: u64, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if let Some(span) = self.accessed(address, bytes.len() as u64) {
            self.values.write(span, bytes);
        } else if self.host.holds(address, bytes.len() as u64) {
            // SAFETY: a live host block contains these bytes. A kernel's result is the simulator's
            // memory, so the two do not overlap.
            unsafe {
                (address as *mut u8).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> (Machine, Handle) {
        let mut machine = Machine::new(&"2xh200".parse().unwrap());
        let context = machine.retain_primary(0).unwrap();
        (machine, context)
    }

    fn upload(machine: &mut Machine, to: u64, bytes: &[u8]) -> Answer {
        let from = End::Host(bytes.as_ptr().cast_mut().cast());
        // SAFETY: `bytes` is readable for its length.
        unsafe { machine.copy(End::Device(to), from, bytes.len()) }
    }

    fn download(machine: &mut Machine, from: u64, length: usize) -> Answer<Vec<u8>> {
        let mut bytes = vec![0xEE; length];
        // SAFETY: `bytes` is writable for its length.
        unsafe { machine.copy(End::Host(bytes.as_mut_ptr().cast()), End::Device(from), length)? };
        Ok(bytes)
    }

    fn device_copy(machine: &mut Machine, to: u64, from: u64, length: usize) -> Answer {
        // SAFETY: neither end is on the host.
        unsafe { machine.copy(End::Device(to), End::Device(from), length) }
    }

    #[test]
    fn an_upload_reads_back_until_it_is_overwritten() {
        let (mut machine, context) = machine();
        let a = machine.allocate(context, 100).unwrap();
        upload(&mut machine, a + 10, &[1, 2, 3, 4]).unwrap();
        assert_eq!(download(&mut machine, a + 9, 6).unwrap(), [0, 1, 2, 3, 4, 0]);
        machine.fill(a + 11, &[7, 8], 1).unwrap();
        assert_eq!(download(&mut machine, a + 10, 4).unwrap(), [1, 7, 8, 4]);
        machine.overwritten(a + 13, 1);
        assert_eq!(download(&mut machine, a + 10, 4).unwrap(), [1, 7, 8, 0]);
        machine.overwritten_from(a);
        assert_eq!(download(&mut machine, a, 100).unwrap(), [0; 100]);
        // Each of the four downloads met unknown bytes.
        assert_eq!(machine.values.unknown_reads().reads, 3);
        machine.fill(a, &[0], 100).unwrap();
        download(&mut machine, a, 100).unwrap();
        assert_eq!(machine.values.unknown_reads().reads, 3);
    }

    #[test]
    fn a_new_block_does_not_see_the_old_ones_contents() {
        let (mut machine, context) = machine();
        let a = machine.allocate(context, 4).unwrap();
        upload(&mut machine, a, &[1, 2, 3, 4]).unwrap();
        machine.free(a).unwrap();
        assert_eq!(machine.allocate(context, 4), Ok(a));
        assert_eq!(download(&mut machine, a, 4).unwrap(), [0; 4]);
    }

    #[test]
    fn copies_between_devices_stay_within_their_blocks() {
        let (mut machine, context) = machine();
        let other = machine.retain_primary(1).unwrap();
        let a = machine.allocate(context, 8).unwrap();
        let b = machine.allocate(other, 8).unwrap();
        upload(&mut machine, a, &[1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
        device_copy(&mut machine, b, a, 8).unwrap();
        assert_eq!(download(&mut machine, b, 8).unwrap(), [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(device_copy(&mut machine, b, a, 9), Err(Code::INVALID_VALUE));
        assert_eq!(download(&mut machine, a + 4, 5), Err(Code::INVALID_VALUE));
        assert_eq!(upload(&mut machine, a + 8, &[1]), Err(Code::INVALID_VALUE));
        assert_eq!(upload(&mut machine, 0, &[1]), Err(Code::INVALID_VALUE));
        assert_eq!(machine.fill(a, &[0, 0], 5), Err(Code::INVALID_VALUE));
        machine.free(b).unwrap();
        assert_eq!(device_copy(&mut machine, b, a, 8), Err(Code::INVALID_VALUE));
    }

    #[test]
    fn managed_memory_is_really_copied() {
        let (mut machine, context) = machine();
        let managed = machine.allocate_managed(context, 8).unwrap();
        upload(&mut machine, managed, &[1, 2, 3]).unwrap();
        machine.fill(managed + 3, &[9], 2).unwrap();
        let a = machine.allocate(context, 8).unwrap();
        device_copy(&mut machine, a, managed, 8).unwrap();
        assert_eq!(download(&mut machine, a, 8).unwrap(), [1, 2, 3, 9, 9, 0, 0, 0]);
        device_copy(&mut machine, managed + 4, a, 4).unwrap();
        assert_eq!(download(&mut machine, managed, 8).unwrap(), [1, 2, 3, 9, 1, 2, 3, 9]);
        machine.free(managed).unwrap();
    }
}
