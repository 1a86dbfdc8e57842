//! The return types of test bodies and iterations.

use std::fmt::Debug;

/// A return value of a test body or of one iteration: `()`, or a `Result<(), E>` whose error
/// implements `Debug`.
pub trait Returned: Sized {
    /// The value of a body that has completed.
    fn done() -> Self;
    /// True if the value is an error, which ends the iterations.
    fn is_error(&self) -> bool;
    /// The error as text.
    ///
    /// # Errors
    /// If the value is an error.
    fn report(self) -> Result<(), String>;
}

impl Returned for () {
    fn done() -> Self {}

    fn is_error(&self) -> bool {
        false
    }

    fn report(self) -> Result<(), String> {
        Ok(())
    }
}

impl<E: Debug> Returned for Result<(), E> {
    fn done() -> Self {
        Ok(())
    }

    fn is_error(&self) -> bool {
        self.is_err()
    }

    fn report(self) -> Result<(), String> {
        // Formatting an error can resolve a backtrace, for which std allocates tens of MiB and
        // never frees them. They are not the workload's memory.
        let _quiet = memcheck_core::quiet::enter();
        self.map_err(|error| format!("{error:?}"))
    }
}

/// The text of a panic.
pub(crate) fn panic_message(payload: &(dyn std::any::Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}
