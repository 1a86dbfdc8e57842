//! Handles Ctrl-C. After the first signal the children end and the command prints its summary;
//! after a second one the command does not wait for a launcher any more. A thread watches the time,
//! because a command that computes or waits would not end in time by itself.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::ignored::is_ignored;
use memcheck_conduct::supervisor;

use super::{GRACE, LOOK_UP};
use crate::system::temporary;

pub(crate) use memcheck_core::wire::exit::INTERRUPTED;

/// For the command to end by itself after a signal. The rest of a second is for the end of the
/// children, the temporary folders and the last line.
const ORDERLY: Duration = Duration::from_millis(700);
/// The same after a second signal.
const HURRIED: Duration = Duration::from_millis(300);
const TICK: Duration = Duration::from_millis(20);

/// The number of signals that have arrived.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interrupt(Arc<AtomicUsize>);

static LISTENING: OnceLock<Interrupt> = OnceLock::new();
/// The launchers that run, which have [`GRACE`] to end their jobs.
static LAUNCHERS: AtomicUsize = AtomicUsize::new(0);
/// Held while a thread ends the process, so that the main thread does not end it earlier.
static ENDING: Mutex<()> = Mutex::new(());
/// Closes the stream of results if the command could not.
static LAST_LINE: Mutex<Option<fn()>> = Mutex::new(None);

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

    /// `print` is called if the command does not end in time after a signal.
    pub(crate) fn set_last_line(print: fn()) {
        *LAST_LINE.lock().unwrap_or_else(PoisonError::into_inner) = Some(print);
    }

    fn start() -> std::io::Result<Self> {
        let interrupt = Self::default();
        let own = interrupt.clone();
        // `nohup`, or a shell that starts a background job, has made this process ignore a signal.
        let signals = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !is_ignored(*signal));
        let mut signals = Signals::new(signals)?;
        thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for _ in signals.forever() {
                if own.0.fetch_add(1, Ordering::SeqCst) == 0 {
                    let own = own.clone();
                    thread::spawn(move || own.end_in_time());
                }
            }
        })?;
        Ok(interrupt)
    }

    /// Must be called when the command has done its work: does not return if another thread ends
    /// the process.
    pub(crate) fn wait_for_end() {
        drop(ENDING.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn end_in_time(&self) {
        let first = Instant::now();
        let mut second = None;
        loop {
            thread::sleep(TICK);
            if self.is_urgent() {
                second.get_or_insert_with(Instant::now);
            }
            let grace = if LAUNCHERS.load(Ordering::SeqCst) > 0 { GRACE } else { Duration::ZERO };
            let is_late = first.elapsed() > ORDERLY + grace;
            if is_late || second.is_some_and(|second| second.elapsed() > HURRIED) {
                end_now();
            }
        }
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
        self.0.load(Ordering::SeqCst) > 0
    }

    /// After a second signal.
    pub(super) fn is_urgent(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 1
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
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Counts a launcher while it runs.
pub(super) struct LauncherGuard(());

impl LauncherGuard {
    pub(super) fn new() -> Self {
        LAUNCHERS.fetch_add(1, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for LauncherGuard {
    fn drop(&mut self) {
        LAUNCHERS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Other threads still run, so that no lock of theirs may delay the end.
fn end_now() -> ! {
    let _ending = ENDING.lock().unwrap_or_else(PoisonError::into_inner);
    // With `ORDERLY` and the wait for the last line, less than a second.
    supervisor::end_all(Duration::from_millis(150));
    // After the children, which could still write into the folders.
    temporary::remove_all();
    let (done, ended) = mpsc::channel();
    thread::spawn(move || {
        let print = *LAST_LINE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(print) = print {
            print();
        }
        let _ = done.send(());
    });
    let _ = ended.recv_timeout(Duration::from_millis(100));
    // Without the handlers of an exit, because another thread can hold a lock that they need.
    signal_hook::low_level::exit(INTERRUPTED.into())
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
