//! The allocation site of a block: its call stack and scope.
//!
//! Sites are recorded only in a run with attribution. A stack is walked with the unwind tables
//! (`walk`) up to the part that the thread has already walked (`walk::stacks`). The stack gets a number
//! (`contexts`), which the ledger stores for the block. On a system that no walk knows, a site is
//! only a scope (`unknown`).

mod contexts;
#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(memcheck_portable)
)))]
#[path = "unknown.rs"]
mod walk;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    not(memcheck_portable)
))]
mod walk;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

pub use crate::os::executable;
pub use contexts::{Context, context, is_complete};

static ON: AtomicBool = AtomicBool::new(false);

/// Starts to record the sites of blocks.
///
/// # Errors
/// If the system refuses memory for the tables.
pub fn start() -> std::io::Result<()> {
    contexts::map()?;
    walk::prepare();
    ON.store(true, Relaxed);
    Ok(())
}

/// Must be called before blocks of the C heap are counted.
pub(crate) fn prepare_for_c_heap() {
    walk::prepare_for_c_heap();
}

/// Records sites again after [`start`] and [`stop`].
pub fn resume() {
    ON.store(true, Relaxed);
}

/// Stops recording the sites of blocks.
pub fn stop() {
    ON.store(false, Relaxed);
}

/// True if the sites of blocks are recorded.
pub fn is_on() -> bool {
    ON.load(Relaxed)
}

/// The number of the caller's context; 0 if sites are not recorded or if the thread is about to
/// end.
#[inline]
pub fn current_context() -> u32 {
    if ON.load(Relaxed) { walk::current_context() } else { 0 }
}

/// The return addresses of the caller's stack, the innermost first. The caller must be quiet.
pub fn frames() -> Vec<u64> {
    walk::frames()
}

/// The registers of a thread that a signal has interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupted {
    /// The address of the instruction.
    pub ip: u64,
    /// The stack pointer.
    pub sp: u64,
    /// The frame pointer, or what the program uses its register for.
    pub bp: u64,
    /// The return address of a function that has not stored it, on a processor with a register for it.
    pub lr: u64,
}

/// Must be called once before [`interrupted_calls`].
pub fn prepare_for_signals() {
    walk::interrupted::prepare();
}

/// Passes the return addresses of an interrupted thread's stack to `add`, the innermost first. The
/// first one is the address behind the interrupted instruction. For handlers of signals: it takes no
/// lock and allocates nothing.
pub fn interrupted_calls(thread: Interrupted, add: impl FnMut(u64)) {
    walk::interrupted::calls(thread, add);
}

/// Runs `work`. The frames around this call cannot change in the meantime, so that walks do not
/// compare them.
pub fn with_fixed_frames<R>(work: impl FnOnce() -> R) -> R {
    if ON.load(Relaxed) { walk::with_fixed_frames(work) } else { work() }
}
