//! Generates one probe from each row of a table: the function under its own name, and the function
//! that it forwards to. That is the simulated device's if it is linked, and otherwise the next
//! definition of the same name.

/// A row is `allocation fn NAME(OUT, size: SIZE, …) in SPACE;` for an allocation,
/// `pitched fn NAME(OUT, pitch, width, height, …) in SPACE;` for an allocation in rows, or
/// `free fn NAME(ADDRESS, …);` for a free. The space `device` is the memory of the calling thread's
/// current device. An `ordered` allocation belongs to a graph if its stream is being captured.
/// `capture`, `release`, `trim`, `launch` and those that add a node are the calls about graphs that
/// [`super::graph`] follows.
macro_rules! probes {
    ($($kind:ident fn $name:ident($($argument:ident: $type:ty),*) $(in $space:ident)?;)*) => {
        $(
            #[doc = concat!("Probe of `", stringify!($name), "`.")]
            ///
            /// # Safety
            /// The contract of the function of this name in CUDA's headers applies.
            #[unsafe(no_mangle)]
            pub(super) unsafe extern "C" fn $name($($argument: $type),*) -> std::ffi::c_int {
                $crate::probe::cuda::next::$kind!($name($($argument),*) $(in $space)?)
            }
        )*

        /// The names and addresses of the probes, for a program that loads CUDA at run time.
        #[cfg(all(feature = "sim", not(feature = "candle")))]
        pub(super) fn table() -> Vec<(&'static str, *const std::ffi::c_void)> {
            vec![$((stringify!($name), ($name as *const ()).cast())),*]
        }

        /// The functions to which the probes forward.
        mod next {
            use super::*;
            $crate::probe::cuda::next::forwards! { $(fn $name($($argument: $type),*);)* }
        }
    };
}

/// The body of a probe that records an allocation of `$size` bytes.
macro_rules! allocation {
    ($name:ident($out:ident, $size:ident $(, $rest:ident)*) in $space:ident) => {
        // SAFETY: the caller keeps the contract of the function, which on success has written an
        // address to its first argument.
        unsafe {
            let result = match super::is_refused(super::space::$space, $size) {
                true => super::OUT_OF_MEMORY,
                false => next::$name($out, $size $(, $rest)*),
            };
            let space = super::space::$space();
            super::record_allocation(stringify!($name), result, ($out.cast(), $size), space)
        }
    };
}

/// The body of a probe that records an allocation on a stream.
macro_rules! ordered {
    ($name:ident($out:ident, $size:ident, $stream:ident) in $space:ident) => {
        $crate::probe::cuda::next::ordered!(@ $stream, $name($out, $size, $stream) in $space)
    };
    ($name:ident($out:ident, $size:ident, $pool:ident, $stream:ident) in $space:ident) => {
        $crate::probe::cuda::next::ordered!(@ $stream, $name($out, $size, $pool, $stream) in $space)
    };
    (@ $stream:ident, $name:ident($out:ident, $size:ident, $($rest:ident),*) in $space:ident) => {
        // SAFETY: the caller keeps the contract of the function, which on success has written an
        // address to its first argument.
        unsafe {
            let result = match super::is_refused(super::space::$space, $size) {
                true => super::OUT_OF_MEMORY,
                false => next::$name($out, $size, $($rest),*),
            };
            let space = super::graph::space($stream, super::space::$space());
            super::record_allocation(stringify!($name), result, ($out.cast(), $size), space)
        }
    };
}

/// The body of a probe that records a registration of host memory.
macro_rules! registration {
    ($name:ident($address:ident, $size:ident, $flags:ident) in $space:ident) => {
        // SAFETY: the caller keeps the contract of the function, and `key` is a local.
        unsafe {
            // Never refused, because a registration takes no further memory.
            let result = next::$name($address, $size, $flags);
            let (key, space) = (super::registered($address as u64), super::space::$space());
            super::record_allocation(stringify!($name), result, (&raw const key, $size), space)
        }
    };
}

/// The body of a probe that records the end of a registration.
macro_rules! unregistration {
    ($name:ident($address:ident)) => {
        // SAFETY: the caller keeps the contract of the function.
        super::record_free(stringify!($name), super::registered($address as u64), || unsafe {
            next::$name($address)
        })
    };
}

/// The body of a probe that notes that a stream is being captured.
macro_rules! capture {
    ($name:ident($($argument:ident),*)) => {{
        // Before the call, because another thread can allocate on the stream as soon as it is
        // captured.
        super::graph::begin();
        // SAFETY: the caller keeps the contract of the function.
        unsafe { next::$name($($argument),*) }
    }};
}

/// The body of a probe of a call that adds an allocation to a graph.
macro_rules! allocation_node {
    ($name:ident($node:ident, $graph:ident, $after:ident, $count:ident, $parameters:ident)) => {
        // SAFETY: the caller keeps the contract of the function.
        super::graph::added(stringify!($name), $parameters, || unsafe {
            next::$name($node, $graph, $after, $count, $parameters)
        })
    };
}

/// The body of a probe of a call that adds a node of any type to a graph.
macro_rules! node {
    ($name:ident($($argument:ident),*)) => {{
        let parameters = $crate::probe::cuda::next::last!($($argument),*);
        // SAFETY: the caller keeps the contract of the function.
        super::graph::added_any(stringify!($name), parameters, || unsafe {
            next::$name($($argument),*)
        })
    }};
}

/// The last of several arguments.
macro_rules! last {
    ($last:ident) => { $last };
    ($first:ident, $($rest:ident),+) => { $crate::probe::cuda::next::last!($($rest),+) };
}

/// The body of a probe of a call that can release memory of graphs.
macro_rules! release {
    ($name:ident($($argument:ident),*)) => {
        // SAFETY: the caller keeps the contract of the function.
        super::graph::released(false, || unsafe { next::$name($($argument),*) })
    };
}

/// The body of a probe of a call that releases memory which the next launch takes again.
macro_rules! trim {
    ($name:ident($($argument:ident),*)) => {
        // SAFETY: the caller keeps the contract of the function.
        super::graph::released(true, || unsafe { next::$name($($argument),*) })
    };
}

/// The body of a probe of a call that takes trimmed memory of graphs again.
macro_rules! launch {
    ($name:ident($($argument:ident),*)) => {{
        // SAFETY: the caller keeps the contract of the function.
        let result = unsafe { next::$name($($argument),*) };
        // Whatever the result, because the driver itself is asked which blocks are mapped.
        super::graph::launched();
        result
    }};
}

/// The body of a probe that records an allocation of `$height` rows.
macro_rules! pitched {
    ($name:ident($out:ident, $pitch:ident, $width:ident, $height:ident $(, $rest:ident)*) in $space:ident) => {
        // SAFETY: the caller keeps the contract of the function, which on success has written an
        // address and the width of a row to its first two arguments.
        unsafe {
            // Rows are at least as wide as requested.
            let least = $width.saturating_mul($height);
            let result = match super::is_refused(super::space::$space, least) {
                true => super::OUT_OF_MEMORY,
                false => next::$name($out, $pitch, $width, $height $(, $rest)*),
            };
            // A call that fails writes no width.
            let row = if result == super::SUCCESS { $pitch.read() } else { $width };
            let size = row.saturating_mul($height);
            let space = super::space::$space();
            super::record_allocation(stringify!($name), result, ($out.cast(), size), space)
        }
    };
}

/// The body of a probe that records a free.
macro_rules! free {
    ($name:ident($address:ident $(, $rest:ident)*)) => {
        // SAFETY: the caller keeps the contract of the function.
        super::record_free(stringify!($name), $address as u64, || unsafe { next::$name($address $(, $rest)*) })
    };
}

/// Functions that forward to the simulated device.
#[cfg(feature = "sim")]
macro_rules! forwards {
    ($(fn $name:ident($($argument:ident: $type:ty),*);)*) => {
        $(
            #[inline]
            pub(super) unsafe fn $name($($argument: $type),*) -> std::ffi::c_int {
                // SAFETY: the caller keeps the contract of the function that is simulated.
                unsafe { memcheck_sim::hooked::$name($($argument),*) }
            }
        )*
    };
}

/// Functions that look up the next definition of their name at the first call.
#[cfg(not(feature = "sim"))]
macro_rules! forwards {
    // RTLD_NEXT requests the definition after this executable's own.
    ($($functions:tt)*) => {
        $crate::driver::looked_up! { pub(super) in libc::RTLD_NEXT; $($functions)* }
    };
}

pub(super) use {
    allocation, allocation_node, capture, forwards, free, last, launch, node, ordered, pitched,
    probes, registration, release, trim, unregistration,
};
