//! One row of a table makes one probe: the function under its own name, and
//! what it forwards to, the simulated device where that is linked in, else the
//! next definition of the same name.

/// `fn NAME(OUT, size: SIZE, …) in SPACE;` books an allocation, `pitched fn
/// NAME(OUT, pitch, width, height, …)` one in rows, `free fn NAME(ADDRESS, …);`
/// a free. The space `device` is that of the calling thread's current device.
macro_rules! probes {
    ($($kind:ident fn $name:ident($($argument:ident: $type:ty),*) $(in $space:ident)?;)*) => {
        $(
            #[doc = concat!("Probe of `", stringify!($name), "`.")]
            ///
            /// # Safety
            /// As for the function of that name in CUDA's headers.
            #[unsafe(no_mangle)]
            pub(super) unsafe extern "C" fn $name($($argument: $type),*) -> std::ffi::c_int {
                $crate::probe::cuda::next::$kind!($name($($argument),*) $(in $space)?)
            }
        )*

        /// What the probes forward to.
        mod next {
            use super::*;
            $crate::probe::cuda::next::forwards! { $(fn $name($($argument: $type),*);)* }
        }
    };
}

/// The body of a probe that books an allocation of `$size` bytes.
macro_rules! allocation {
    ($name:ident($out:ident, $size:ident $(, $rest:ident)*) in $space:ident) => {
        // SAFETY: the caller keeps the function's contract; on success it has
        // written an address to its first argument.
        unsafe {
            let result = match super::is_refused(super::space::$space, $size) {
                true => super::OUT_OF_MEMORY,
                false => next::$name($out, $size $(, $rest)*),
            };
            super::book(stringify!($name), result, ($out.cast(), $size), super::space::$space())
        }
    };
}

/// The body of a probe that books an allocation of `$height` rows.
macro_rules! pitched {
    ($name:ident($out:ident, $pitch:ident, $width:ident, $height:ident $(, $rest:ident)*) in $space:ident) => {
        // SAFETY: the caller keeps the function's contract; on success it has
        // written an address and the width of a row to its first two arguments.
        unsafe {
            // Rows are not narrower than they were asked for.
            let least = $width.saturating_mul($height);
            let result = match super::is_refused(super::space::$space, least) {
                true => super::OUT_OF_MEMORY,
                false => next::$name($out, $pitch, $width, $height $(, $rest)*),
            };
            let row = if result == super::SUCCESS { $pitch.read() } else { $width };
            let size = row.saturating_mul($height);
            super::book(stringify!($name), result, ($out.cast(), size), super::space::$space())
        }
    };
}

/// The body of a probe that books a free.
macro_rules! free {
    ($name:ident($address:ident $(, $rest:ident)*)) => {
        // SAFETY: the caller keeps the function's contract.
        super::book_free(stringify!($name), $address as u64, || unsafe { next::$name($address $(, $rest)*) })
    };
}

/// Functions that forward to the simulated device.
#[cfg(feature = "sim")]
macro_rules! forwards {
    ($(fn $name:ident($($argument:ident: $type:ty),*);)*) => {
        $(
            #[inline]
            pub(super) unsafe fn $name($($argument: $type),*) -> std::ffi::c_int {
                // SAFETY: the caller keeps the contract of the function that
                // is simulated.
                unsafe { memcheck_sim::hooked::$name($($argument),*) }
            }
        )*
    };
}

/// Functions that look the next definition of their name up, once.
#[cfg(not(feature = "sim"))]
macro_rules! forwards {
    ($(fn $name:ident($($argument:ident: $type:ty),*);)*) => {
        $(
            pub(super) unsafe fn $name($($argument: $type),*) -> std::ffi::c_int {
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
                type Function = unsafe extern "C" fn($($type),*) -> std::ffi::c_int;
                // SAFETY: the symbol of this name has this signature, by the
                // CUDA headers.
                let function: Function = unsafe { std::mem::transmute(next) };
                // SAFETY: the caller keeps the contract of that function.
                unsafe { function($($argument),*) }
            }
        )*
    };
}

pub(super) use {allocation, forwards, free, pitched, probes};
