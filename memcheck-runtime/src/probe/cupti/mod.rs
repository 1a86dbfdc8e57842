//! Memory that libraries allocate on a GPU for themselves, as reported by CUPTI: cuBLAS's
//! workspaces and variables of modules. The probes do not see it.
//!
//! CUPTI is opened at run time (`library`). Its activity records of kind `MEMORY2` contain every
//! allocation and release of the process, and from CUDA 12.6 on also the library that made it. Only
//! a run with attribution uses CUPTI, because CUPTI allocates memory that would appear in NVML's
//! figure. No record covers contexts and code: they are the remainder.

mod library;

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::{Mutex, OnceLock, PoisonError};

use memcheck_core::measurement::driver::CuptiBlock;
use memcheck_core::quiet;
use memcheck_core::space::Space;
use memcheck_ledger as ledger;

use library::Library;

/// The reason why the memory of libraries cannot be itemized.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum CuptiUnavailable {
    #[error("{0} was not found")]
    NotFound(String),
    /// The simulated toolkit does not contain the library.
    #[cfg(feature = "sim")]
    #[error("the simulated toolkit has no CUPTI: `MEMCHECK_SIM_NVML` is not set")]
    NoLibrary,
    #[cfg(feature = "sim")]
    #[error("{0}")]
    Simulated(#[from] memcheck_sim::NvmlError),
    #[error("libcupti has no function {0}")]
    NoFunction(&'static str),
    #[error("{call} returned {error}")]
    Refused {
        call: &'static str,
        /// CUPTI's name of the error.
        error: String,
    },
    /// Records were lost, so that the list of blocks is incomplete.
    #[error("CUPTI dropped {0} record{plural}", plural = if *.0 == 1 { "" } else { "s" })]
    Dropped(usize),
}

/// The common start of `CUpti_ActivityMemory2`, `CUpti_ActivityMemory3` and
/// `CUpti_ActivityMemory4`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Memory {
    kind: u32,
    operation: u32,
    memory_kind: u32,
    correlation: u32,
    address: u64,
    bytes: u64,
    timestamp: u64,
    pc: u64,
    process: u32,
    device: u32,
    context: u32,
    stream: u32,
    name: *const c_char,
    is_async: u32,
    padding: u32,
    pool_type: u32,
}

/// The offset of `source` in `CUpti_ActivityMemory4`, in bytes.
const SOURCE: usize = 120;
/// `CUPTI_ACTIVITY_KIND_MEMORY2`.
const MEMORY2: u32 = 49;
/// `CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION`.
const ALLOCATION: u32 = 1;
/// `CUPTI_ACTIVITY_MEMORY_KIND_…` of memory on a device.
const DEVICE: u32 = 3;
const ARRAY: u32 = 4;
const DEVICE_STATIC: u32 = 6;
/// Bytes of a buffer, which has room for about five hundred records.
const BUFFER: usize = 64 << 10;

/// The latest record of an address: its timestamp, and the block, or `None` after a release.
type Known = (u64, Option<Allocation>);

/// A block that was allocated.
#[derive(Debug, Clone)]
struct Allocation {
    bytes: u64,
    pooled: bool,
    fixed: bool,
    source: Option<String>,
}

/// The latest records, by device and address.
static KNOWN: Mutex<BTreeMap<(u32, u64), Known>> = Mutex::new(BTreeMap::new());
/// The library, after it was found.
static LIBRARY: OnceLock<Library> = OnceLock::new();

/// An active CUPTI listener.
#[derive(Debug)]
pub(crate) struct Listener {
    library: &'static Library,
}

/// Begins to listen. Must be called before the first context is created, because later records
/// would not include the allocations that libraries make with the context.
pub(crate) fn start() -> Result<Listener, CuptiUnavailable> {
    let found = match LIBRARY.get() {
        Some(library) => library,
        None => {
            let library = Library::open()?;
            LIBRARY.get_or_init(|| library)
        }
    };
    found.register(request, complete)?;
    // Before the first record, because an earlier one would not name its library.
    found.enable_sources();
    found.enable(MEMORY2)?;
    Ok(Listener { library: found })
}

impl Listener {
    /// Stops listening and returns the blocks that are live on the device of `space`.
    pub(crate) fn finish(self, space: Space) -> Result<Vec<CuptiBlock>, CuptiUnavailable> {
        let Space::Cuda(ordinal) = space else { return Ok(Vec::new()) };
        // In this order, so that no record comes after the flush, and the count of lost ones is
        // final.
        self.library.disable(MEMORY2)?;
        self.library.flush()?;
        match self.library.dropped() {
            0 => {}
            count => return Err(CuptiUnavailable::Dropped(count)),
        }
        let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let of_device = known.range((u32::from(ordinal), 0)..=(u32::from(ordinal), u64::MAX));
        Ok(of_device
            .filter_map(|((_, address), (_, allocation))| Some((*address, allocation.clone()?)))
            .map(|(address, Allocation { bytes, pooled, fixed, source })| CuptiBlock {
                bytes,
                pooled,
                tracked: ledger::size_of(address).is_some(),
                fixed,
                source,
            })
            .collect())
    }
}

/// CUPTI's callback that requests a buffer. The buffer comes from the C library, whose memory the
/// probes do not count.
unsafe extern "C" fn request(buffer: *mut *mut u8, size: *mut usize, most: *mut usize) {
    // SAFETY: `malloc` returns memory that is aligned for every type, or null. With null, CUPTI
    // drops its records and counts them.
    let room = unsafe { libc::malloc(BUFFER) };
    // SAFETY: CUPTI passes three pointers that are valid for writes.
    unsafe {
        buffer.write(room.cast());
        size.write(if room.is_null() { 0 } else { BUFFER });
        // 0 means as many records as fit.
        most.write(0);
    }
}

/// CUPTI's callback that returns a buffer. It can run on any thread, including CUPTI's own.
unsafe extern "C" fn complete(
    _context: *mut c_void,
    _stream: u32,
    buffer: *mut u8,
    _size: usize,
    valid: usize,
) {
    let _quiet = quiet::enter();
    if let Some(library) = LIBRARY.get()
        && !buffer.is_null()
    {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let mut record: *mut u8 = std::ptr::null_mut();
        while library.next(buffer, valid, &mut record) {
            // SAFETY: CUPTI has put a record there, whose first member is its kind.
            let kind = unsafe { record.cast::<u32>().read_unaligned() };
            if kind == MEMORY2 {
                // SAFETY: a record of this kind begins as `Memory` does, in every version of CUPTI
                // that has it.
                let memory = unsafe { record.cast::<Memory>().read_unaligned() };
                // A record of an older CUPTI ends before this member.
                let source = library.has_sources().then(|| {
                    // SAFETY: if CUPTI can name sources, its record contains this pointer.
                    unsafe { record.add(SOURCE).cast::<*const c_char>().read_unaligned() }
                });
                store(&mut known, &memory, source.and_then(text));
            }
        }
    }
    // SAFETY: the buffer is the one that `request` returned.
    unsafe { libc::free(buffer.cast()) };
}

/// Copies a string of CUPTI; `None` if the pointer is null or the string is empty.
fn text(pointer: *const c_char) -> Option<String> {
    if pointer.is_null() {
        return None;
    }
    // SAFETY: the pointer is not null. CUPTI's strings have a terminator and live until the buffer
    // that refers to them is returned.
    let text = unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned();
    (!text.is_empty()).then_some(text)
}

/// Stores a record. Buffers of several threads arrive in any order, so the record with the latest
/// timestamp of an address is kept.
fn store(known: &mut BTreeMap<(u32, u64), Known>, memory: &Memory, source: Option<String>) {
    // Host memory is not a part of the figure that the records itemize.
    if ![DEVICE, ARRAY, DEVICE_STATIC].contains(&memory.memory_kind) {
        return;
    }
    let allocation = (memory.operation == ALLOCATION).then_some(Allocation {
        bytes: memory.bytes,
        pooled: memory.pool_type != 0,
        fixed: memory.memory_kind == DEVICE_STATIC,
        source,
    });
    let last = known.entry((memory.device, memory.address)).or_insert((0, None));
    if memory.timestamp >= last.0 {
        *last = (memory.timestamp, allocation);
    }
}

/// A function of CUPTI that takes only a number.
type NumberFunction = unsafe extern "C" fn(u32) -> c_int;

#[cfg(test)]
mod tests {
    use super::*;

    fn record(operation: u32, memory_kind: u32, address: u64, timestamp: u64) -> Memory {
        Memory {
            kind: MEMORY2,
            operation,
            memory_kind,
            correlation: 0,
            address,
            bytes: 100 * address,
            timestamp,
            pc: 0,
            process: 1,
            device: 0,
            context: 1,
            stream: 0,
            name: std::ptr::null(),
            is_async: 0,
            padding: 0,
            pool_type: 0,
        }
    }

    #[test]
    fn the_fields_of_a_record_are_at_the_offsets_of_cuptis_headers() {
        use std::mem::offset_of;
        let offsets = [
            offset_of!(Memory, address),
            offset_of!(Memory, timestamp),
            offset_of!(Memory, device),
            offset_of!(Memory, name),
            offset_of!(Memory, pool_type),
        ];
        assert_eq!(offsets, [16, 32, 52, 64, 80]);
    }

    #[test]
    fn the_latest_record_of_an_address_wins_in_any_order_of_arrival() {
        let mut known = BTreeMap::new();
        let mut store = |operation, kind, address, time| {
            super::store(&mut known, &record(operation, kind, address, time), None);
        };
        // Released at 5, although the record of its allocation arrives later.
        store(2, DEVICE, 1, 5);
        store(1, DEVICE, 1, 4);
        // Allocated again after its release.
        store(1, DEVICE, 2, 1);
        store(2, DEVICE, 2, 2);
        store(1, DEVICE_STATIC, 2, 3);
        // Pinned memory of the host.
        store(1, 2, 3, 1);
        let live: Vec<_> = known
            .iter()
            .filter_map(|((_, address), (_, allocation))| Some((*address, allocation.as_ref()?)))
            .map(|(address, allocation)| (address, allocation.bytes, allocation.fixed))
            .collect();
        assert_eq!(live, [(2, 200, true)]);
    }
}
