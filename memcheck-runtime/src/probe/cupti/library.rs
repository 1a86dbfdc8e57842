//! libcupti, opened at run time: no toolkit is needed to build or to run, and
//! candle's build of cudarc stays as it is.
//!
//! The declarations are those of CUPTI's headers (`cupti_activity.h`), the same
//! from CUDA 11.6 to 13.

#[cfg(not(feature = "sim"))]
use std::ffi::OsString;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::PathBuf;

#[cfg(not(feature = "sim"))]
use memcheck_core::variables;

use super::{OfNumber, Unavailable};

/// `CUpti_BuffersCallbackRequestFunc`.
pub(super) type Request = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
/// `CUpti_BuffersCallbackCompleteFunc`.
pub(super) type Complete = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);

type Register = unsafe extern "C" fn(Request, Complete) -> c_int;
type Next = unsafe extern "C" fn(*mut u8, usize, *mut *mut u8) -> c_int;
type Dropped = unsafe extern "C" fn(*mut c_void, u32, *mut usize) -> c_int;
type Sources = unsafe extern "C" fn(u8) -> c_int;
type Words = unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int;

/// Names of the library, the newest first.
#[cfg(not(feature = "sim"))]
const NAMES: [&str; 3] = ["libcupti.so.13", "libcupti.so.12", "libcupti.so"];
/// Where a toolkit has it that is on no search path.
#[cfg(not(feature = "sim"))]
const FOLDERS: [&str; 2] = ["extras/CUPTI/lib64", "lib64"];
/// Variables that name a toolkit.
#[cfg(not(feature = "sim"))]
const TOOLKITS: [&str; 4] = ["CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "CUDA_TOOLKIT_ROOT_DIR"];
/// `CUPTI_ACTIVITY_FLAG_FLUSH_FORCED`: buffers that are not full as well.
const FORCED: u32 = 1;

/// The functions that are used. The library is never closed.
#[derive(Debug)]
pub(super) struct Library {
    register: Register,
    enable: OfNumber,
    disable: OfNumber,
    flush: OfNumber,
    next: Next,
    dropped: Dropped,
    sources: Option<Sources>,
    words: Option<Words>,
}

impl Library {
    /// Finds the library and its functions.
    pub(super) fn open() -> Result<Self, Unavailable> {
        let handle = handle()?;
        macro_rules! function {
            ($name:literal) => {
                function!($name, optional).ok_or(Unavailable::NoFunction($name))?
            };
            ($name:literal, optional) => {{
                let name = concat!($name, "\0").as_bytes();
                // SAFETY: an open library, and a terminated name.
                let address = unsafe { libc::dlsym(handle, name.as_ptr().cast()) };
                // SAFETY: the function of this name has the type of its field, by
                // CUPTI's headers; a null pointer is `None`.
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
            words: function!("cuptiGetResultString", optional),
        })
    }

    /// Who gives buffers, and who takes them back.
    pub(super) fn register(&self, request: Request, complete: Complete) -> Result<(), Unavailable> {
        // SAFETY: both functions live as long as the process.
        let code = unsafe { (self.register)(request, complete) };
        self.checked("cuptiActivityRegisterCallbacks", code)
    }

    /// Whether records name the library that allocated: from CUDA 12.6 on.
    pub(super) fn has_sources(&self) -> bool {
        self.sources.is_some()
    }

    /// Has records name it.
    pub(super) fn name_sources(&self) {
        if let Some(sources) = self.sources {
            // SAFETY: takes a flag. Where it is refused the names are null.
            unsafe { sources(1) };
        }
    }

    pub(super) fn enable(&self, kind: u32) -> Result<(), Unavailable> {
        // SAFETY: takes a kind of activity.
        self.checked("cuptiActivityEnable", unsafe { (self.enable)(kind) })
    }

    pub(super) fn disable(&self, kind: u32) -> Result<(), Unavailable> {
        // SAFETY: takes a kind of activity.
        self.checked("cuptiActivityDisable", unsafe { (self.disable)(kind) })
    }

    /// Has every buffer given back.
    pub(super) fn flush(&self) -> Result<(), Unavailable> {
        // SAFETY: takes flags; the callbacks that it calls are registered.
        self.checked("cuptiActivityFlushAll", unsafe { (self.flush)(FORCED) })
    }

    /// Moves on to the next record of a buffer, null being before the first.
    pub(super) fn next(&self, buffer: *mut u8, valid: usize, record: &mut *mut u8) -> bool {
        // SAFETY: the buffer is one that CUPTI has just given back with so many
        // valid bytes, and the record one of its own.
        unsafe { (self.next)(buffer, valid, record) == 0 }
    }

    /// Records that found no buffer.
    pub(super) fn dropped(&self) -> usize {
        let mut count = 0;
        // SAFETY: no context means those of all; the result pointer is a local.
        let code = unsafe { (self.dropped)(std::ptr::null_mut(), 0, &raw mut count) };
        if code == 0 { count } else { 0 }
    }

    fn checked(&self, call: &'static str, code: c_int) -> Result<(), Unavailable> {
        if code == 0 {
            return Ok(());
        }
        let mut words = std::ptr::null();
        if let Some(name) = self.words {
            // SAFETY: the result pointer is a local.
            unsafe { name(code, &raw mut words) };
        }
        let error = match words.is_null() {
            true => code.to_string(),
            // SAFETY: not null: a constant text of CUPTI's.
            false => unsafe { CStr::from_ptr(words) }.to_string_lossy().into_owned(),
        };
        Err(Unavailable::Refused { call, error })
    }
}

/// The simulated device's, which comes with its NVML.
#[cfg(feature = "sim")]
fn handle() -> Result<*mut c_void, Unavailable> {
    let path = std::env::var_os("MEMCHECK_SIM_NVML").ok_or(Unavailable::NoLibrary)?;
    let path = PathBuf::from(path);
    memcheck_sim::attach_nvml(&path)?;
    opened(&path).ok_or_else(|| Unavailable::NotFound(path.display().to_string()))
}

/// The loader's, that of a toolkit, or one that Python brings.
#[cfg(not(feature = "sim"))]
fn handle() -> Result<*mut c_void, Unavailable> {
    let mut all = places(|name| std::env::var_os(name)).into_iter();
    all.find_map(|path| opened(&path)).ok_or_else(|| Unavailable::NotFound(NAMES[2].to_owned()))
}

/// Where it is looked for, in this order: by names that the loader knows, in
/// toolkits, and where the command has found it in Python's CUDA wheels.
#[cfg(not(feature = "sim"))]
fn places(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let roots = TOOLKITS.iter().filter_map(|name| variable(name)).map(PathBuf::from);
    let roots = roots.chain([PathBuf::from("/usr/local/cuda")]);
    let of_toolkits = roots.flat_map(|root| FOLDERS.map(|folder| root.join(folder)));
    let of_toolkits = of_toolkits.map(|folder| folder.join("libcupti.so"));
    let wheels = variable(variables::CUPTI).unwrap_or_default();
    let of_wheels = std::env::split_paths(&wheels).filter(|path| path.is_absolute());
    NAMES.map(PathBuf::from).into_iter().chain(of_toolkits).chain(of_wheels).collect()
}

/// Opens a library by its path, or by a name that the loader knows.
fn opened(path: &std::path::Path) -> Option<*mut c_void> {
    let name = CString::new(path.as_os_str().as_encoded_bytes()).ok()?;
    // SAFETY: a terminated text. CUPTI's initialisers touch no device.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    (!handle.is_null()).then_some(handle)
}

#[cfg(all(test, not(feature = "sim")))]
mod tests {
    use super::*;

    #[test]
    fn the_loader_is_asked_first_then_toolkits_then_what_python_brings() {
        let places = places(|name| match name {
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
        assert_eq!(places, expected.map(PathBuf::from));
    }
}
