//! Functions of the CUDA driver that allocate nothing, without cudarc: a program need not have it.
//!
//! The simulated device defines the functions in this executable. Otherwise they are looked up at
//! the first call, because a program without candle need not link the driver. A function that is
//! not found returns `CUDA_ERROR_NOT_FOUND`.
//!
//! `blocks` are those of canaries. `context` is the context that memcheck uses in a program without
//! candle.
#![cfg_attr(not(feature = "sim"), expect(non_snake_case, reason = "the driver's own names"))]

pub(crate) mod blocks;
#[cfg(not(feature = "candle"))]
mod context;

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

#[cfg(not(feature = "candle"))]
pub(crate) use context::{PrimaryContext, is_linked, synchronize};

/// `CUcontext`, `CUstream`, `CUmemoryPool`.
pub(crate) type Handle = *mut c_void;

/// `CUDA_SUCCESS`.
const SUCCESS: c_int = 0;
/// `CUDA_ERROR_NOT_FOUND`: the library is not loaded.
#[cfg(not(feature = "sim"))]
pub(crate) const NOT_FOUND: c_int = 500;

/// Functions that look up the definition of their name in `$scope` at the first call.
#[cfg(not(feature = "sim"))]
macro_rules! looked_up {
    ($visible:vis in $scope:expr; $(fn $name:ident($($argument:ident: $type:ty),*);)*) => {
        $(
            $visible unsafe fn $name($($argument: $type),*) -> std::ffi::c_int {
                use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};
                static FOUND: AtomicPtr<std::ffi::c_void> = AtomicPtr::new(std::ptr::null_mut());
                let mut found = FOUND.load(Relaxed);
                if found.is_null() {
                    const NAME: &std::ffi::CStr = match std::ffi::CStr::from_bytes_with_nul(
                        concat!(stringify!($name), "\0").as_bytes(),
                    ) {
                        Ok(name) => name,
                        Err(_) => unreachable!(),
                    };
                    // SAFETY: the name is a constant with a terminator, and the scope is a constant
                    // of the linker.
                    found = unsafe { libc::dlsym($scope, NAME.as_ptr()) };
                    if found.is_null() {
                        return $crate::driver::NOT_FOUND;
                    }
                    FOUND.store(found, Relaxed);
                }
                type Function = unsafe extern "C" fn($($type),*) -> std::ffi::c_int;
                // SAFETY: by the CUDA headers, the symbol of this name is a function of this type.
                let function: Function = unsafe { std::mem::transmute(found) };
                // SAFETY: the caller keeps the contract of the function.
                unsafe { function($($argument),*) }
            }
        )*
    };
}

#[cfg(not(feature = "sim"))]
pub(crate) use looked_up;

#[cfg(not(feature = "sim"))]
macro_rules! functions {
    ($($functions:tt)*) => { $crate::driver::looked_up! { pub(crate) in libc::RTLD_DEFAULT; $($functions)* } };
}

/// The simulated device defines them.
#[cfg(feature = "sim")]
macro_rules! functions {
    ($(fn $name:ident($($argument:ident: $type:ty),*);)*) => {
        unsafe extern "C" {
            $(pub(crate) fn $name($($argument: $type),*) -> std::ffi::c_int;)*
        }
    };
}

#[cfg(not(feature = "candle"))]
use functions;

functions! {
    fn cuDeviceGet(device: *mut c_int, ordinal: c_int);
    fn cuDeviceGetName(name: *mut c_char, length: c_int, device: c_int);
    fn cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: c_int);
    fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int);
    fn cuDeviceGetDefaultMemPool(pool: *mut Handle, device: c_int);
    fn cuMemPoolGetAttribute(pool: Handle, attribute: c_int, value: *mut c_void);
    fn cuMemPoolSetAttribute(pool: Handle, attribute: c_int, value: *mut c_void);
    fn cuMemPoolTrimTo(pool: Handle, bytes: usize);
    fn cuCtxGetDevice(device: *mut c_int);
    fn cuStreamCreate(stream: *mut Handle, flags: c_uint);
    fn cuStreamDestroy_v2(stream: Handle);
    fn cuStreamIsCapturing(stream: Handle, status: *mut c_int);
    fn cuPointerGetAttribute(value: *mut c_void, attribute: c_int, address: u64);
    fn cuGetErrorName(error: c_int, name: *mut *const c_char);
    fn cuGetErrorString(error: c_int, text: *mut *const c_char);
}

#[cfg(any(feature = "candle", not(feature = "sim")))]
functions! {
    fn cuDeviceGetCount(count: *mut c_int);
}

#[cfg(not(feature = "sim"))]
functions! {
    fn cuDeviceTotalMem_v2(bytes: *mut usize, device: c_int);
    fn cuDriverGetVersion(version: *mut c_int);
}

/// An error of the driver, with its text in the form of cudarc's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("DriverError({}, \"{}\")", self.name(), self.text())]
pub(crate) struct DriverError(c_int);

impl DriverError {
    fn name(self) -> String {
        // SAFETY: the driver writes the address of a constant to a local.
        self.described(|name| unsafe { cuGetErrorName(self.0, name) })
    }

    fn text(self) -> String {
        // SAFETY: the driver writes the address of a constant to a local.
        self.described(|text| unsafe { cuGetErrorString(self.0, text) })
    }

    fn described(self, look_up: impl FnOnce(*mut *const c_char) -> c_int) -> String {
        let mut text = std::ptr::null();
        if look_up(&raw mut text) != SUCCESS || text.is_null() {
            return self.0.to_string();
        }
        // SAFETY: the driver returned a constant with a terminator.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }
}

/// The result of a call.
///
/// # Errors
/// If the call failed.
pub(crate) fn check(result: c_int) -> Result<(), DriverError> {
    if result == SUCCESS { Ok(()) } else { Err(DriverError(result)) }
}

/// The number of devices that the program can see.
///
/// # Errors
/// If the driver returns an error.
#[cfg(any(feature = "candle", not(feature = "sim")))]
pub(crate) fn count() -> Result<u16, DriverError> {
    let mut count = 0;
    // SAFETY: the driver writes one int to a local.
    check(unsafe { cuDeviceGetCount(&raw mut count) })?;
    Ok(u16::try_from(count).unwrap_or(0))
}

/// A device of the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GpuHandle(c_int);

impl GpuHandle {
    /// The device with this number.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn get(ordinal: u16) -> Result<Self, DriverError> {
        let mut device = 0;
        // SAFETY: the driver writes one int to a local.
        check(unsafe { cuDeviceGet(&raw mut device, ordinal.into()) })?;
        Ok(Self(device))
    }

    /// The name of the card.
    ///
    /// # Errors
    /// If the driver returns an error.
    pub(crate) fn name(self) -> Result<String, DriverError> {
        const LENGTH: c_int = 256;
        let mut name = [0u8; LENGTH as usize];
        // SAFETY: the driver writes at most that many bytes, with a terminator.
        check(unsafe { cuDeviceGetName(name.as_mut_ptr().cast(), LENGTH, self.0) })?;
        let name = CStr::from_bytes_until_nul(&name).unwrap_or_default();
        Ok(name.to_string_lossy().into_owned())
    }

    /// The UUID; that of the slice if the device is a slice of a card. The function exists from
    /// CUDA 11.4 on. The one before it returns the UUID of the whole card.
    ///
    /// # Errors
    /// If the driver returns an error.
    pub(crate) fn uuid(self) -> Result<[u8; 16], DriverError> {
        let mut uuid = [0; 16];
        // SAFETY: the driver writes 16 bytes to a local.
        check(unsafe { cuDeviceGetUuid_v2(&raw mut uuid, self.0) })?;
        Ok(uuid)
    }

    /// True if the device has this property, which is `CU_DEVICE_ATTRIBUTE_…`.
    ///
    /// # Errors
    /// If the driver returns an error.
    pub(crate) fn has(self, attribute: c_int) -> Result<bool, DriverError> {
        let mut value = 0;
        // SAFETY: the driver writes one int to a local.
        check(unsafe { cuDeviceGetAttribute(&raw mut value, attribute, self.0) })?;
        Ok(value != 0)
    }

    /// The bytes of the device.
    ///
    /// # Errors
    /// If the driver returns an error.
    #[cfg(not(feature = "sim"))]
    pub(crate) fn capacity(self) -> Result<u64, DriverError> {
        let mut bytes = 0;
        // SAFETY: the driver writes one size to a local.
        check(unsafe { cuDeviceTotalMem_v2(&raw mut bytes, self.0) })?;
        Ok(bytes as u64)
    }

    /// The default pool of the device.
    ///
    /// # Errors
    /// If the driver returns an error.
    pub(crate) fn default_pool(self) -> Result<Handle, DriverError> {
        let mut pool = std::ptr::null_mut();
        // SAFETY: the driver writes one handle to a local.
        check(unsafe { cuDeviceGetDefaultMemPool(&raw mut pool, self.0) })?;
        Ok(pool)
    }
}

/// The calling thread's current device.
pub(crate) fn current_device() -> Option<u16> {
    let mut ordinal: c_int = -1;
    // SAFETY: the pointer is to a local int, to which the driver writes one int.
    let result = unsafe { cuCtxGetDevice(&raw mut ordinal) };
    (result == SUCCESS).then(|| u16::try_from(ordinal).ok()).flatten()
}

/// The version of CUDA that the driver supports, as `major * 1000 + minor * 10`.
///
/// # Errors
/// If the driver returns an error.
#[cfg(not(feature = "sim"))]
pub(crate) fn version() -> Result<c_int, DriverError> {
    let mut version = 0;
    // SAFETY: the pointer is to a local int, to which the driver writes one int.
    check(unsafe { cuDriverGetVersion(&raw mut version) })?;
    Ok(version)
}

/// True if the loaded driver is the simulated one.
pub(crate) fn is_simulated() -> bool {
    if cfg!(feature = "sim") {
        return true;
    }
    // SAFETY: the name is a constant with a terminator, and the function of this name is not
    // called.
    let mark = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"cuMemcheckSimulated".as_ptr()) };
    !mark.is_null()
}
