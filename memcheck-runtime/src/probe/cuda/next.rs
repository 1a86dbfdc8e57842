//! What a probe forwards to: the simulated device where it is linked in, else
//! the next definition of the same name.

/// Defines `pub unsafe extern "C" fn NAME`, which forwards its arguments.
#[cfg(feature = "sim")]
macro_rules! next {
    ($(fn $name:ident($($argument:ident: $kind:ty),*);)*) => {
        $(
            #[allow(non_snake_case, reason = "the driver's own names")]
            #[inline]
            pub(super) unsafe fn $name($($argument: $kind),*) -> std::ffi::c_int {
                // SAFETY: the caller keeps the contract of the function that
                // is simulated.
                unsafe { memcheck_sim::hooked::$name($($argument),*) as std::ffi::c_int }
            }
        )*
    };
}

/// Defines `unsafe fn NAME`, which looks the next definition up once.
#[cfg(not(feature = "sim"))]
macro_rules! next {
    ($(fn $name:ident($($argument:ident: $kind:ty),*);)*) => {
        $(
            #[allow(non_snake_case, reason = "the driver's own names")]
            pub(super) unsafe fn $name($($argument: $kind),*) -> std::ffi::c_int {
                use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};
                static NEXT: AtomicPtr<std::ffi::c_void> = AtomicPtr::new(std::ptr::null_mut());
                let mut next = NEXT.load(Relaxed);
                if next.is_null() {
                    const NAME: &std::ffi::CStr = match std::ffi::CStr::from_bytes_with_nul(
                        concat!(stringify!($name), "\0").as_bytes(),
                    ) {
                        Ok(name) => name,
                        Err(_) => unreachable!(),
                    };
                    // SAFETY: a constant, terminated name; RTLD_NEXT asks for
                    // the definition behind this executable's own.
                    next = unsafe { libc::dlsym(libc::RTLD_NEXT, NAME.as_ptr()) };
                    if next.is_null() {
                        // CUDA_ERROR_NOT_FOUND: the library is not loaded.
                        return 500;
                    }
                    NEXT.store(next, Relaxed);
                }
                type Function = unsafe extern "C" fn($($kind),*) -> std::ffi::c_int;
                // SAFETY: the symbol of this name has this signature, by the
                // CUDA headers.
                let function: Function = unsafe { std::mem::transmute(next) };
                // SAFETY: the caller keeps the contract of that function.
                unsafe { function($($argument),*) }
            }
        )*
    };
}

pub(super) use next;
