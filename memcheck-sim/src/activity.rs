//! The records of device memory for CUPTI, kept once a listener is enabled.
//!
//! Allocations of libraries are recorded when they happen. The program's blocks are known to the
//! machine anyway, so only those that are live when the listener flushes are reported. A record of
//! each would be most of the cost of a simulated allocation.

use std::ffi::{CStr, c_char};

use crate::handle::Handle;

/// `CUpti_ActivityMemory4`: an allocation or a release, with CUPTI's names.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record {
    pub(crate) kind: u32,
    pub(crate) operation: u32,
    pub(crate) memory_kind: u32,
    pub(crate) correlation: u32,
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    pub(crate) timestamp: u64,
    pub(crate) pc: u64,
    pub(crate) process: u32,
    pub(crate) device: u32,
    pub(crate) context: u32,
    pub(crate) stream: u32,
    pub(crate) name: *const c_char,
    pub(crate) is_async: u32,
    pub(crate) padding: u32,
    pub(crate) pool_type: u32,
    pub(crate) pool_padding: u32,
    pub(crate) pool_address: u64,
    pub(crate) pool_threshold: u64,
    pub(crate) pool_size: u64,
    pub(crate) pool_used: u64,
    pub(crate) source: *const c_char,
}

// SAFETY: the pointers point to constant texts, which live for ever.
unsafe impl Send for Record {}

/// `CUPTI_ACTIVITY_KIND_MEMORY2`.
pub(crate) const MEMORY2: u32 = 49;
/// `CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION` and `…_RELEASE`.
const ALLOCATION: u32 = 1;
const RELEASE: u32 = 2;
/// `CUPTI_ACTIVITY_MEMORY_KIND_DEVICE`.
const DEVICE: u32 = 3;
/// `CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL`.
const LOCAL: u32 = 1;

/// Records that have not been delivered.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    /// True while a listener is enabled.
    on: bool,
    /// True once a listener has been enabled. A flush reports live blocks also after the listener
    /// was disabled.
    was_on: bool,
    /// True if records name the library that allocated.
    pub(crate) sources: bool,
    records: Vec<Record>,
    time: u64,
}

impl Activity {
    pub(crate) fn set_enabled(&mut self, on: bool) {
        self.on = on;
        self.was_on |= on;
    }

    /// Records that a library has allocated a block.
    pub(crate) fn record_allocation(
        &mut self,
        device: usize,
        address: Handle,
        bytes: u64,
        library: &'static CStr,
    ) {
        if self.on {
            self.record(ALLOCATION, device, (address, bytes), 0, Some(library));
        }
    }

    /// Records that a library has freed a block. A block of 0 bytes is never recorded.
    pub(crate) fn record_release(&mut self, device: usize, address: Handle, bytes: u64) {
        if self.on {
            self.record(RELEASE, device, (address, bytes), 0, None);
        }
    }

    /// Records that a block of the program is live.
    pub(crate) fn record_live(&mut self, device: usize, address: u64, bytes: u64, pooled: bool) {
        let pool = if pooled { LOCAL } else { 0 };
        if self.was_on {
            self.record(ALLOCATION, device, (address, bytes), pool, None);
        }
    }

    fn record(
        &mut self,
        operation: u32,
        device: usize,
        (address, bytes): (u64, u64),
        pool_type: u32,
        library: Option<&'static CStr>,
    ) {
        if bytes == 0 {
            return;
        }
        self.time += 1;
        let source = library.filter(|_| self.sources);
        self.records.push(Record {
            kind: MEMORY2,
            operation,
            memory_kind: DEVICE,
            correlation: 0,
            address,
            bytes,
            timestamp: self.time,
            pc: 0,
            process: std::process::id(),
            device: u32::try_from(device).unwrap_or(u32::MAX),
            context: 1,
            stream: 0,
            name: std::ptr::null(),
            is_async: pool_type,
            padding: 0,
            pool_type,
            pool_padding: 0,
            pool_address: 0,
            pool_threshold: 0,
            pool_size: 0,
            pool_used: 0,
            source: source.map_or(std::ptr::null(), CStr::as_ptr),
        });
    }

    /// Returns the records so far, in their order.
    pub(crate) fn take(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.records)
    }
}
