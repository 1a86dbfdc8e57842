//! The functions of cuBLASLt's descriptors, which are the same for each kind.

use std::ffi::{c_int, c_void};

use crate::attributes::{AttributeTable, DescriptorValues};
use crate::code::{Answer, Code};
use crate::ffi::{In, Out};
use crate::machine::{Handle, with};

pub(super) fn create(to: Out<Handle>, descriptor: DescriptorValues) -> Answer {
    to.make(|machine| {
        let handle = machine.handle();
        machine.attributes.insert(handle, descriptor);
        Ok(handle)
    })
}

/// Destroys a descriptor; null is not an error.
pub(super) fn destroy(handle: Handle, table: &'static AttributeTable) -> Answer {
    if handle == 0 {
        return Ok(());
    }
    with(|machine| {
        let found = machine.attributes.get(&handle).is_some_and(|found| found.is_of(table));
        let removed = found.then(|| machine.attributes.remove(&handle));
        removed.map(drop).ok_or(Code::INVALID_VALUE)
    })
}

/// Runs `work` on a descriptor, which must be of the kind of `table`.
pub(super) fn change<T>(
    handle: Handle,
    table: &'static AttributeTable,
    work: impl FnOnce(&mut DescriptorValues) -> Answer<T>,
) -> Answer<T> {
    with(|machine| {
        let descriptor = machine.attributes.get_mut(&handle);
        let of_kind = descriptor.filter(|descriptor| descriptor.is_of(table));
        work(of_kind.ok_or(Code::INVALID_VALUE)?)
    })
}

pub(super) fn set(
    handle: Handle,
    table: &'static AttributeTable,
    number: c_int,
    value: In<c_void>,
    bytes: usize,
) -> Answer {
    change(handle, table, |descriptor| {
        let (at, width) = descriptor.find(number)?;
        descriptor.values[at] = match width {
            _ if bytes != width => return Err(Code::INVALID_VALUE),
            1 => value.cast::<i8>().get()?.into(),
            4 => value.cast::<i32>().get()?.into(),
            _ => value.cast::<i64>().get()?,
        };
        Ok(())
    })
}

/// Returns a value, or with 0 `bytes` the bytes that it needs.
pub(super) fn get(
    handle: Handle,
    table: &'static AttributeTable,
    number: c_int,
    to: Out<c_void>,
    bytes: usize,
    written: Out<usize>,
) -> Answer {
    let (value, width) = change(handle, table, |descriptor| {
        let (at, width) = descriptor.find(number)?;
        Ok((descriptor.values[at], width))
    })?;
    match width {
        _ if bytes == 0 => return written.put(width),
        _ if bytes != width => return Err(Code::INVALID_VALUE),
        1 => to.cast::<i8>().put(value as i8)?,
        4 => to.cast::<i32>().put(value as i32)?,
        _ => to.cast::<i64>().put(value)?,
    }
    written.offer(width);
    Ok(())
}
