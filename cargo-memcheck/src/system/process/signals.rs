//! Handles Ctrl-C: the first signal ends the children and prints the summary so far, the second one
//! ends this process at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::LOOK_UP;

/// As shells expect it.
pub(crate) const INTERRUPTED: u8 = 130;

#[derive(Debug, Clone, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

static LISTENING: OnceLock<Interrupt> = OnceLock::new();

impl Interrupt {
    /// The handlers of SIGINT, SIGTERM and SIGHUP belong to the whole process, so that all callers
    /// share one flag.
    pub(crate) fn listen() -> std::io::Result<Self> {
        match LISTENING.get() {
            Some(interrupt) => Ok(interrupt.clone()),
            None => Self::start().map(|interrupt| LISTENING.get_or_init(|| interrupt).clone()),
        }
    }

    pub(crate) fn has_come() -> bool {
        LISTENING.get().is_some_and(Self::is_set)
    }

    fn start() -> std::io::Result<Self> {
        let interrupt = Self::default();
        let ignored = ignored();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // `nohup`, or a shell that starts a background job, has made this process ignore the
            // signal.
            if ignored >> (signal - 1) & 1 == 1 {
                continue;
            }
            // The shutdown must be registered first, because it checks whether an earlier signal
            // has set the flag.
            signal_hook::flag::register_conditional_shutdown(
                signal,
                INTERRUPTED.into(),
                Arc::clone(&interrupt.0),
            )?;
            signal_hook::flag::register(signal, Arc::clone(&interrupt.0))?;
        }
        Ok(interrupt)
    }

    /// True if a signal arrived, false if the other end of `done` was dropped.
    pub(crate) fn comes_before(done: &Receiver<()>) -> bool {
        loop {
            match done.recv_timeout(LOOK_UP) {
                Err(RecvTimeoutError::Timeout) if Self::has_come() => return true,
                Err(RecvTimeoutError::Timeout) | Ok(()) => {}
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// `None` after a signal, which cargo received too, so that its failure need not be reported.
    pub(crate) fn outlived<T, E>(&self, work: Result<T, E>) -> Result<Option<T>, E> {
        match work {
            Err(_) if self.is_set() => Ok(None),
            work => work.map(Some),
        }
    }

    #[cfg(test)]
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// The signals that were ignored when this process started. Empty if the system does not provide
/// the mask.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_after_a_signal_is_not_reported() {
        let interrupt = Interrupt::default();
        assert_eq!(interrupt.outlived::<u8, &str>(Err("the build")), Err("the build"));
        interrupt.set();
        assert_eq!(interrupt.outlived::<u8, &str>(Err("the build")), Ok(None));
        assert_eq!(interrupt.outlived::<u8, &str>(Ok(1)), Ok(Some(1)));
    }
}
