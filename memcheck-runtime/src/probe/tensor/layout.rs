//! Learns the memory layout of candle's tensors from sample tensors.
//!
//! The number, element type, dimensions and storage of each sample are known through candle's
//! interface, and the words of its block are searched for these values. An offset is accepted only
//! if it holds the value in all samples. The layout of another version of candle is therefore
//! either learned or rejected.

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

/// The type of the value in a tensor's `Arc`.
type Inner = <Tensor as Deref>::Target;

/// Offsets of the fields in bytes from the start of the heap block.
#[derive(Debug, Clone, Copy)]
pub(super) struct LearnedLayout {
    /// The layout of a tensor's heap block.
    pub(super) block: Layout,
    /// The highest number of a sample tensor.
    pub(super) latest: u64,
    number: usize,
    dims: usize,
    dtype: usize,
    storage: usize,
    /// The offset of the storage from the address in the field `storage`.
    inside: usize,
}

/// Bytes of the strong and weak counts of an `Arc`.
const COUNTS: usize = 2 * size_of::<usize>();
/// An upper bound of the strong count of a tensor that was just created.
const OWNERS: u64 = 1 << 20;

/// The bits of a value of one word; `None` if the value has another size.
///
/// # Safety
/// If `T` has the size of a `u64`, it must be a plain number.
pub(super) unsafe fn word_of<T: Copy>(value: &T) -> Option<u64> {
    (size_of::<T>() == 8).then(|| {
        // SAFETY: the value is as large as a word, and a number by this function's contract.
        unsafe { std::ptr::from_ref(value).cast::<u64>().read_unaligned() }
    })
}

/// True if an 8-byte word of a program can have this address. On arm64 (`arm`) a program has 48 bits
/// of addresses, or 52, and the upper byte of a pointer can be a tag, which the processor ignores.
/// Elsewhere a system gives only addresses of 47 bits to a program that does not ask for more.
fn is_word_address(value: u64, arm: bool) -> bool {
    const TAG: u64 = 0xFF << 56;
    let (address, bits) = if arm { (value & !TAG, 52) } else { (value, 47) };
    address >= 8 && address.is_multiple_of(8) && address < 1 << bits
}

/// A tensor whose properties are known.
struct Sample {
    tensor: Tensor,
    address: u64,
}

impl Sample {
    fn new(shape: &[usize], dtype: DType) -> Option<Self> {
        Self::from_tensor(Tensor::zeros(shape, dtype, &Device::Cpu).ok()?)
    }

    fn from_tensor(tensor: Tensor) -> Option<Self> {
        if size_of::<Tensor>() != 8 {
            return None;
        }
        // SAFETY: a tensor is as large as a word. The check below ensures that the word is the
        // address of the heap block.
        let address = unsafe { std::ptr::from_ref(&tensor).cast::<u64>().read() };
        let inner = std::ptr::from_ref::<Inner>(&tensor) as u64;
        (inner == address + COUNTS as u64).then_some(Self { tensor, address })
    }

    fn word(&self, offset: usize) -> u64 {
        // SAFETY: `offset` is below the size of the block, which `self.tensor` keeps alive. Padding
        // reads as some number, which does not fit all samples.
        unsafe { ((self.address as usize + offset) as *const u64).read_volatile() }
    }

    fn byte(&self, offset: usize) -> u8 {
        // SAFETY: `offset` is below the size of the block, which `self.tensor` keeps alive.
        unsafe { ((self.address as usize + offset) as *const u8).read_volatile() }
    }

    fn number(&self) -> Option<u64> {
        // SAFETY: `TensorId` is one number that candle takes from a counter.
        unsafe { word_of(&self.tensor.id()) }
    }

    fn storage(&self) -> u64 {
        let (storage, _) = self.tensor.storage_and_layout();
        std::ptr::from_ref::<Storage>(&storage) as u64
    }
}

/// Learns the layout. `None` if a field is not found or has several candidates.
pub(super) fn learn() -> Option<LearnedLayout> {
    let made = [
        Sample::new(&[3, 5], DType::F32)?,
        Sample::new(&[2, 3, 4], DType::F16)?,
        Sample::new(&[7], DType::U8)?,
        Sample::new(&[1, 2, 3, 4], DType::I64)?,
        Sample::new(&[6, 2], DType::BF16)?,
        Sample::new(&[9, 1], DType::U32)?,
    ];
    // Bytes that a tensor does not use keep old contents of the stack of the function that made it.
    // In code that is not optimized these include its element type. Tensors that another function
    // made have other contents there.
    let reshaped = made
        .iter()
        .map(|sample| Sample::from_tensor(sample.tensor.reshape(sample.tensor.shape()).ok()?))
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
        // The counts of the `Arc` and the state of the `RwLock` are in front of the storage.
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
    Some(LearnedLayout { block, latest, number, dims, dtype, storage, inside })
}

impl LearnedLayout {
    /// The `TensorId` of the tensor at `address`. `None` if the contents of the block are not those
    /// of a tensor. Pointers in the block are not followed.
    ///
    /// # Safety
    /// A live block of [`LearnedLayout::block`]'s size must begin at `address`.
    pub(super) unsafe fn number(&self, address: u64) -> Option<u64> {
        let word = |offset: usize| {
            // SAFETY: the offset is inside the block, by this function's contract.
            unsafe { ((address as usize + offset) as *const u64).read_volatile() }
        };
        // SAFETY: the offset is inside the block, by this function's contract.
        let dtype = unsafe { ((address as usize + self.dtype) as *const u8).read_volatile() };
        let is_pointer = |value: u64| is_word_address(value, cfg!(target_arch = "aarch64"));
        // A weak count of one means that no `Weak` reference exists.
        let fits = (0..OWNERS).contains(&word(0))
            && word(8) == 1
            && DTYPES.iter().any(|known| *known as u8 == dtype)
            && is_pointer(word(self.dims))
            && is_pointer(word(self.storage))
            // The dimensions of a scalar are an empty `Vec`, whose pointer is its alignment. A
            // storage always has an address, and none is in the first page.
            && word(self.storage) > 1 << 12;
        fits.then(|| word(self.number))
    }

    /// Takes a reference to the tensor at `address`. `None` if its last owner has dropped it.
    ///
    /// # Safety
    /// The `Arc` of a tensor must be at `address`, and its memory must not be freed during this
    /// call.
    pub(super) unsafe fn upgrade(&self, address: u64) -> Option<Tensor> {
        let inside = (address as usize + COUNTS) as *const Inner;
        // SAFETY: by this function's contract, this is the address of the value in an `Arc`, as
        // `Sample::new` has checked. The `Weak` is not dropped, so the weak count stays correct.
        let weak = ManuallyDrop::new(unsafe { Weak::from_raw(inside) });
        // SAFETY: a tensor consists only of an `Arc` of its inner value: `Sample::new` has checked
        // that it is one word that points to this block.
        weak.upgrade().map(|owned| unsafe { std::mem::transmute::<Arc<Inner>, Tensor>(owned) })
    }

    /// The storage of the tensor at `address`. This ignores the storage's lock, because this thread
    /// itself may hold the lock.
    ///
    /// It must be used only to read the address and the number of the storage's bytes, which never
    /// change: candle's in-place operations write to the bytes and do not replace them.
    ///
    /// # Safety
    /// A tensor must be at `address` and must stay alive while the result is used.
    pub(super) unsafe fn storage<'a>(&self, address: u64) -> &'a Storage {
        // SAFETY: the offset is inside the block, as `learn` has checked.
        let owner = unsafe { ((address as usize + self.storage) as *const usize).read_volatile() };
        // SAFETY: the storage is at this offset inside its lock, as `learn` has checked, and the
        // tensor keeps it alive.
        unsafe { &*((owner + self.inside) as *const Storage) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tensor_is_read_back_from_its_block() {
        let learned = learn().expect("the layout of this candle version is known");
        let sample = Sample::new(&[4, 6, 2], DType::F64).unwrap();
        // SAFETY: this is the block of a live tensor.
        let (number, tensor, storage) = unsafe {
            (
                learned.number(sample.address),
                learned.upgrade(sample.address).unwrap(),
                std::ptr::from_ref(learned.storage(sample.address)) as u64,
            )
        };
        assert!(number.is_some_and(|number| number > learned.latest));
        assert_eq!((tensor.dims(), tensor.dtype()), (&[4, 6, 2][..], DType::F64));
        assert_eq!(tensor.id(), sample.tensor.id());
        assert_eq!(storage, sample.storage());
    }

    #[test]
    fn addresses_of_arm_have_more_bits_and_tags() {
        let [x86, arm] = [false, true].map(|arm| move |value| is_word_address(value, arm));
        for address in [8, 0x5555_5555_0008, 0x7FFF_FFFF_FFF8] {
            assert!(x86(address) && arm(address), "{address:#x}");
        }
        // The addresses of programs and stacks of arm64, and blocks of a heap with tags.
        for address in [0xAAAA_AAAA_0000, 0xFFFF_FFFF_FFF8, 0xB400_FFFF_8000_0010] {
            assert!(!x86(address) && arm(address), "{address:#x}");
        }
        for number in [0, 4, 0x1234_5678_9ABC_DEF1, 0x0010_0000_0000_0000, u64::MAX] {
            assert!(!x86(number) && !arm(number), "{number:#x}");
        }
    }

    #[test]
    fn other_memory_of_that_size_is_not_a_tensor() {
        let learned = learn().unwrap();
        for fill in [0u64, 1, 0xFFFF_FFFF_FFFF_FFFF, 0x0001_0001_0001_0001] {
            let other = vec![fill; learned.block.size() / 8];
            // SAFETY: this is a live block of that size.
            assert_eq!(unsafe { learned.number(other.as_ptr() as u64) }, None);
        }
    }
}
