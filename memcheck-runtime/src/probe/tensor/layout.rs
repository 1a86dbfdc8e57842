//! How candle lays a tensor out in memory, learned from tensors.
//!
//! Everything is found by value: a tensor is made of which number, element
//! type, dimensions and storage are known through candle's interface, and the
//! words that hold them are looked for. A place counts only if it holds in all
//! of them. A candle that is laid out otherwise is learned anew or not at all.

use std::alloc::Layout;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::{Arc, Weak};

use candle_core::{DType, Device, Storage, Tensor};

/// The element types of candle.
pub(super) const DTYPES: [DType; 14] = [
    DType::U8,
    DType::U32,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::BF16,
    DType::F16,
    DType::F32,
    DType::F64,
    DType::F8E4M3,
    DType::F6E2M3,
    DType::F6E3M2,
    DType::F4,
    DType::F8E8M0,
];

/// What a tensor is inside its `Arc`.
type Inner = <Tensor as Deref>::Target;

/// Where things are. Offsets in bytes from the start of the heap block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Learned {
    /// The heap block of a tensor.
    pub(super) block: Layout,
    /// The highest number of a tensor that was made to learn.
    pub(super) latest: u64,
    number: usize,
    dims: usize,
    dtype: usize,
    storage: usize,
    /// From what the storage's pointer points at to the storage itself.
    inside: usize,
}

/// An `Arc`'s strong and weak counts.
const COUNTS: usize = 2 * size_of::<usize>();
/// Owners that a tensor has a moment after it was made.
const OWNERS: u64 = 1 << 20;

/// A value of one word, as that word.
///
/// # Safety
/// `T` must be a plain number where it has the size of one.
pub(super) unsafe fn word_of<T: Copy>(value: &T) -> Option<u64> {
    (size_of::<T>() == 8).then(|| {
        // SAFETY: as large as a word, and a number by this function's contract.
        unsafe { std::ptr::from_ref(value).cast::<u64>().read_unaligned() }
    })
}

/// A tensor of which everything is known.
struct Sample {
    tensor: Tensor,
    address: u64,
}

impl Sample {
    fn new(shape: &[usize], dtype: DType) -> Option<Self> {
        Self::of(Tensor::zeros(shape, dtype, &Device::Cpu).ok()?)
    }

    fn of(tensor: Tensor) -> Option<Self> {
        if size_of::<Tensor>() != 8 {
            return None;
        }
        // SAFETY: as large as a word; a pointer to the heap block, or it is
        // found out below that it is none.
        let address = unsafe { std::ptr::from_ref(&tensor).cast::<u64>().read() };
        let inner = std::ptr::from_ref::<Inner>(&tensor) as u64;
        (inner == address + COUNTS as u64).then_some(Self { tensor, address })
    }

    fn word(&self, offset: usize) -> u64 {
        // SAFETY: `offset` is below the size of the block, which `self.tensor`
        // keeps alive. Padding reads as some number, which then fits no sample.
        unsafe { ((self.address as usize + offset) as *const u64).read_volatile() }
    }

    fn byte(&self, offset: usize) -> u8 {
        // SAFETY: as above.
        unsafe { ((self.address as usize + offset) as *const u8).read_volatile() }
    }

    fn number(&self) -> Option<u64> {
        // SAFETY: `TensorId` is one number that is drawn from a counter.
        unsafe { word_of(&self.tensor.id()) }
    }

    fn storage(&self) -> u64 {
        let (storage, _) = self.tensor.storage_and_layout();
        std::ptr::from_ref::<Storage>(&storage) as u64
    }
}

/// Learns the layout. `None` where something is not found, or found twice.
pub(super) fn learn() -> Option<Learned> {
    let made = [
        Sample::new(&[3, 5], DType::F32)?,
        Sample::new(&[2, 3, 4], DType::F16)?,
        Sample::new(&[7], DType::U8)?,
        Sample::new(&[1, 2, 3, 4], DType::I64)?,
        Sample::new(&[6, 2], DType::BF16)?,
        Sample::new(&[9, 1], DType::U32)?,
    ];
    // Bytes that a tensor does not use keep what was on the stack of the function that
    // made it: in code that is not optimised, its element type too. Another function
    // leaves other bytes there.
    let reshaped = made
        .iter()
        .map(|sample| Sample::of(sample.tensor.reshape(sample.tensor.shape()).ok()?))
        .collect::<Option<Vec<_>>>()?;
    let samples: Vec<&Sample> = made.iter().chain(&reshaped).collect();
    let size = COUNTS + size_of::<Inner>();
    let align = align_of::<Inner>().max(align_of::<usize>());
    let block = Layout::from_size_align(size, align).ok()?.pad_to_align();
    let words = || (COUNTS..size).step_by(8);
    let only = |places: Vec<usize>| match places.as_slice() {
        [place] => Some(*place),
        _ => None,
    };
    let all = |fits: &dyn Fn(&Sample) -> bool| samples.iter().all(|sample| fits(sample));

    let number = only(
        words().filter(|&at| all(&|sample| sample.number() == Some(sample.word(at)))).collect(),
    )?;
    let dims = only(
        words()
            .filter(|&at| all(&|sample| sample.word(at) == sample.tensor.dims().as_ptr() as u64))
            .collect(),
    )?;
    let dtype = only(
        (COUNTS..size)
            .filter(|&at| all(&|sample| sample.byte(at) == sample.tensor.dtype() as u8))
            .collect(),
    )?;
    let inside = |sample: &Sample, at: usize| {
        sample.storage().checked_sub(sample.word(at)).filter(|inside| *inside <= 64)
    };
    let storage = only(
        words()
            .filter(|&at| {
                let first = inside(samples[0], at);
                first.is_some() && all(&|sample| inside(sample, at) == first)
            })
            .collect(),
    )?;
    let inside = usize::try_from(inside(samples[0], storage)?).ok()?;
    let latest = samples.iter().filter_map(|sample| sample.number()).max()?;
    Some(Learned { block, latest, number, dims, dtype, storage, inside })
}

impl Learned {
    /// The number of the tensor at `address`, if it can be one by everything
    /// that does not lead out of its block.
    ///
    /// # Safety
    /// A live block of [`Learned::block`]'s size begins there.
    pub(super) unsafe fn number(&self, address: u64) -> Option<u64> {
        let word = |offset: usize| {
            // SAFETY: inside the block.
            unsafe { ((address as usize + offset) as *const u64).read_volatile() }
        };
        // SAFETY: inside the block.
        let dtype = unsafe { ((address as usize + self.dtype) as *const u8).read_volatile() };
        let is_pointer = |value: u64| value >= 8 && value.is_multiple_of(8) && value < 1 << 47;
        // A weak count of one: nobody else refers to it without owning it.
        let fits = (0..OWNERS).contains(&word(0))
            && word(8) == 1
            && DTYPES.iter().any(|known| *known as u8 == dtype)
            && is_pointer(word(self.dims))
            && is_pointer(word(self.storage))
            && word(self.storage) > 1 << 12;
        fits.then(|| word(self.number))
    }

    /// The tensor at `address`, owned. `None` where its last owner has left.
    ///
    /// # Safety
    /// The `Arc` of a tensor is there, and its memory stays while this runs.
    pub(super) unsafe fn own(&self, address: u64) -> Option<Tensor> {
        let inside = (address as usize + COUNTS) as *const Inner;
        // SAFETY: the inside of an `Arc`, as `Sample::new` has found. It is not
        // dropped, so it takes nobody's weak count.
        let weak = ManuallyDrop::new(unsafe { Weak::from_raw(inside) });
        // SAFETY: a tensor is an `Arc` of its inside and nothing else: one word
        // that points to this block, as `Sample::new` has found.
        weak.upgrade().map(|owned| unsafe { std::mem::transmute::<Arc<Inner>, Tensor>(owned) })
    }

    /// The storage of the tensor at `address`, past its lock: a thread that holds
    /// the lock may be just this one.
    ///
    /// Only for what never changes in a storage, which is where its bytes are:
    /// candle's operations in place write into them, and replace none.
    ///
    /// # Safety
    /// A tensor is there, and stays while the result is used.
    pub(super) unsafe fn storage<'a>(&self, address: u64) -> &'a Storage {
        // SAFETY: inside the block, as `learn` has found.
        let owner = unsafe { ((address as usize + self.storage) as *const usize).read_volatile() };
        // SAFETY: the storage lies there, inside its own lock, as `learn` has
        // found; the tensor keeps it alive.
        unsafe { &*((owner + self.inside) as *const Storage) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tensor_is_found_in_its_block_again() {
        let learned = learn().expect("this candle is laid out as it was when this was written");
        let sample = Sample::new(&[4, 6, 2], DType::F64).unwrap();
        // SAFETY: the block of a live tensor.
        let (number, tensor, storage) = unsafe {
            (
                learned.number(sample.address),
                learned.own(sample.address).unwrap(),
                std::ptr::from_ref(learned.storage(sample.address)) as u64,
            )
        };
        assert!(number.is_some_and(|number| number > learned.latest));
        assert_eq!((tensor.dims(), tensor.dtype()), (&[4, 6, 2][..], DType::F64));
        assert_eq!(tensor.id(), sample.tensor.id());
        assert_eq!(storage, sample.storage());
    }

    #[test]
    fn other_memory_of_that_size_is_no_tensor() {
        let learned = learn().unwrap();
        for fill in [0u64, 1, 0xFFFF_FFFF_FFFF_FFFF, 0x0001_0001_0001_0001] {
            let other = vec![fill; learned.block.size() / 8];
            // SAFETY: a live block of that size.
            assert_eq!(unsafe { learned.number(other.as_ptr() as u64) }, None);
        }
    }
}
