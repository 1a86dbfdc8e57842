//! What the device counts of its own work.

#[cfg(feature = "simulated")]
pub(crate) use memcheck_sim::statistics;

/// The counters of the simulated device that are read here.
#[cfg(not(feature = "simulated"))]
#[derive(Debug, Default)]
pub(crate) struct Statistics {
    pub(crate) launches: u64,
    pub(crate) unknown_reads: u64,
    pub(crate) outside: u64,
}

/// A real GPU counts nothing.
#[cfg(not(feature = "simulated"))]
pub(crate) fn statistics() -> Statistics {
    Statistics::default()
}
