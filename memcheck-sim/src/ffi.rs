//! The border to C: parameters that are checked before they are used, and the macros that export a
//! Rust body under a C name.
//!
//! A pointer parameter has the type [`Out`], [`In`] or [`Text`]. These are transparent wrappers
//! that only a C caller can fill. By calling a CUDA function, that caller promises that the pointer
//! is null or valid as CUDA documents it. The null check is made here, once, so that the other
//! modules of the simulator can be safe code.

use std::ffi::{CStr, c_char, c_int, c_void};

use crate::code::{Answer, Code};

/// A result parameter, `T*`.
#[repr(transparent)]
pub(crate) struct Out<T>(*mut T);

impl<T> Out<T> {
    /// # Safety
    ///
    /// `pointer` must be null, or valid for writing one `T` during the call.
    pub(crate) unsafe fn new(pointer: *mut T) -> Self {
        Self(pointer)
    }

    /// Stores the result. The pointer must not be null, otherwise the call is an error.
    pub(crate) fn put(self, value: T) -> Answer {
        self.fill(|| Ok(value))
    }

    /// Makes a new object and stores it. `make` is not called if the pointer is null, because
    /// nothing could destroy the object.
    pub(crate) fn fill(self, make: impl FnOnce() -> Answer<T>) -> Answer {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        self.offer(make()?);
        Ok(())
    }

    /// Stores the result unless the pointer is null.
    pub(crate) fn offer(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: the pointer is not null, so it is writable by the promise made to `new` or by
            // the C caller.
            unsafe { self.0.write(value) };
        }
    }

    /// Returns the pointer itself, for parameters that C declares as an array.
    pub(crate) fn address(self) -> *mut T {
        self.0
    }

    /// Returns the parameter once more, for a call that stores it twice.
    pub(crate) fn again(&self) -> Self {
        Self(self.0)
    }

    /// Returns a parameter without a pointer.
    pub(crate) fn none() -> Self {
        Self(std::ptr::null_mut())
    }

    /// Returns the pointer's number, for a result that can be in device memory.
    pub(crate) fn number(&self) -> u64 {
        self.0 as u64
    }

    pub(crate) fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// Returns the parameter with another type, for parameters that C declares as `void*`.
    pub(crate) fn cast<U>(self) -> Out<U> {
        Out(self.0.cast())
    }
}

impl Out<c_char> {
    /// Stores a text and its terminating zero, cut to `capacity` bytes.
    pub(crate) fn put_text(self, text: &str, capacity: usize) -> Answer {
        if self.0.is_null() || capacity == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let length = text.len().min(capacity - 1);
        // SAFETY: the pointer is not null, and the C caller promises that `capacity` bytes are
        // writable; `length` + 1 is at most that.
        unsafe {
            self.0.copy_from_nonoverlapping(text.as_ptr().cast(), length);
            self.0.add(length).write(0);
        }
        Ok(())
    }
}

/// A parameter that is read, `const T*`.
#[repr(transparent)]
pub(crate) struct In<T>(*const T);

impl<T> In<T> {
    /// # Safety
    ///
    /// `pointer` must be null, or readable as one `T` during the call.
    #[cfg(test)]
    pub(crate) unsafe fn new(pointer: *const T) -> Self {
        Self(pointer)
    }

    pub(crate) fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// Returns the parameter with another type, for parameters that C declares as `void*`.
    pub(crate) fn cast<U>(self) -> In<U> {
        In(self.0.cast())
    }
}

impl<T: Copy> In<T> {
    pub(crate) fn get(self) -> Answer<T> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the pointer is not null, so it is readable by the promise of the C caller.
        Ok(unsafe { self.0.read() })
    }
}

/// A zero-terminated text, `const char*`.
#[repr(transparent)]
pub(crate) struct Text(*const c_char);

impl Text {
    pub(crate) fn get(self) -> Answer<String> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the pointer is not null, so the text is zero-terminated by the promise of the C
        // caller.
        Ok(unsafe { CStr::from_ptr(self.0) }.to_string_lossy().into_owned())
    }
}

/// Returns the text at `start`; `None` if no text starts there, such as in binary code.
///
/// # Safety
///
/// `start` must be readable for one byte. If this byte is printable or white space, it must start a
/// zero-terminated text.
pub(crate) unsafe fn text_of(start: *const c_void) -> Option<String> {
    // SAFETY: the caller promises that one byte is readable.
    let first = unsafe { *start.cast::<u8>() };
    (first == b'\n' || first == b'\r' || first == b'\t' || (b' '..=b'~').contains(&first)).then(
        || {
            // SAFETY: the caller promises that a text which starts so is zero-terminated.
            unsafe { CStr::from_ptr(start.cast()) }.to_string_lossy().into_owned()
        },
    )
}

/// Returns `length` bytes of the host.
///
/// # Safety
///
/// `address` must be readable for `length` bytes.
pub(crate) unsafe fn bytes(address: u64, length: u64) -> Vec<u8> {
    // SAFETY: the caller makes the same promise.
    unsafe { std::slice::from_raw_parts(address as *const u8, length as usize).to_vec() }
}

/// A function of the C interface and its name; [`crate::link`] keeps them in the binary.
#[derive(Clone, Copy)]
pub(crate) struct Symbol {
    pub(crate) name: &'static str,
    pub(crate) address: *const (),
}

// SAFETY: the pointer is the address of a function and is never written through.
unsafe impl Sync for Symbol {}

/// Returns the driver's return value.
pub(crate) fn driver(answer: Answer) -> c_int {
    answer.err().map_or(0, |code| code.0)
}

/// Returns cuBLAS's return value.
pub(crate) fn cublas(answer: Answer) -> c_int {
    answer.err().map_or(0, Code::cublas)
}

/// Returns cuDNN's return value.
pub(crate) fn cudnn(answer: Answer) -> c_int {
    answer.err().map_or(0, Code::cudnn)
}

/// Returns NCCL's return value.
pub(crate) fn nccl(answer: Answer) -> c_int {
    answer.err().map_or(0, Code::nccl)
}

/// Returns cuRAND's return value.
pub(crate) fn curand(answer: Answer) -> c_int {
    answer.err().map_or(0, Code::curand)
}

/// Defines functions of the C interface, and the table `EXPORTS` that lists them.
///
/// `family` converts the body's [`Answer`] to the return value of the family. The thread is quiet
/// while a body runs, because the simulator's host allocations do not belong to the workload.
macro_rules! exports {
    ($family:path; $($(#[$meta:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => {
        $(
            $(#[$meta])*
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $name($($arg: $ty),*) -> std::ffi::c_int {
                let _quiet = memcheck_limits::quiet::enter();
                let body = move || -> $crate::code::Answer { $body };
                $family(body())
            }
        )*
        /// The functions of this file.
        pub(crate) static EXPORTS: &[$crate::ffi::Symbol] = &[
            $($crate::ffi::Symbol { name: stringify!($name), address: $name as *const () }),*
        ];
    };
}
pub(crate) use exports;
