//! Takes events from the queue, on a thread of its own, until there are no more.

use std::sync::atomic::Ordering::SeqCst;
use std::thread::JoinHandle;
use std::time::Duration;

use super::{Event, Log, Trace, ring};
use crate::aside;

/// The collector at work.
#[derive(Debug)]
pub(crate) struct Collector(JoinHandle<Trace>);

/// Starts to take events, those of one space into a log.
///
/// # Errors
/// When the system refuses the queue or the thread.
pub(crate) fn start(log: Option<Log>) -> std::io::Result<Collector> {
    ring::map()?;
    forget_in_children();
    let thread = aside::spawn("memcheck-trace", move || {
        let _gone = GoneIfPanicking;
        collect(log)
    })?;
    super::ON.store(true, SeqCst);
    Ok(Collector(thread))
}

/// Lets nobody wait for a collector that has died.
struct GoneIfPanicking;

impl Drop for GoneIfPanicking {
    fn drop(&mut self) {
        if std::thread::panicking() {
            gone();
        }
    }
}

extern "C" fn gone() {
    super::ON.store(false, SeqCst);
    super::GONE.store(true, SeqCst);
}

/// A forked child has no collector: it must not wait for one.
fn forget_in_children() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler stores to an atomic, which is allowed after fork.
        unsafe { libc::pthread_atfork(None, None, Some(gone)) };
    });
}

impl Collector {
    /// Takes no more events and returns what was made of them.
    /// `None` where the thread died: nothing is known then.
    pub(crate) fn finish(self) -> Option<Trace> {
        super::push(|| Event::End);
        super::ON.store(false, SeqCst);
        self.0.join().ok()
    }
}

/// How long the collector rests when it has taken everything: a workload does
/// not fill the queue meanwhile.
const PAUSE: Duration = Duration::from_millis(2);

fn collect(log: Option<Log>) -> Trace {
    let mut trace = Trace::new(log);
    loop {
        let Some(event) = ring::take(trace.events) else {
            // PERF: seldom, and then much at once: on a machine of two cores
            // every waking is one that the workload may have to make room for.
            std::thread::sleep(PAUSE);
            continue;
        };
        trace.take(event);
        if event == Event::End {
            return trace;
        }
    }
}
