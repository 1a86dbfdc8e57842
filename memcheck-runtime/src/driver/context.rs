//! The primary context of a device. It is the context of the runtime library and of cudarc, so that
//! memcheck adds none to the program's.

use std::ffi::{c_int, c_uint};

use super::{DriverError, GpuHandle, Handle, check, functions};

functions! {
    fn cuInit(flags: c_uint);
    fn cuCtxGetCurrent(context: *mut Handle);
    fn cuCtxSetCurrent(context: Handle);
    fn cuCtxSynchronize();
    fn cuDevicePrimaryCtxRetain(context: *mut Handle, device: c_int);
}

/// True if the executable, or a library that it links, has the driver.
pub(crate) fn is_linked() -> bool {
    // SAFETY: the name is a constant with a terminator, and the function of this name is not
    // called.
    cfg!(feature = "sim")
        || !unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"cuInit".as_ptr()) }.is_null()
}

/// Waits for the work of the current device.
///
/// # Errors
/// If the driver returns an error.
pub(crate) fn synchronize() -> Result<(), DriverError> {
    // SAFETY: the function has no arguments.
    check(unsafe { cuCtxSynchronize() })
}

/// The primary context of a device, which stays until the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PrimaryContext {
    ordinal: u16,
    /// The address of the context.
    handle: usize,
}

impl PrimaryContext {
    /// Takes a reference to the context.
    ///
    /// # Errors
    /// If the driver returns an error, or if there is no such device.
    pub(crate) fn retain(ordinal: u16) -> Result<Self, DriverError> {
        // SAFETY: the function has one argument, which must be 0.
        check(unsafe { cuInit(0) })?;
        let device = GpuHandle::get(ordinal)?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the driver writes one handle to a local.
        check(unsafe { cuDevicePrimaryCtxRetain(&raw mut handle, device.0) })?;
        Ok(Self { ordinal, handle: handle as usize })
    }

    pub(crate) fn ordinal(&self) -> u16 {
        self.ordinal
    }

    /// Calls `act` with this context as the calling thread's current one, and restores the one
    /// before.
    ///
    /// # Errors
    /// If the driver refuses, or that of `act`.
    pub(crate) fn with_current(
        &self,
        act: impl FnOnce() -> Result<(), DriverError>,
    ) -> Result<(), DriverError> {
        let mut before = std::ptr::null_mut();
        // SAFETY: the driver writes one handle to a local. The context lives until the process
        // ends.
        check(unsafe { cuCtxGetCurrent(&raw mut before) })?;
        // SAFETY: as above.
        check(unsafe { cuCtxSetCurrent(self.handle as Handle) })?;
        let acted = act();
        // SAFETY: it was the thread's current context.
        acted.and(check(unsafe { cuCtxSetCurrent(before) }))
    }
}
