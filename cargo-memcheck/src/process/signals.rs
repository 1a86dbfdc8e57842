//! Ctrl-C: the first one ends the children and prints the summary so far, the
//! second one ends us at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::LOOK_UP;

/// The exit code after a signal, as shells expect it.
pub(crate) const INTERRUPTED: u8 = 130;

/// Whether a signal has come.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

/// What this process listens to, once it does.
static LISTENING: OnceLock<Interrupt> = OnceLock::new();

impl Interrupt {
    /// Listens for SIGINT, SIGTERM and SIGHUP. There is one of each for all of
    /// the process: whoever asks first starts to listen.
    pub(crate) fn listen() -> std::io::Result<Self> {
        match LISTENING.get() {
            Some(interrupt) => Ok(interrupt.clone()),
            None => Self::start().map(|interrupt| LISTENING.get_or_init(|| interrupt).clone()),
        }
    }

    /// Whether a signal has come that this process listens to.
    pub(crate) fn has_come() -> bool {
        LISTENING.get().is_some_and(Self::is_set)
    }

    fn start() -> std::io::Result<Self> {
        let interrupt = Self::default();
        let ignored = ignored();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // `nohup`, or a shell that starts us in the background, has said not to.
            if ignored >> (signal - 1) & 1 == 1 {
                continue;
            }
            // In this order: the shutdown looks at what an earlier signal has set.
            signal_hook::flag::register_conditional_shutdown(
                signal,
                INTERRUPTED.into(),
                Arc::clone(&interrupt.0),
            )?;
            signal_hook::flag::register(signal, Arc::clone(&interrupt.0))?;
        }
        Ok(interrupt)
    }

    /// Waits until a signal comes or the other end of `done` is dropped; whether it came.
    pub(crate) fn comes_before(done: &Receiver<()>) -> bool {
        loop {
            match done.recv_timeout(LOOK_UP) {
                Err(RecvTimeoutError::Timeout) if Self::has_come() => return true,
                Err(RecvTimeoutError::Timeout) | Ok(()) => {}
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
    }

    /// Whether a signal has come.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// What came of work that cargo did. `None` where it failed and a signal had
    /// come: cargo was sent the same one, and its failure is no news.
    pub(crate) fn outlived<T, E>(&self, work: Result<T, E>) -> Result<Option<T>, E> {
        match work {
            Err(_) if self.is_set() => Ok(None),
            work => work.map(Some),
        }
    }

    /// As if a signal had come.
    #[cfg(test)]
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// The signals that were ignored when this process began, as a mask; none where the
/// system does not say.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_no_news_where_a_signal_came() {
        let interrupt = Interrupt::default();
        assert_eq!(interrupt.outlived::<u8, &str>(Err("the build")), Err("the build"));
        interrupt.set();
        assert_eq!(interrupt.outlived::<u8, &str>(Err("the build")), Ok(None));
        assert_eq!(interrupt.outlived::<u8, &str>(Ok(1)), Ok(Some(1)));
    }
}
