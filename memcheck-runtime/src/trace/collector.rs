//! The collector: a thread that takes events from the queue until the last event.

use std::thread::JoinHandle;
use std::time::Duration;

use memcheck_ledger::events::{self, Event};

use super::{Log, Trace, largest};
use crate::{os, quiet_thread};

#[derive(Debug)]
pub(crate) struct Collector(JoinHandle<Trace>);

/// Starts a thread that takes events. If `log` is given, the events of its space are also stored in
/// it.
///
/// # Errors
/// If the system refuses the queue or the thread.
pub(crate) fn start(log: Option<Log>) -> std::io::Result<Collector> {
    events::map()?;
    disable_in_children();
    let thread = quiet_thread::spawn("memcheck-trace", move || {
        let _guard = PanicGuard;
        collect(log)
    })?;
    // After the thread has started, because a full queue waits for it.
    events::record(true);
    Ok(Collector(thread))
}

/// Reports that the collector has ended if it panics, so that other threads do not wait for it.
struct PanicGuard;

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            mark_ended();
        }
    }
}

extern "C" fn mark_ended() {
    events::abandon();
}

/// Switches the trace off in forked children, which have no collector and must not wait for one.
fn disable_in_children() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        os::in_forked_children(mark_ended);
    });
}

impl Collector {
    /// Ends the trace and returns it. `None` if the collector's thread panicked.
    pub(crate) fn finish(self) -> Option<Trace> {
        // In this order, because no event is pushed once recording is off.
        events::push(|| Event::End);
        events::record(false);
        self.0.join().ok()
    }
}

/// The pause of the collector when the queue is empty. A workload does not fill the queue in this
/// time.
const PAUSE: Duration = Duration::from_millis(2);

/// The number of events after which a collector that never pauses answers questions.
const BUSY: u64 = 1 << 14;

fn collect(log: Option<Log>) -> Trace {
    let mut trace = Trace::new(log);
    loop {
        let Some(event) = events::take(trace.events) else {
            // PERF: wakes up seldom and then takes many events, because on a machine with two cores
            // the collector can take time from the workload whenever it wakes up.
            largest::answer(&trace);
            std::thread::sleep(PAUSE);
            continue;
        };
        trace.take(event);
        if trace.events.is_multiple_of(BUSY) {
            largest::answer(&trace);
        }
        if event == Event::End {
            return trace;
        }
    }
}
