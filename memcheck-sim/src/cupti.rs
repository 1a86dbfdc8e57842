//! The part of CUPTI that reports memory: activity records of the kind `MEMORY2`.
//!
//! Programs reach it as they reach NVML: through the library that is built from
//! `cargo-memcheck/toolkit/nvml.c`, or through exported symbols with the feature `standalone`.
//! Records are delivered when the program calls `cuptiActivityFlushAll`.

use std::ffi::{c_char, c_int, c_void};
use std::sync::{Mutex, PoisonError};

use crate::activity::{MEMORY2, Record};
use crate::code::{Answer, Code};
use crate::ffi::{Out, Symbol, exports};
use crate::machine::with;

/// `CUPTI_API_VERSION` of CUDA 13.0.
const API_VERSION: u32 = 130_000;
const SIZE: usize = size_of::<Record>();

/// Requests a buffer: returns its address, its bytes, and the maximum number of records in it.
type Request = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
/// Returns a buffer: its context and stream, its bytes, and the number of valid bytes.
type Complete = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);

static CALLBACKS: Mutex<Option<(Request, Complete)>> = Mutex::new(None);

/// Converts to `CUptiResult`.
fn cupti(answer: Answer) -> c_int {
    match answer {
        Ok(()) => 0,
        Err(Code::INVALID_VALUE) => 1,
        Err(Code::NOT_FOUND) => 12,
        Err(Code::NOT_SUPPORTED) => 27,
        Err(_) => 999,
    }
}

exports! { cupti;
    fn cuptiGetVersion(version: Out<u32>) {
        version.put(API_VERSION)
    }

    fn cuptiActivityRegisterCallbacks(request: Option<Request>, complete: Option<Complete>) {
        let both = request.zip(complete).ok_or(Code::INVALID_VALUE)?;
        *CALLBACKS.lock().unwrap_or_else(PoisonError::into_inner) = Some(both);
        Ok(())
    }

    fn cuptiActivityEnable(kind: u32) {
        set_enabled(kind, true)
    }

    fn cuptiActivityDisable(kind: u32) {
        set_enabled(kind, false)
    }

    fn cuptiActivityEnableAllocationSource(enable: u8) {
        with(|machine| {
            machine.activity.sources = enable != 0;
            Ok(())
        })
    }

    fn cuptiActivityFlushAll(_flag: u32) {
        let callbacks = *CALLBACKS.lock().unwrap_or_else(PoisonError::into_inner);
        let (request, complete) = callbacks.ok_or(Code::INVALID_VALUE)?;
        let records = with(|machine| Ok(machine.activity()))?;
        let mut left = records.as_slice();
        while !left.is_empty() {
            let delivered = deliver(request, complete, left).ok_or(Code::OUT_OF_MEMORY)?;
            left = &left[delivered..];
        }
        Ok(())
    }

    fn cuptiActivityGetNextRecord(buffer: *mut u8, valid: usize, record: *mut *mut u8) {
        if buffer.is_null() || record.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the pointer is not null, and CUPTI requires that it is readable and writable.
        let last = unsafe { record.read() };
        let offset = match last.is_null() {
            true => 0,
            false => last.addr().wrapping_sub(buffer.addr()) + SIZE,
        };
        if offset.checked_add(SIZE).is_none_or(|end| end > valid) {
            return Err(Code::NOT_FOUND);
        }
        // SAFETY: the pointer is writable, as above, and the record is inside the buffer.
        unsafe { record.write(buffer.add(offset)) };
        Ok(())
    }

    fn cuptiActivityGetNumDroppedRecords(_context: *mut c_void, _stream: u32, dropped: Out<usize>) {
        dropped.put(0)
    }
}

pub(crate) static OTHERS: &[Symbol] =
    &[Symbol { name: "cuptiGetResultString", address: cuptiGetResultString as *const () }];

#[unsafe(no_mangle)]
unsafe extern "C" fn cuptiGetResultString(code: c_int, text: Out<*const c_char>) -> c_int {
    let words = match code {
        0 => c"CUPTI_SUCCESS",
        1 => c"CUPTI_ERROR_INVALID_PARAMETER",
        12 => c"CUPTI_ERROR_MAX_LIMIT_REACHED",
        27 => c"CUPTI_ERROR_NOT_SUPPORTED",
        _ => c"CUPTI_ERROR_UNKNOWN",
    };
    cupti(text.put(words.as_ptr()))
}

fn set_enabled(kind: u32, on: bool) -> Answer {
    if kind != MEMORY2 {
        return Err(Code::NOT_SUPPORTED);
    }
    with(|machine| {
        machine.activity.set_enabled(on);
        Ok(())
    })
}

/// Delivers the first records in a buffer of the listener, and returns their number; `None` if the
/// listener provides no buffer that has room for a record.
fn deliver(request: Request, complete: Complete, records: &[Record]) -> Option<usize> {
    let (mut buffer, mut size, mut most) = (std::ptr::null_mut::<u8>(), 0, 0);
    // SAFETY: the listener has registered this callback for the purpose; the pointers point to
    // locals.
    unsafe { request(&raw mut buffer, &raw mut size, &raw mut most) };
    let mut room = size / SIZE;
    if most > 0 {
        room = room.min(most);
    }
    if buffer.is_null() || room == 0 {
        return None;
    }
    let delivered = room.min(records.len());
    // SAFETY: the listener promises that `size` bytes are writable, and `delivered` records do not
    // exceed them. The listener expects that the buffer is returned to it.
    unsafe {
        std::ptr::copy_nonoverlapping(records.as_ptr().cast::<u8>(), buffer, delivered * SIZE);
        complete(std::ptr::null_mut(), 0, buffer, size, delivered * SIZE);
    }
    Some(delivered)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::tests::{context, out};
    use crate::hooked::{cuMemAlloc_v2, cuMemFree_v2};
    use std::ffi::CStr;

    /// Operation, device, bytes and address of each record.
    static DELIVERED: Mutex<Vec<(u32, u32, u64, u64)>> = Mutex::new(Vec::new());

    unsafe extern "C" fn request(buffer: *mut *mut u8, size: *mut usize, most: *mut usize) {
        // The buffer has room for two and a half records, so that several buffers are needed.
        let room = vec![0_u64; SIZE / 8 * 5 / 2];
        // SAFETY: the result pointers point to locals of the caller.
        unsafe {
            size.write(room.len() * 8);
            buffer.write(Box::leak(room.into_boxed_slice()).as_mut_ptr().cast());
            most.write(0);
        }
    }

    unsafe extern "C" fn complete(_: *mut c_void, _: u32, buffer: *mut u8, _: usize, valid: usize) {
        let mut record = std::ptr::null_mut();
        // SAFETY: the buffer was allocated by `request` and has this number of valid bytes.
        while unsafe { cuptiActivityGetNextRecord(buffer, valid, &raw mut record) } == 0 {
            // SAFETY: a record starts at this address.
            let record = unsafe { record.cast::<Record>().read_unaligned() };
            let delivered = (record.operation, record.device, record.bytes, record.address);
            DELIVERED.lock().unwrap().push(delivered);
        }
    }

    #[test]
    fn a_record_is_laid_out_as_cupti_lays_it_out() {
        use std::mem::offset_of;
        let offsets = [
            offset_of!(Record, address),
            offset_of!(Record, timestamp),
            offset_of!(Record, device),
            offset_of!(Record, name),
            offset_of!(Record, pool_type),
            offset_of!(Record, source),
            SIZE,
        ];
        assert_eq!(offsets, [16, 32, 52, 64, 80, 120, 128]);
    }

    #[test]
    fn live_blocks_are_delivered_to_the_listener() {
        context(2);
        let mut addresses = [0; 3];
        // SAFETY: the result pointers point to locals, and the callbacks have the declared types.
        unsafe {
            assert_eq!(cuptiActivityEnable(1), 27);
            assert_eq!(cuptiActivityRegisterCallbacks(Some(request), Some(complete)), 0);
            assert_eq!(cuptiActivityEnable(MEMORY2), 0);
            for address in &mut addresses {
                assert_eq!(cuMemAlloc_v2(address, 7777), 0);
            }
            assert_eq!(cuMemFree_v2(addresses[1]), 0);
            assert_eq!(cuptiActivityDisable(MEMORY2), 0);
            assert_eq!(cuptiActivityFlushAll(1), 0);
            for address in [addresses[0], addresses[2]] {
                assert_eq!(cuMemFree_v2(address), 0);
            }
            assert_eq!(cuptiActivityFlushAll(1), 0);
        }
        // Other tests allocate blocks of other sizes at the same time.
        let mut delivered = DELIVERED.lock().unwrap().clone();
        delivered.retain(|(_, device, bytes, _)| (*device, *bytes) == (2, 7777));
        // Live blocks are reported in the order of their addresses. The freed block is not
        // reported, and after all frees there are no more records.
        let [a, _, c] = addresses;
        assert_eq!(delivered, [a, c].map(|address| (1, 2, 7777, address)));
        let mut text = std::ptr::null();
        // SAFETY: the result pointer points to a local, and the text is a constant.
        unsafe {
            assert_eq!(cuptiGetResultString(27, out(&mut text)), 0);
            assert_eq!(CStr::from_ptr(text), c"CUPTI_ERROR_NOT_SUPPORTED");
        }
    }
}
