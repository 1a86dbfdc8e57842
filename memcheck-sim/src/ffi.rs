//! The border to C: parameters that are checked before they are used, and the
//! macros that give a Rust body its C name.
//!
//! A pointer comes in as [`Out`], [`In`] or [`Text`], transparent wrappers that
//! only a C caller can fill. That caller has promised, by calling a CUDA
//! function, that a pointer is null or good for what the function documents;
//! null is checked here, once. So the rooms of the simulator are safe code.

use std::ffi::{CStr, c_char, c_int};

use crate::code::{Answer, Code};

/// A result parameter, `T*`.
#[repr(transparent)]
pub(crate) struct Out<T>(*mut T);

impl<T> Out<T> {
    /// # Safety
    ///
    /// `pointer` is null or valid for writing one `T` while the call lasts.
    pub(crate) unsafe fn new(pointer: *mut T) -> Self {
        Self(pointer)
    }

    /// Stores the result, which must be wanted.
    pub(crate) fn put(self, value: T) -> Answer {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        self.offer(value);
        Ok(())
    }

    /// Stores the result if it is wanted.
    pub(crate) fn offer(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: not null, so writable, by the promise made to `new` or by
            // the C caller.
            unsafe { self.0.write(value) };
        }
    }

    /// The pointer itself, where C declares an array.
    pub(crate) fn address(self) -> *mut T {
        self.0
    }

    pub(crate) fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// The same parameter, where C declares `void*` and the type depends on
    /// another one.
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
        // SAFETY: not null, and the C caller says that `capacity` bytes are
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

impl<T: Copy> In<T> {
    pub(crate) fn get(self) -> Answer<T> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: not null, so readable, by the promise of the C caller.
        Ok(unsafe { self.0.read() })
    }

    /// The same parameter, where C declares `void*` and the type depends on
    /// another one.
    pub(crate) fn cast<U>(self) -> In<U> {
        In(self.0.cast())
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
        // SAFETY: not null, so zero-terminated, by the promise of the C caller.
        Ok(unsafe { CStr::from_ptr(self.0) }.to_string_lossy().into_owned())
    }
}

/// A function of the C interface under its name: what [`crate::link`] holds.
#[derive(Clone, Copy)]
pub(crate) struct Symbol {
    pub(crate) name: &'static str,
    pub(crate) address: *const (),
}

// SAFETY: the address of a function; it is never written through.
unsafe impl Sync for Symbol {}

/// The return value of a driver function.
pub(crate) fn driver(answer: Answer) -> c_int {
    answer.err().map_or(0, |code| code.0)
}

/// The return value of a cuBLAS function.
pub(crate) fn cublas(answer: Answer) -> c_int {
    answer.err().map_or(0, Code::cublas)
}

/// The return value of a cuRAND function.
pub(crate) fn curand(answer: Answer) -> c_int {
    answer.err().map_or(0, Code::curand)
}

/// Defines functions of the C interface and the table `EXPORTS` of them.
///
/// `family` turns the body's [`Answer`] into the family's return value. While a
/// body runs the thread is quiet: what the simulator allocates on the host is
/// not the workload's.
macro_rules! exports {
    ($family:path; $($(#[$meta:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => {
        $(
            $(#[$meta])*
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $name($($arg: $ty),*) -> std::ffi::c_int {
                let _quiet = memcheck_core::quiet::enter();
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
