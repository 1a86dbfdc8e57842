//! Panics of the command, in any of its threads. They are bugs, which must not look like a failed
//! build (Rust's own exit code for a panic is 101) and must not lose the tests that have ended.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, PanicHookInfo};
use std::sync::Mutex;

use memcheck_core::wire::exit;

use super::error::CommandError;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cargo-memcheck panicked{}: {message}", .place.as_ref().map(|place| format!(" at {place}")).unwrap_or_default())]
pub(crate) struct Panicked {
    message: String,
    /// File, line and column. `None` if the hook is not installed.
    place: Option<String>,
}

impl CommandError for Panicked {
    fn exit_code(&self) -> u8 {
        exit::PANIC
    }

    fn hint(&self) -> Option<String> {
        let to = match option_env!("CARGO_PKG_REPOSITORY").unwrap_or_default() {
            // The address of a manifest without a published repository.
            repository if repository.is_empty() || repository.contains(".invalid") => {
                "to the maintainers of memcheck".to_owned()
            }
            repository => format!("at {repository}/issues"),
        };
        Some(format!(
            "this is a bug of cargo-memcheck {}: report it {to}, with the lines above and the \
             command line (RUST_BACKTRACE=1 adds the calls)",
            env!("CARGO_PKG_VERSION")
        ))
    }
}

static FIRST: Mutex<Option<Panicked>> = Mutex::new(None);

thread_local! {
    static LATEST: RefCell<Option<Panicked>> = const { RefCell::new(None) };
}

/// Keeps the place of each panic, which the payload does not contain. Rust's own hook still prints
/// its lines.
pub(crate) fn listen() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
        let place = info.location().map(ToString::to_string);
        let panicked = Panicked { message: message(info.payload()), place };
        if let Ok(mut first) = FIRST.lock() {
            first.get_or_insert_with(|| panicked.clone());
        }
        LATEST.with(|latest| *latest.borrow_mut() = Some(panicked));
        print(info);
    }));
}

/// The first panic of this process, even if its thread was not waited for.
pub(crate) fn first() -> Option<Panicked> {
    FIRST.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
}

/// The value of `work`, or its panic. The caller must not rely on values that `work` was changing.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Panicked> {
    std::panic::catch_unwind(AssertUnwindSafe(work)).map_err(|payload| {
        let latest = LATEST.with(|latest| latest.borrow_mut().take());
        let panicked = Panicked { message: message(&*payload), place: None };
        // A payload of another thread, which the caller waited for.
        let elsewhere = || first().filter(|first| first.message == panicked.message);
        latest.or_else(elsewhere).unwrap_or(panicked)
    })
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "without a message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_has_its_message_an_exit_code_and_a_next_step() {
        assert_eq!(caught(|| 3), Ok(3));
        let panicked = caught(|| panic!("index {} is out of bounds", 41)).unwrap_err();
        assert!(panicked.to_string().contains("index 41 is out of bounds"), "{panicked}");
        assert_eq!(panicked.exit_code(), exit::PANIC);
        assert!(panicked.hint().unwrap().contains("report it"));
        assert!(caught(|| panic!("text")).unwrap_err().to_string().ends_with("text"));
        let other = caught(|| std::panic::panic_any(7)).unwrap_err();
        assert!(other.to_string().ends_with("without a message"), "{other}");
    }
}
