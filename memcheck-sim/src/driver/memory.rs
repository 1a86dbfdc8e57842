//! Copies, fills and queries of memory. The allocating functions are in `hooked`.

use std::ffi::{c_int, c_uchar, c_uint, c_ushort, c_void};

use super::current;
use crate::code::{Answer, Code};
use crate::ffi::{self, Out, exports};
use crate::host::Origin;
use crate::machine::{Handle, with};
use crate::memory::region;
use crate::transfer::End;

/// `CUmemLocation`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Location {
    pub(super) kind: c_int,
    pub(super) id: c_int,
}

exports! { ffi::driver;
    fn cuMemGetInfo_v2(free: Out<usize>, total: Out<usize>) {
        let (unused, capacity) = with(|machine| {
            let device = machine.context(current::get())?.device;
            let memory = &machine.devices[device].memory;
            Ok((memory.free_bytes(), memory.capacity()))
        })?;
        free.put(unused as usize)?;
        total.put(capacity as usize)
    }

    fn cuMemGetAddressRange_v2(base: Out<u64>, size: Out<usize>, address: u64) {
        let (start, bytes) = block(address)?;
        base.offer(start);
        size.offer(bytes as usize);
        Ok(())
    }

    fn cuMemcpyHtoD_v2(to: u64, from: *mut c_void, length: usize) {
        copy(End::Device(to), End::Host(from), length, None)
    }

    fn cuMemcpyHtoDAsync_v2(to: u64, from: *mut c_void, length: usize, stream: Handle) {
        copy(End::Device(to), End::Host(from), length, Some(stream))
    }

    fn cuMemcpyDtoH_v2(to: *mut c_void, from: u64, length: usize) {
        copy(End::Host(to), End::Device(from), length, None)
    }

    fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: u64, length: usize, stream: Handle) {
        copy(End::Host(to), End::Device(from), length, Some(stream))
    }

    fn cuMemcpyDtoD_v2(to: u64, from: u64, length: usize) {
        copy(End::Device(to), End::Device(from), length, None)
    }

    fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, length: usize, stream: Handle) {
        copy(End::Device(to), End::Device(from), length, Some(stream))
    }

    fn cuMemcpy(to: u64, from: u64, length: usize) {
        copy(End::Any(to), End::Any(from), length, None)
    }

    fn cuMemcpyAsync(to: u64, from: u64, length: usize, stream: Handle) {
        copy(End::Any(to), End::Any(from), length, Some(stream))
    }

    fn cuMemcpyPeer(to: u64, to_context: Handle, from: u64, from_context: Handle, length: usize) {
        peer(to, to_context, from, from_context, length, None)
    }

    fn cuMemcpyPeerAsync(
        to: u64,
        to_context: Handle,
        from: u64,
        from_context: Handle,
        length: usize,
        stream: Handle,
    ) {
        peer(to, to_context, from, from_context, length, Some(stream))
    }

    fn cuMemsetD8_v2(to: u64, value: c_uchar, count: usize) {
        fill(to, &[value], count, None)
    }

    fn cuMemsetD8Async(to: u64, value: c_uchar, count: usize, stream: Handle) {
        fill(to, &[value], count, Some(stream))
    }

    fn cuMemsetD16_v2(to: u64, value: c_ushort, count: usize) {
        fill(to, &value.to_ne_bytes(), count, None)
    }

    fn cuMemsetD16Async(to: u64, value: c_ushort, count: usize, stream: Handle) {
        fill(to, &value.to_ne_bytes(), count, Some(stream))
    }

    fn cuMemsetD32_v2(to: u64, value: c_uint, count: usize) {
        fill(to, &value.to_ne_bytes(), count, None)
    }

    fn cuMemsetD32Async(to: u64, value: c_uint, count: usize, stream: Handle) {
        fill(to, &value.to_ne_bytes(), count, Some(stream))
    }

    fn cuMemPrefetchAsync(address: u64, _length: usize, _device: c_int, stream: Handle) {
        check_block(address)?;
        check_context(Some(stream))
    }

    fn cuMemPrefetchAsync_v2(address: u64, _length: usize, _to: Location, _flags: c_uint, stream: Handle) {
        check_block(address)?;
        check_context(Some(stream))
    }

    fn cuMemAdvise(address: u64, _length: usize, _advice: c_int, _device: c_int) {
        check_block(address)
    }

    fn cuMemAdvise_v2(address: u64, _length: usize, _advice: c_int, _location: Location) {
        check_block(address)
    }

    fn cuMemHostGetDevicePointer_v2(address: Out<u64>, pointer: *mut c_void, _flags: c_uint) {
        with(|machine| machine.host.find(pointer as u64).map(drop).ok_or(Code::INVALID_VALUE))?;
        address.put(pointer as u64)
    }

    fn cuMemHostGetFlags(flags: Out<c_uint>, pointer: *mut c_void) {
        flags.put(with(|machine| {
            Ok(machine.host.find(pointer as u64).ok_or(Code::INVALID_VALUE)?.1.flags)
        })?)
    }

    fn cuPointerGetAttribute(value: Out<u64>, attribute: c_int, address: u64) {
        pointer_attribute(value, attribute, address)
    }
}

fn check_context(stream: Option<Handle>) -> Answer {
    with(|machine| machine.stream_context(stream.unwrap_or(0), current::get()).map(drop))
}

fn copy(to: End, from: End, length: usize, stream: Option<Handle>) -> Answer {
    check_context(stream)?;
    // SAFETY: the C caller promises that the host ends are valid, as these functions require, for a
    // stream that is being captured also during the launches of the graph.
    with(|machine| unsafe { machine.copy_on(stream.unwrap_or(0), to, from, length) })
}

fn peer(
    to: u64,
    to_context: Handle,
    from: u64,
    from_context: Handle,
    length: usize,
    stream: Option<Handle>,
) -> Answer {
    for context in [to_context, from_context] {
        with(|machine| machine.context(context).map(drop))?;
    }
    copy(End::Device(to), End::Device(from), length, stream)
}

fn fill(to: u64, pattern: &[u8], count: usize, stream: Option<Handle>) -> Answer {
    check_context(stream)?;
    with(|machine| machine.fill_on(stream.unwrap_or(0), to, pattern, count))
}

/// Checks that managed memory exists. Its location does not matter here.
fn check_block(address: u64) -> Answer {
    block(address).map(drop)
}

/// Returns the start and the length of the block that contains `address`.
fn block(address: u64) -> Answer<(u64, u64)> {
    with(|machine| {
        let on_device = region(address)
            .and_then(|ordinal| machine.devices.get(ordinal)?.memory.find(address))
            .map(|(start, block)| (start, block.bytes));
        on_device
            .or_else(|| machine.host.find(address).map(|(start, block)| (start, block.bytes)))
            .ok_or(Code::INVALID_VALUE)
    })
}

/// Returns a value of `CU_POINTER_ATTRIBUTE_*`: context, memory type, pointers, managed, ordinal,
/// range and whether it is mapped. The attribute determines the width of the value.
fn pointer_attribute(value: Out<u64>, attribute: c_int, address: u64) -> Answer {
    let (start, bytes) = block(address)?;
    let (ordinal, context, host, is_mapped) = with(|machine| match region(address) {
        Some(ordinal) => {
            let found = machine.devices.get(ordinal).and_then(|device| device.memory.find(address));
            let block = found.map(|(_, block)| block);
            let is_mapped = block.is_some_and(|block| block.in_use);
            Ok((ordinal, block.map_or(0, |block| block.context), None, is_mapped))
        }
        None => {
            let origin = machine.host.find(address).map(|(_, block)| block.origin);
            let ordinal = if let Some(Origin::Managed(ordinal)) = origin { ordinal } else { 0 };
            Ok((ordinal, 0, origin, true))
        }
    })?;
    let managed = matches!(host, Some(Origin::Managed(_)));
    match attribute {
        1 => value.put(context),
        // The host is 1 and a device is 2. Managed memory counts as device memory.
        2 => value.narrow(if host.is_some() && !managed { 1 } else { 2 }),
        3 => value.put(address),
        4 if host.is_some() => value.put(address),
        4 => Err(Code::INVALID_VALUE),
        8 => value.narrow(managed.into()),
        9 => value.narrow(ordinal as u32),
        11 => value.put(start),
        12 => value.put(bytes),
        13 => value.narrow(is_mapped.into()),
        _ => Err(Code::NOT_SUPPORTED),
    }
}

impl Out<u64> {
    /// Stores 32 bits through a pointer that C declares as `void*`.
    fn narrow(self, value: u32) -> Answer {
        self.cast::<u32>().put(value)
    }
}
