//! The parameters of nodes, as C passes them, and the work that they describe.

use std::ffi::{c_int, c_uint, c_void};

use crate::code::{Answer, Code};
use crate::driver::module::kernel_work;
use crate::machine::graphs::{HostFunction, Step};
use crate::machine::{Handle, with};
use crate::transfer::End;

/// `CUDA_KERNEL_NODE_PARAMS`, as far as all versions have it.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct KernelParameters {
    pub(super) function: Handle,
    pub(super) grid: [c_uint; 3],
    pub(super) block: [c_uint; 3],
    pub(super) shared: c_uint,
    pub(super) arguments: *const *mut c_void,
}

/// One end of a `CUDA_MEMCPY3D`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct CopyEnd {
    pub(super) x: usize,
    pub(super) y: usize,
    pub(super) z: usize,
    pub(super) level: usize,
    pub(super) kind: c_uint,
    pub(super) host: *mut c_void,
    pub(super) device: u64,
    pub(super) array: Handle,
    pub(super) reserved: Handle,
    pub(super) pitch: usize,
    pub(super) height: usize,
}

/// `CUDA_MEMCPY3D`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct CopyParameters {
    pub(super) from: CopyEnd,
    pub(super) to: CopyEnd,
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) depth: usize,
}

/// `CUDA_MEMSET_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct FillParameters {
    pub(super) to: u64,
    pub(super) pitch: usize,
    pub(super) value: c_uint,
    pub(super) element: c_uint,
    pub(super) width: usize,
    pub(super) height: usize,
}

/// `CUDA_HOST_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct HostParameters {
    pub(super) function: Option<HostFunction>,
    pub(super) data: *mut c_void,
}

/// `CUDA_MEM_ALLOC_NODE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct AllocationParameters {
    pub(super) kind: c_int,
    pub(super) handles: c_int,
    pub(super) location_kind: c_int,
    pub(super) ordinal: c_int,
    pub(super) reserved: [u64; 9],
    pub(super) access: *const c_void,
    pub(super) access_count: usize,
    pub(super) bytes: usize,
    pub(super) address: u64,
}

impl KernelParameters {
    pub(super) fn step(self) -> Answer<Step> {
        // SAFETY: the C caller promises that the arguments are those of the kernel.
        let work = with(|machine| unsafe {
            kernel_work(machine, self.function, (self.grid, self.block), self.arguments)
        })?;
        Ok(Step::device(work))
    }
}

impl CopyEnd {
    /// Returns the start of a row.
    fn row(&self, y: usize, z: usize) -> Answer<End> {
        let rows =
            (self.z + z).checked_mul(self.height).and_then(|rows| rows.checked_add(self.y + y));
        let offset = rows.and_then(|rows| rows.checked_mul(self.pitch));
        let offset = offset.ok_or(Code::INVALID_VALUE)? + self.x;
        Ok(match self.kind {
            1 => End::Host(self.host.wrapping_byte_add(offset)),
            2 => End::Device(self.device + offset as u64),
            4 => End::Any(self.device + offset as u64),
            3 => {
                crate::refused::refuse("a copy node of an array in a CUDA graph");
                return Err(Code::NOT_SUPPORTED);
            }
            _ => return Err(Code::INVALID_VALUE),
        })
    }
}

impl CopyParameters {
    pub(super) fn step(self, context: Handle) -> Answer<Step> {
        let mut rows = Vec::new();
        for z in 0..self.depth {
            for y in 0..self.height {
                let (to, from) = (self.to.row(y, z)?, self.from.row(y, z)?);
                // A copy for each row, because a pitch can leave bytes between two rows untouched.
                // SAFETY: the C caller promises that the host ends are valid during each launch.
                rows.push(with(|machine| unsafe { machine.copy_work(to, from, self.width) })?);
            }
        }
        with(|machine| machine.context(context).map(drop))?;
        Ok(Step::device(move |machine| rows.iter().for_each(|row| row(machine))))
    }
}

impl FillParameters {
    pub(super) fn step(self, context: Handle) -> Answer<Step> {
        let value = self.value.to_ne_bytes();
        let pattern = match self.element {
            1 | 2 | 4 => &value[..self.element as usize],
            _ => return Err(Code::INVALID_VALUE),
        };
        let mut rows = Vec::new();
        for row in 0..self.height {
            let offset = row.checked_mul(self.pitch).ok_or(Code::INVALID_VALUE)?;
            let to = self.to + offset as u64;
            rows.push(with(|machine| machine.fill_work(to, pattern, self.width))?);
        }
        with(|machine| machine.context(context).map(drop))?;
        Ok(Step::device(move |machine| rows.iter().for_each(|row| row(machine))))
    }
}

impl HostParameters {
    pub(super) fn step(self) -> Answer<Step> {
        let function = self.function.ok_or(Code::INVALID_VALUE)?;
        Ok(Step::Host(function, self.data as usize))
    }
}
