//! Connects the library that nvml-wrapper opens with the simulated functions.

use std::ffi::{CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use memcheck_limits::quiet;

use crate::cupti;

/// The error of a library that cannot be attached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NvmlError {
    /// The path contains a zero byte, or the dynamic linker cannot load the file.
    #[error("cannot open {path}: {reason}")]
    Open {
        /// The path as given.
        path: String,
        /// The dynamic linker's message.
        reason: String,
    },
    /// The file is not the library that is built from `cargo-memcheck/toolkit/nvml.c`.
    #[error("{0} has no `memcheck_nvml_set`: it is not the simulated NVML")]
    NotSimulated(String),
    /// The library was built from another version of `cargo-memcheck/toolkit/nvml.c`.
    #[error("{path} lacks {function}: it was built for another version of memcheck")]
    Missing {
        /// The path as given.
        path: String,
        /// The function that the library lacks.
        function: &'static str,
    },
}

/// Returns the simulated functions of NVML and of CUPTI by name.
pub fn nvml_table() -> impl Iterator<Item = (&'static str, *const c_void)> {
    let tables = [super::TABLE, cupti::EXPORTS, cupti::OTHERS];
    tables.into_iter().flatten().map(|symbol| (symbol.name, symbol.address.cast()))
}

unsafe extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlerror() -> *const c_char;
}

/// `RTLD_NOW`.
const NOW: c_int = 2;

/// Loads the library that was built from `cargo-memcheck/toolkit/nvml.c`, and connects it with the
/// simulator.
///
/// The library stays loaded, so that nvml-wrapper gets the connected library when it opens the same
/// path. The function can be called again.
///
/// # Errors
///
/// If the file cannot be loaded or is not that library.
pub fn attach_nvml(library: &Path) -> Result<(), NvmlError> {
    let _quiet = quiet::enter();
    let path = library.display().to_string();
    let open = |reason: String| NvmlError::Open { path: path.clone(), reason };
    let name =
        CString::new(library.as_os_str().as_bytes()).map_err(|error| open(error.to_string()))?;
    // SAFETY: the name is a zero-terminated text. The library has no initializers.
    let handle = unsafe { dlopen(name.as_ptr(), NOW) };
    if handle.is_null() {
        // SAFETY: dlopen has just failed on this thread, so dlerror returns a text. The text is
        // valid until the thread's next call of a dl function.
        let reason = unsafe { std::ffi::CStr::from_ptr(dlerror()) };
        return Err(open(reason.to_string_lossy().into_owned()));
    }
    // SAFETY: the handle is never closed, and the name is a zero-terminated text.
    let set = unsafe { dlsym(handle, c"memcheck_nvml_set".as_ptr()) };
    if set.is_null() {
        return Err(NvmlError::NotSimulated(path));
    }
    type Set = unsafe extern "C" fn(*const c_char, *const c_void) -> c_int;
    // SAFETY: nvml.c declares the function with this type.
    let set: Set = unsafe { std::mem::transmute::<*mut c_void, Set>(set) };
    for (function, address) in nvml_table() {
        let text = CString::new(function).expect("the table has names without zero bytes");
        // SAFETY: the name is a zero-terminated text. The function lives as long as the process and
        // has the parameters of NVML's function of that name.
        if unsafe { set(text.as_ptr(), address) } != 0 {
            return Err(NvmlError::Missing { path, function });
        }
    }
    Ok(())
}
