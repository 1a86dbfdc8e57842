//! The CUDA libraries for a program that loads them at run time (`dlopen`): burn, cudarc with
//! `dynamic-loading`, and cudarc before 0.17 with any feature.
//!
//! The dynamic linker knows a loaded library by its name in the file (`DT_SONAME`). Libraries with
//! these names are loaded before the program asks for them. They contain nothing but the addresses
//! of the functions in this executable, so that the program's calls are those of a program that is
//! linked with CUDA.

mod elf;

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd};

use memcheck_limits::quiet;

use crate::link;

/// The names by which programs load the libraries of CUDA 11 to 13.
const NAMES: [&str; 24] = [
    "libcuda.so",
    "libcuda.so.1",
    "libcublas.so",
    "libcublas.so.11",
    "libcublas.so.12",
    "libcublas.so.13",
    "libcublasLt.so",
    "libcublasLt.so.11",
    "libcublasLt.so.12",
    "libcublasLt.so.13",
    "libcurand.so",
    "libcurand.so.10",
    "libnvrtc.so",
    "libnvrtc.so.12",
    "libnvrtc.so.13",
    "libcudart.so",
    "libcudart.so.11.0",
    "libcudart.so.12",
    "libcudart.so.13",
    "libcudnn.so",
    "libcudnn.so.8",
    "libcudnn.so.9",
    "libnccl.so",
    "libnccl.so.2",
];

/// The reason why a library cannot be provided.
#[derive(Debug, thiserror::Error)]
pub enum ProvideError {
    /// The system refuses a file in memory.
    #[error("{name} for `dlopen` cannot be written: {error}")]
    Write {
        /// The library.
        name: &'static str,
        /// The error of the system.
        error: std::io::Error,
    },
    /// The dynamic linker refuses the file, or finds other addresses in it.
    #[error("{0} for `dlopen` cannot be loaded: the dynamic linker does not accept it")]
    Load(&'static str),
}

unsafe extern "C" {
    fn memfd_create(name: *const c_char, flags: c_uint) -> c_int;
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// `RTLD_NOW`.
const NOW: c_int = 2;
/// `MFD_CLOEXEC`.
const CLOSE_ON_EXEC: c_uint = 1;

/// Loads the libraries. `probes` are the functions that another crate defines ([`crate::hooked`]).
/// They stay loaded until the process ends.
///
/// # Errors
///
/// If a library cannot be written or loaded.
pub fn provide_libraries(probes: &[(&'static str, *const c_void)]) -> Result<(), ProvideError> {
    let _quiet = quiet::enter();
    let functions: Vec<(&str, u64)> = link::symbols()
        .chain(probes.iter().copied())
        .map(|(name, address)| (name, address as u64))
        .collect();
    // The dynamic linker takes two files of one path for the same library, and the path is that of
    // the descriptor: all files stay open until the last library is loaded.
    let provided: Result<Vec<File>, ProvideError> =
        NAMES.into_iter().map(|name| provide(name, &functions)).collect();
    provided.map(drop)
}

fn provide(name: &'static str, functions: &[(&str, u64)]) -> Result<File, ProvideError> {
    let error = |error| ProvideError::Write { name, error };
    // SAFETY: the name is a text with a terminator.
    let number = unsafe { memfd_create(c"memcheck-sim".as_ptr(), CLOSE_ON_EXEC) };
    if number < 0 {
        return Err(error(std::io::Error::last_os_error()));
    }
    // SAFETY: the system has just returned this number, and nothing else owns it.
    let mut file = unsafe { File::from_raw_fd(number) };
    file.write_all(&elf::library(name, functions)).map_err(error)?;
    let path = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))
        .map_err(|nul| error(nul.into()))?;
    // SAFETY: the path is a text with a terminator. The library has no initializers.
    let library = unsafe { dlopen(path.as_ptr(), NOW) };
    let is_found = |(name, address): &(&str, u64)| {
        let Ok(name) = CString::new(*name) else { return false };
        // SAFETY: the library is never closed, and the name is a text with a terminator.
        unsafe { dlsym(library, name.as_ptr()) as u64 == *address }
    };
    // The first and the last, because they must be the functions themselves, not moved by the
    // address at which the library was loaded.
    let ends = functions.first().into_iter().chain(functions.last());
    if library.is_null() || !ends.into_iter().all(is_found) {
        return Err(ProvideError::Load(name));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_loads_cuda_gets_the_functions_of_this_executable() {
        extern "C" fn probe() {}
        let probe: *const c_void = (probe as *const ()).cast();
        provide_libraries(&[("cuMemAlloc_v2", probe)]).unwrap();
        for name in NAMES {
            let name = CString::new(name).unwrap();
            // SAFETY: the name is a text with a terminator. A loaded library of this name is found
            // before the file system is searched.
            let library = unsafe { dlopen(name.as_ptr(), NOW) };
            assert!(!library.is_null(), "{name:?}");
            // SAFETY: as above.
            let found = unsafe { dlsym(library, c"cuMemAlloc_v2".as_ptr()) };
            assert_eq!(found.cast_const(), probe, "{name:?}");
            for (function, address) in link::symbols() {
                let function = CString::new(function).unwrap();
                // SAFETY: as above.
                let found = unsafe { dlsym(library, function.as_ptr()) };
                assert_eq!(found.cast_const(), address, "{function:?}");
            }
        }
    }
}
