//! Calls that are not simulated, and that must not fail silently.
//!
//! The first call of each function prints its name. Every call returns the API's "not supported"
//! error. The tables of names are in `unsupported/`, one per library.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

static REFUSED: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// Records that the program called `name`.
pub(crate) fn refuse(name: &'static str) {
    let _quiet = memcheck_limits::quiet::enter();
    let first = REFUSED.lock().unwrap_or_else(PoisonError::into_inner).insert(name);
    if first {
        eprintln!("memcheck-sim: {name} is not simulated");
    }
}

/// Returns the functions that were called although they are not simulated, sorted.
///
/// Do not trust the figures of a process with such calls, because on a device the program would
/// have taken another branch.
pub fn unsupported_calls() -> Vec<&'static str> {
    let _quiet = memcheck_limits::quiet::enter();
    REFUSED.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
}

/// Defines functions that refuse, and the table `EXPORTS` that lists them.
///
/// The functions do not declare their parameters. This is sound because in the C calling
/// conventions the caller removes the arguments.
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
