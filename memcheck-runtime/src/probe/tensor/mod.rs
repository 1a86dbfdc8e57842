//! The tensors of candle, as they come and go: which block is which tensor.
//!
//! A block knows its bytes; its shape, its element type, whether it is part of
//! a graph and whether only a view of it is left, the tensor knows. candle has
//! no hook there, but every tensor is an `Arc` of a structure of one size: in
//! a run with attribution a host block of that size and alignment may be one.
//! It is looked at when its thread allocates or frees the next time (by then it
//! is written, and still alive), and is taken for a tensor only if everything
//! about it fits, above all its number, which candle draws from a counter and
//! which no other memory holds twice.
//!
//! The layout is candle's own business, so it is learned at the start from
//! tensors made for it (`layout`). Where it cannot be learned, there are no
//! shapes, and the report says so.

mod layout;

use std::alloc::Layout;
use std::cell::Cell;
use std::collections::HashMap;
use std::mem::ManuallyDrop;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use candle_core::{CpuStorage, DType, Storage};
use memcheck_core::attribution::{HeldBy, Tensor};
use memcheck_core::quiet;

use crate::intern::{Interner, mix};
use crate::ledger;
use crate::ledger::table::{Table, Words};
use crate::scope;
use layout::Learned;

static ON: AtomicBool = AtomicBool::new(false);
static LAYOUT: OnceLock<Learned> = OnceLock::new();
/// Tensors that are live: address -> the block, and what it is to the block.
static TENSORS: Table = Table::new();
/// Types of tensor; as many as a block's origin has room for.
static TYPES: Interner = Interner::new((1 << 16) - 1, 1 << 20);
/// The highest number of a tensor so far.
static LATEST: AtomicU64 = AtomicU64::new(0);

/// Devices of candle in the order in which tensors on them were first seen:
/// number and iteration.
static DEVICES: [(AtomicU64, AtomicU64); 256] =
    [const { (AtomicU64::new(0), AtomicU64::new(0)) }; 256];

thread_local! {
    /// What may be a tensor, and was not looked at yet.
    static PENDING: Cell<u64> = const { Cell::new(0) };
    /// The number of the last tensor of this thread.
    static LAST: Cell<u64> = const { Cell::new(0) };
}

/// Starts to follow tensors. `false` where their layout is not understood.
///
/// # Errors
/// When the system refuses memory for the tables.
pub(crate) fn start() -> std::io::Result<bool> {
    TENSORS.map()?;
    TYPES.map()?;
    let learned = LAYOUT.get().copied().or_else(layout::learn);
    let Some(learned) = learned else { return Ok(false) };
    LATEST.store(learned.latest, Relaxed);
    let _ = LAYOUT.set(learned);
    ON.store(true, Relaxed);
    Ok(true)
}

/// Stops to follow tensors.
pub(crate) fn stop() {
    ON.store(false, Relaxed);
}

#[inline]
fn layout() -> Option<&'static Learned> {
    if ON.load(Relaxed) { LAYOUT.get() } else { None }
}

/// A host block was allocated.
#[inline]
pub(crate) fn allocated(address: u64, of: Layout) {
    let Some(learned) = layout() else { return };
    settle();
    if of == learned.block {
        PENDING.with(|pending| pending.set(address));
        TENSORS.insert(address, [0, 0]);
    }
}

/// A host block is about to be freed.
#[inline]
pub(crate) fn freed(address: u64, of: Layout) {
    let Some(learned) = layout() else { return };
    settle();
    if of == learned.block {
        TENSORS.remove(address);
    }
}

/// Looks at what may have become a tensor since this thread's last event.
#[inline]
pub(crate) fn settle() {
    if !ON.load(Relaxed) || quiet::is_quiet() {
        return;
    }
    let address = PENDING.with(|pending| pending.replace(0));
    if address != 0
        && let Some(learned) = LAYOUT.get()
    {
        let _quiet = quiet::enter();
        look(address, learned);
        scope::needed();
    }
}

/// Of a live tensor: bits beside the bytes that it sees of its block.
const WHOLE: u64 = 1 << 48;
const GRAPH: u64 = 1 << 49;
const VARIABLE: u64 = 1 << 50;
const BYTES: u64 = WHOLE - 1;

fn look(address: u64, learned: &Learned) {
    // Freed by another thread meanwhile: then it is not ours to read.
    let mut is_live = false;
    TENSORS.update(address, |words| {
        is_live = true;
        words
    });
    let newest = LAST.with(Cell::get);
    if !is_live {
        return;
    }
    // SAFETY: a live block of the layout's size that its thread has written.
    let Some(number) = (unsafe { learned.number(address) }) else { return };
    // Numbers only rise; one that was seen before stands in memory that has
    // been used again and is not written yet.
    let known = LATEST.load(Relaxed);
    if number <= newest || number > known + FAR {
        return;
    }
    LAST.with(|last| last.set(number));
    LATEST.fetch_max(number, Relaxed);
    // SAFETY: by its number and all that `number` has checked, this is the
    // inside of an `Arc` that a tensor of this thread holds. It is read, and
    // never dropped.
    let tensor = unsafe { learned.tensor(address) };
    // SAFETY: the tensor is new: nobody writes to its storage.
    let storage = unsafe { learned.storage(address) };
    note_device(&tensor);
    let Some(block) = block_of(storage) else { return };
    let bytes = (tensor.elem_count() * tensor.dtype().size_in_bytes()) as u64;
    // A transposed tensor sees all of its block, and so does a reshaped one.
    let whole = ledger::size_of(block) == Some(bytes);
    if whole {
        ledger::shaped(block, number_of(tensor.dims(), tensor.dtype()));
    }
    let flag = |condition: bool, bit: u64| if condition { bit } else { 0 };
    let what = bytes.min(BYTES)
        | flag(whole, WHOLE)
        | flag(tensor.track_op() && !tensor.is_variable(), GRAPH)
        | flag(tensor.is_variable(), VARIABLE);
    TENSORS.update(address, |_| [block, what]);
}

/// Numbers that may be drawn by other threads between two looks.
const FAR: u64 = 1 << 24;

/// Where the bytes of a storage are.
fn block_of(storage: &Storage) -> Option<u64> {
    Some(match storage {
        Storage::Cpu(cpu) => match cpu {
            CpuStorage::U8(v)
            | CpuStorage::F6E2M3(v)
            | CpuStorage::F6E3M2(v)
            | CpuStorage::F4(v)
            | CpuStorage::F8E8M0(v) => v.as_ptr() as u64,
            CpuStorage::U32(v) => v.as_ptr() as u64,
            CpuStorage::I16(v) => v.as_ptr() as u64,
            CpuStorage::I32(v) => v.as_ptr() as u64,
            CpuStorage::I64(v) => v.as_ptr() as u64,
            CpuStorage::BF16(v) => v.as_ptr() as u64,
            CpuStorage::F16(v) => v.as_ptr() as u64,
            CpuStorage::F32(v) => v.as_ptr() as u64,
            CpuStorage::F64(v) => v.as_ptr() as u64,
            CpuStorage::F8E4M3(v) => v.as_ptr() as u64,
        },
        #[cfg(feature = "cuda")]
        Storage::Cuda(cuda) => on_device(cuda),
        _ => return None,
    })
}

#[cfg(feature = "cuda")]
fn on_device(cuda: &candle_core::CudaStorage) -> u64 {
    use candle_core::cuda_backend::CudaStorageSlice as Slice;
    use candle_core::cuda_backend::cudarc::driver::{CudaSlice, DevicePtr};
    fn at<T>(slice: &CudaSlice<T>) -> u64 {
        slice.device_ptr(slice.stream()).0
    }
    match &cuda.slice {
        Slice::U8(s) | Slice::F6E2M3(s) | Slice::F6E3M2(s) | Slice::F4(s) | Slice::F8E8M0(s) => {
            at(s)
        }
        Slice::U32(s) => at(s),
        Slice::I16(s) => at(s),
        Slice::I32(s) => at(s),
        Slice::I64(s) => at(s),
        Slice::BF16(s) => at(s),
        Slice::F16(s) => at(s),
        Slice::F32(s) => at(s),
        Slice::F64(s) => at(s),
        Slice::F8E4M3(s) => at(s),
    }
}

fn number_of(dims: &[usize], dtype: DType) -> u16 {
    let words = || dims.iter().map(|&dim| dim as u64);
    let hash = words().fold(mix(1, dtype as u64), mix);
    // The element type first, then the dimensions.
    let mut all = [0u64; 9];
    let Some(room) = all.get_mut(1..=dims.len()) else { return 0 };
    for (to, dim) in room.iter_mut().zip(words()) {
        *to = dim;
    }
    all[0] = dtype as u64;
    let number = TYPES.number(hash, all[..=dims.len()].iter().copied());
    u16::try_from(number).unwrap_or(0)
}

/// The type of tensor with this number.
pub(crate) fn named(number: u16) -> Option<Tensor> {
    let words = TYPES.words(number.into())?;
    let (dtype, shape) = words.split_first()?;
    let dtype = layout::DTYPES.iter().find(|known| **known as u64 == *dtype)?;
    Some(Tensor { shape: shape.to_vec(), dtype: dtype.as_str().to_owned() })
}

/// What the live tensors say of the blocks that they see.
pub(crate) fn held() -> HashMap<u64, HeldBy> {
    let mut held: HashMap<u64, HeldBy> = HashMap::new();
    TENSORS.each(|_, [block, what]: Words| {
        if block == 0 {
            return;
        }
        let by = held.entry(block).or_default();
        if what & WHOLE != 0 {
            by.whole += 1;
        } else {
            by.views += 1;
            by.view_bytes = by.view_bytes.max(what & BYTES);
        }
        by.graph += u64::from(what & GRAPH != 0);
        by.variables += u64::from(what & VARIABLE != 0);
    });
    held
}

#[cfg(feature = "cuda")]
fn note_device(tensor: &ManuallyDrop<candle_core::Tensor>) {
    let candle_core::Device::Cuda(cuda) = tensor.device() else { return };
    // SAFETY: `DeviceId` is one number that is drawn from a counter.
    let number = unsafe { layout::word_of(&cuda.id()) };
    let Some(number) = number.map(|number| number + 1) else { return };
    for (known, birth) in &DEVICES {
        match known.compare_exchange(0, number, Relaxed, Relaxed) {
            Ok(_) => return birth.store(ledger::iteration().into(), Relaxed),
            Err(other) if other == number => return,
            Err(_) => {}
        }
    }
}

#[cfg(not(feature = "cuda"))]
fn note_device(_tensor: &ManuallyDrop<candle_core::Tensor>) {}

/// Devices on which tensors were first seen in iteration `first` or later.
pub(crate) fn devices_since(first: u32) -> u64 {
    let opened = DEVICES.iter().filter(|(number, birth)| {
        number.load(Relaxed) != 0 && birth.load(Relaxed) >= u64::from(first)
    });
    opened.count() as u64
}
