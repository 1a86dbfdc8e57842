//! libcupti, opened at run time, so that neither the build nor the run needs a toolkit and candle's
//! build of cudarc is not changed.
//!
//! The declarations are those of CUPTI's headers (`cupti_activity.h`). They are the same from CUDA
//! 11.6 to 13.

#[cfg(not(feature = "sim"))]
use std::ffi::OsString;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::PathBuf;

#[cfg(not(feature = "sim"))]
use memcheck_core::request::variables;

use super::{CuptiUnavailable, NumberFunction};

/// `CUpti_BuffersCallbackRequestFunc`.
pub(super) type BufferRequest = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
/// `CUpti_BuffersCallbackCompleteFunc`.
pub(super) type Complete = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);

type Register = unsafe extern "C" fn(BufferRequest, Complete) -> c_int;
type Next = unsafe extern "C" fn(*mut u8, usize, *mut *mut u8) -> c_int;
type Dropped = unsafe extern "C" fn(*mut c_void, u32, *mut usize) -> c_int;
type EnableSources = unsafe extern "C" fn(u8) -> c_int;
type ResultString = unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int;

/// Names of the library, the newest first.
#[cfg(not(feature = "sim"))]
const NAMES: [&str; 3] = ["libcupti.so.13", "libcupti.so.12", "libcupti.so"];
/// Folders of a toolkit that contain the library but may not be on the loader's search path.
#[cfg(not(feature = "sim"))]
const FOLDERS: [&str; 2] = ["extras/CUPTI/lib64", "lib64"];
/// Environment variables with the path of a toolkit.
#[cfg(not(feature = "sim"))]
const TOOLKITS: [&str; 4] = ["CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "CUDA_TOOLKIT_ROOT_DIR"];
/// `CUPTI_ACTIVITY_FLAG_FLUSH_FORCED`: flushes buffers that are not full too.
const FORCED: u32 = 1;

/// The functions of the library. The library is never closed.
#[derive(Debug)]
pub(super) struct Library {
    register: Register,
    enable: NumberFunction,
    disable: NumberFunction,
    flush: NumberFunction,
    next: Next,
    dropped: Dropped,
    sources: Option<EnableSources>,
    result_string: Option<ResultString>,
}

impl Library {
    /// Opens the library and looks up its functions.
    pub(super) fn open() -> Result<Self, CuptiUnavailable> {
        let handle = handle()?;
        macro_rules! function {
            ($name:literal) => {
                function!($name, optional).ok_or(CuptiUnavailable::NoFunction($name))?
            };
            ($name:literal, optional) => {{
                let name = concat!($name, "\0").as_bytes();
                // SAFETY: the library is open, and the name has a terminator.
                let address = unsafe { libc::dlsym(handle, name.as_ptr().cast()) };
                // SAFETY: by CUPTI's headers, the function of this name has the type of its field.
                // A null pointer becomes `None`.
                unsafe { std::mem::transmute::<*mut c_void, Option<_>>(address) }
            }};
        }
        Ok(Self {
            register: function!("cuptiActivityRegisterCallbacks"),
            enable: function!("cuptiActivityEnable"),
            disable: function!("cuptiActivityDisable"),
            flush: function!("cuptiActivityFlushAll"),
            next: function!("cuptiActivityGetNextRecord"),
            dropped: function!("cuptiActivityGetNumDroppedRecords"),
            sources: function!("cuptiActivityEnableAllocationSource", optional),
            result_string: function!("cuptiGetResultString", optional),
        })
    }

    /// Registers the functions that provide buffers and take them back.
    pub(super) fn register(
        &self,
        request: BufferRequest,
        complete: Complete,
    ) -> Result<(), CuptiUnavailable> {
        // SAFETY: both functions are valid as long as the process lives.
        let code = unsafe { (self.register)(request, complete) };
        self.check("cuptiActivityRegisterCallbacks", code)
    }

    /// True if records name the library that allocated, which CUPTI does from CUDA 12.6 on.
    pub(super) fn has_sources(&self) -> bool {
        self.sources.is_some()
    }

    /// Makes records name the library that allocated.
    pub(super) fn enable_sources(&self) {
        if let Some(sources) = self.sources {
            // SAFETY: the function takes a flag only. If it fails, the names in the records are
            // null.
            unsafe { sources(1) };
        }
    }

    pub(super) fn enable(&self, kind: u32) -> Result<(), CuptiUnavailable> {
        // SAFETY: the function takes a kind of activity only.
        self.check("cuptiActivityEnable", unsafe { (self.enable)(kind) })
    }

    pub(super) fn disable(&self, kind: u32) -> Result<(), CuptiUnavailable> {
        // SAFETY: the function takes a kind of activity only.
        self.check("cuptiActivityDisable", unsafe { (self.disable)(kind) })
    }

    /// Makes CUPTI return every buffer.
    pub(super) fn flush(&self) -> Result<(), CuptiUnavailable> {
        // SAFETY: the function takes flags only, and the callbacks that it calls are registered.
        self.check("cuptiActivityFlushAll", unsafe { (self.flush)(FORCED) })
    }

    /// Moves on to the next record of a buffer. A null `record` is before the first. False at the
    /// end.
    pub(super) fn next(&self, buffer: *mut u8, valid: usize, record: &mut *mut u8) -> bool {
        // SAFETY: CUPTI has just returned the buffer with this number of valid bytes, and the
        // record is null or one of this buffer.
        unsafe { (self.next)(buffer, valid, record) == 0 }
    }

    /// The number of records that were lost because a buffer was missing.
    pub(super) fn dropped(&self) -> usize {
        let mut count = 0;
        // SAFETY: a null context means all contexts, and the result pointer is to a local.
        let code = unsafe { (self.dropped)(std::ptr::null_mut(), 0, &raw mut count) };
        // Fails only if CUPTI is not initialized, and then no record can be lost.
        if code == 0 { count } else { 0 }
    }

    fn check(&self, call: &'static str, code: c_int) -> Result<(), CuptiUnavailable> {
        if code == 0 {
            return Ok(());
        }
        let mut text = std::ptr::null();
        if let Some(name) = self.result_string {
            // SAFETY: the result pointer is to a local.
            unsafe { name(code, &raw mut text) };
        }
        let error = match text.is_null() {
            true => code.to_string(),
            // SAFETY: the pointer is not null, so it is to a constant string of CUPTI.
            false => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
        };
        Err(CuptiUnavailable::Refused { call, error })
    }
}

/// The simulated device's library, which comes with its NVML.
#[cfg(feature = "sim")]
fn handle() -> Result<*mut c_void, CuptiUnavailable> {
    let path = std::env::var_os("MEMCHECK_SIM_NVML").ok_or(CuptiUnavailable::NoLibrary)?;
    let path = PathBuf::from(path);
    memcheck_sim::attach_nvml(&path)?;
    open_library(&path).ok_or_else(|| CuptiUnavailable::NotFound(path.display().to_string()))
}

/// The library that the loader finds, that of a toolkit, or one from a Python wheel.
#[cfg(not(feature = "sim"))]
fn handle() -> Result<*mut c_void, CuptiUnavailable> {
    let mut all = candidate_paths(|name| std::env::var_os(name)).into_iter();
    all.find_map(|path| open_library(&path))
        .ok_or_else(|| CuptiUnavailable::NotFound(NAMES[2].to_owned()))
}

/// The paths of the library in the order in which they are tried: names that the loader resolves,
/// folders of toolkits, and paths in Python's CUDA wheels that the command has found.
#[cfg(not(feature = "sim"))]
fn candidate_paths(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let roots = TOOLKITS.iter().filter_map(|name| variable(name)).map(PathBuf::from);
    let roots = roots.chain([PathBuf::from("/usr/local/cuda")]);
    let of_toolkits = roots.flat_map(|root| FOLDERS.map(|folder| root.join(folder)));
    let of_toolkits = of_toolkits.map(|folder| folder.join("libcupti.so"));
    let wheels = variable(variables::CUPTI).unwrap_or_default();
    let of_wheels = std::env::split_paths(&wheels).filter(|path| path.is_absolute());
    NAMES.map(PathBuf::from).into_iter().chain(of_toolkits).chain(of_wheels).collect()
}

/// Opens a library by its path, or by a name that the loader resolves.
fn open_library(path: &std::path::Path) -> Option<*mut c_void> {
    let name = CString::new(path.as_os_str().as_encoded_bytes()).ok()?;
    // SAFETY: the name has a terminator, and CUPTI's initializers do not access a device.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    (!handle.is_null()).then_some(handle)
}

#[cfg(all(test, not(feature = "sim")))]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_the_loader_then_toolkits_then_python_wheels() {
        let paths = candidate_paths(|name| match name {
            "CUDA_HOME" => Some("/opt/cuda".into()),
            "MEMCHECK_CUPTI" => Some("/venv/libcupti.so.13:/venv/libcupti.so.12".into()),
            _ => None,
        });
        let expected = [
            "libcupti.so.13",
            "libcupti.so.12",
            "libcupti.so",
            "/opt/cuda/extras/CUPTI/lib64/libcupti.so",
            "/opt/cuda/lib64/libcupti.so",
            "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
            "/usr/local/cuda/lib64/libcupti.so",
            "/venv/libcupti.so.13",
            "/venv/libcupti.so.12",
        ];
        assert_eq!(paths, expected.map(PathBuf::from));
    }
}
