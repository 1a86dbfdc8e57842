//! The structures that NVML fills in, with the layout of `nvml.h`.

use std::ffi::{c_uint, c_ulonglong};

/// `nvmlPciInfo_t`.
#[repr(C)]
pub(super) struct PciInfo {
    pub(super) legacy: [u8; 16],
    pub(super) domain: c_uint,
    pub(super) bus: c_uint,
    pub(super) device: c_uint,
    pub(super) device_id: c_uint,
    pub(super) subsystem: c_uint,
    pub(super) bus_id: [u8; 32],
}

/// `nvmlMemory_t`.
#[repr(C)]
pub(super) struct MemoryV1 {
    pub(super) total: c_ulonglong,
    pub(super) free: c_ulonglong,
    pub(super) used: c_ulonglong,
}

/// `nvmlMemory_v2_t`.
#[repr(C)]
pub(super) struct MemoryV2 {
    pub(super) version: c_uint,
    pub(super) total: c_ulonglong,
    pub(super) reserved: c_ulonglong,
    pub(super) free: c_ulonglong,
    pub(super) used: c_ulonglong,
}

/// `nvmlProcessInfo_v1_t`.
#[repr(C)]
pub(super) struct ProcessV1 {
    pub(super) pid: c_uint,
    pub(super) used: c_ulonglong,
}

/// `nvmlProcessInfo_v2_t`.
#[repr(C)]
pub(super) struct ProcessV2 {
    pub(super) pid: c_uint,
    pub(super) used: c_ulonglong,
    pub(super) gpu_instance: c_uint,
    pub(super) compute_instance: c_uint,
}

impl ProcessV2 {
    /// A process on a whole GPU, which has no instances.
    pub(super) fn whole(pid: c_uint, used: c_ulonglong) -> Self {
        Self { pid, used, gpu_instance: c_uint::MAX, compute_instance: c_uint::MAX }
    }
}
