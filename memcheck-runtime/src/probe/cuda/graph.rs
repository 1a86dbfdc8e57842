//! The memory of CUDA graphs, `cuda:N/graph`.
//!
//! An allocation on a stream that is being captured, or by a node that a program adds, becomes
//! memory of the graph. It outlives its free, because a later launch uses the same address. The
//! ledger therefore keeps such a block until a call after which the driver no longer maps its
//! address: the graph and its executable are destroyed, the executable takes the work of another
//! graph, the graphs of the device are trimmed, or the capture was invalid.
//!
//! Programs without graphs pay for one load of a flag.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use memcheck_core::quiet;
use memcheck_core::space::Space;
use memcheck_ledger as ledger;

use super::{OUT_OF_MEMORY, SUCCESS};
use crate::driver::{cuPointerGetAttribute, cuStreamIsCapturing};

/// `CU_POINTER_ATTRIBUTE_MAPPED`.
const MAPPED: c_int = 13;
/// `CU_STREAM_CAPTURE_STATUS_ACTIVE`.
const ACTIVE: c_int = 1;

/// True once a stream was captured, or memory was added to a graph.
static CAPTURED: AtomicBool = AtomicBool::new(false);

/// `CUDA_MEM_ALLOC_NODE_PARAMS`.
#[repr(C)]
struct AllocationNode {
    kind: c_int,
    handles: c_int,
    location_kind: c_int,
    ordinal: c_int,
    reserved: [u64; 9],
    access: *const c_void,
    access_count: usize,
    bytes: usize,
    /// The result of the call.
    address: u64,
}

/// `CU_GRAPH_NODE_TYPE_MEM_ALLOC`.
const ALLOCATION: c_int = 10;
/// Bytes of `CUgraphNodeParams` in front of the parameters of a type.
const HEADER: usize = 16;

/// A block that was trimmed, so that a launch can take it again.
struct Trimmed {
    space: Space,
    address: u64,
    size: u64,
}

static TRIMMED: Mutex<Vec<Trimmed>> = Mutex::new(Vec::new());

pub(super) fn begin() {
    CAPTURED.store(true, Relaxed);
}

/// The space of a block that was allocated on `stream`: `otherwise`, or that of the graphs of the
/// same device.
#[inline]
pub(super) fn space(stream: *mut c_void, otherwise: Option<Space>) -> Option<Space> {
    match otherwise {
        Some(Space::Cuda(ordinal)) if CAPTURED.load(Relaxed) && is_capturing(stream) => {
            Some(Space::Graph(ordinal))
        }
        _ => otherwise,
    }
}

/// Records an allocation by a node of a graph around the call that adds it.
pub(super) fn added(
    name: &'static str,
    parameters: *mut c_void,
    add: impl FnOnce() -> c_int,
) -> c_int {
    let parameters = parameters.cast::<AllocationNode>();
    if parameters.is_null() {
        return add();
    }
    begin();
    // SAFETY: the pointer is not null, and the caller keeps the contract of the function, so that
    // it is readable.
    let (size, ordinal) = unsafe { ((*parameters).bytes, (*parameters).ordinal) };
    // The node's own device, which need not be that of the thread's current context.
    let ordinal = u16::try_from(ordinal).ok();
    let result = match super::is_refused(|| ordinal.map(Space::Cuda), size) {
        true => OUT_OF_MEMORY,
        false => add(),
    };
    let space = ordinal.map(Space::Graph);
    // SAFETY: as above. On success the call has written an address to the parameters.
    unsafe {
        let address = &raw const (*parameters).address;
        super::record_allocation(name, result, (address, size), space)
    }
}

/// The same around a call that adds a node of any type.
pub(super) fn added_any(
    name: &'static str,
    parameters: *mut c_void,
    add: impl FnOnce() -> c_int,
) -> c_int {
    // SAFETY: the caller keeps the contract of the function, so that parameters start with their
    // type.
    if parameters.is_null() || unsafe { parameters.cast::<c_int>().read() } != ALLOCATION {
        return add();
    }
    added(name, parameters.wrapping_byte_add(HEADER), add)
}

fn is_capturing(stream: *mut c_void) -> bool {
    let mut status = 0;
    // SAFETY: the pointer is to a local int, to which the driver writes one int.
    let result = unsafe { cuStreamIsCapturing(stream, &raw mut status) };
    result == SUCCESS && status == ACTIVE
}

/// True if the driver has memory at `address`.
fn is_mapped(address: u64) -> bool {
    let mut mapped: c_int = 0;
    // SAFETY: the pointer is to a local int, to which the driver writes one int.
    let result = unsafe { cuPointerGetAttribute((&raw mut mapped).cast(), MAPPED, address) };
    result == SUCCESS && mapped != 0
}

/// True if the ledger already has this block of a graph, which a later request of the capture uses.
pub(super) fn has_counted(space: Space, address: u64) -> bool {
    matches!(space, Space::Graph(_)) && ledger::size_of(address).is_some()
}

/// True if `address` is the memory of a graph.
#[inline]
pub(super) fn owns(address: u64) -> bool {
    CAPTURED.load(Relaxed) && matches!(ledger::space_of(address), Some(Space::Graph(_)))
}

/// Calls the driver to free memory of a graph. The block stays live while the driver maps it.
pub(super) fn freed(address: u64, free: impl FnOnce() -> c_int) -> c_int {
    // Taken before the call, because afterwards another thread can get the same address.
    let block = ledger::taken(address);
    let result = free();
    if let Some(block) = block {
        match result != SUCCESS || is_mapped(address) {
            true => ledger::put_back(address, block),
            false => ledger::discarded(block),
        }
    }
    result
}

/// Makes a call that can release memory of graphs, and removes the blocks that it has released.
pub(super) fn released(trims: bool, call: impl FnOnce() -> c_int) -> c_int {
    if !CAPTURED.load(Relaxed) || !ledger::is_armed() {
        return call();
    }
    let quietly = quiet::enter();
    let mut blocks = Vec::new();
    ledger::each(|address, block| {
        if matches!(block.space, Space::Graph(_)) {
            blocks.push(Trimmed { space: block.space, address, size: block.size });
        }
    });
    let blocks: Vec<_> =
        // Before the call, because afterwards another thread can get an address that the call has
        // released.
        blocks.into_iter().filter_map(|it| Some((ledger::taken(it.address)?, it))).collect();
    // Host memory that the driver takes in the call is the program's.
    drop(quietly);
    let result = call();
    let _quiet = quiet::enter();
    for (taken, block) in blocks {
        if is_mapped(block.address) {
            ledger::put_back(block.address, taken);
            continue;
        }
        ledger::discarded(taken);
        if trims {
            TRIMMED.lock().unwrap_or_else(PoisonError::into_inner).push(block);
        }
    }
    result
}

/// Adds the trimmed blocks that a launch has taken again.
pub(super) fn launched() {
    if !CAPTURED.load(Relaxed) || !ledger::is_armed() {
        return;
    }
    let _quiet = quiet::enter();
    TRIMMED.lock().unwrap_or_else(PoisonError::into_inner).retain(|block| {
        let again = is_mapped(block.address);
        // The address can be that of a new block, which is counted.
        if again && ledger::size_of(block.address).is_none() {
            ledger::allocated(block.space, block.address, block.size);
        }
        !again
    });
}
