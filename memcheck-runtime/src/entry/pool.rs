//! The pools of threads on which candle's CPU backend computes: rayon's and candle's own.

use memcheck_core::limits::Limits;
use memcheck_core::space::Space;
use memcheck_ledger::ThreadCounters;

use crate::device;

/// The pool, with the counters of its threads.
#[derive(Debug)]
pub(super) struct Pool {
    threads: Vec<ThreadCounters>,
}

impl Pool {
    /// Starts the pool, and that of candle. A new worker allocates about 2 KiB for its deque. These bytes belong to the
    /// pool and not to the workload, and their figure would depend on timing if a worker started
    /// during the body. Must be called before the ledger counts.
    pub(super) fn start() -> Self {
        device::start_pool();
        let threads = rayon::broadcast(|_| ThreadCounters::of_this_thread());
        Self { threads: threads.into_iter().flatten().collect() }
    }

    /// The note of a test whose body has allocated judged memory on the one thread of the pool, and
    /// that does not state the number of threads. Nothing is asked of the pool, because the body can
    /// have left a job there that does not end.
    pub(super) fn note(&self, judged: &[Space], limits: &Limits) -> Option<String> {
        let [thread] = self.threads[..] else { return None };
        // Rayon itself allocates small blocks.
        let judged = judged.iter().filter(|space| **space != Space::HostSmall);
        let is_used = judged.map(|&space| thread.allocations(space)).any(|number| number > 0);
        (is_used && limits.threads.value.is_none()).then(|| {
            "the body allocated memory on the threads of rayon's pool, which has one thread in this \
             test: in production it has one for each core, and the peak can be higher; `threads = \
             4` in the attribute, or `--threads 4`, measures it with four"
                .to_owned()
        })
    }
}
