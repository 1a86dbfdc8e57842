//! Calls that are not simulated: never silent.
//!
//! The first call of each prints its name, and each call gives the API's "not
//! supported". The tables of names are in `unsupported/`, one per library.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

static REFUSED: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// Notes that the program called `name`.
pub(crate) fn refuse(name: &'static str) {
    let _quiet = memcheck_core::quiet::enter();
    let first = REFUSED.lock().unwrap_or_else(PoisonError::into_inner).insert(name);
    if first {
        eprintln!("memcheck-sim: {name} is not simulated");
    }
}

/// The functions that were called although they are not simulated, sorted.
///
/// A figure from a process with such calls is not to be trusted: the program
/// took a road that it would not take on a device.
pub fn unsupported_calls() -> Vec<&'static str> {
    let _quiet = memcheck_core::quiet::enter();
    REFUSED.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
}

/// Defines functions that refuse, and the table `EXPORTS` of them.
///
/// Whatever the parameters are, they stay unread: in the C calling conventions
/// it is the caller that clears them away.
macro_rules! unsupported {
    ($code:literal; $($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $name() -> std::ffi::c_int {
                $crate::refused::refuse(stringify!($name));
                $code
            }
        )*
        pub(crate) static EXPORTS: &[$crate::ffi::Symbol] = &[
            $($crate::ffi::Symbol { name: stringify!($name), address: $name as *const () }),*
        ];
    };
}
pub(crate) use unsupported;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_call_is_listed_once() {
        refuse("cuNothing");
        refuse("cuNothing");
        assert_eq!(unsupported_calls().iter().filter(|&&name| name == "cuNothing").count(), 1);
    }
}
