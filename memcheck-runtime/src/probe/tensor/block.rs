//! Finds the block of a tensor's storage.

use candle_core::{CpuStorage, Storage};

/// The block of a storage.
#[derive(Debug, Clone, Copy)]
pub(super) struct StorageBlock {
    pub(super) address: u64,
    /// Bytes beyond the contents: a `Vec` can have more capacity than it needs.
    pub(super) spare: u64,
}

impl StorageBlock {
    /// `None` if the address is not known.
    pub(super) fn of(storage: &Storage) -> Option<Self> {
        Some(match storage {
            Storage::Cpu(cpu) => match cpu {
                CpuStorage::U8(v)
                | CpuStorage::F6E2M3(v)
                | CpuStorage::F6E3M2(v)
                | CpuStorage::F4(v)
                | CpuStorage::F8E8M0(v) => Self::of_vec(v),
                CpuStorage::U32(v) => Self::of_vec(v),
                CpuStorage::I16(v) => Self::of_vec(v),
                CpuStorage::I32(v) => Self::of_vec(v),
                CpuStorage::I64(v) => Self::of_vec(v),
                CpuStorage::BF16(v) => Self::of_vec(v),
                CpuStorage::F16(v) => Self::of_vec(v),
                CpuStorage::F32(v) => Self::of_vec(v),
                CpuStorage::F64(v) => Self::of_vec(v),
                CpuStorage::F8E4M3(v) => Self::of_vec(v),
            },
            #[cfg(feature = "cuda")]
            Storage::Cuda(cuda) => Self { address: on_device(cuda)?, spare: 0 },
            _ => return None,
        })
    }

    fn of_vec<T>(vec: &Vec<T>) -> Self {
        let spare = (vec.capacity() - vec.len()) * size_of::<T>();
        Self { address: vec.as_ptr() as u64, spare: spare as u64 }
    }
}

/// The address on the device, read from the memory of the slice. cudarc's `device_ptr` would make
/// streams wait for each other and bind the context, which a probe must not do. The word of the
/// slice that holds the address is found with the ledger: it is the only word that is the address
/// of a live block.
#[cfg(feature = "cuda")]
fn on_device(cuda: &candle_core::CudaStorage) -> Option<u64> {
    use candle_core::cuda_backend::CudaStorageSlice as Slice;
    use candle_core::cuda_backend::cudarc::driver::CudaSlice;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    /// The position of the word for each element type, starting at 1; 0 if it is not known yet.
    // For each element type, because Rust may order the fields of each `CudaSlice<T>` in another
    // way.
    static WORDS: [AtomicUsize; 14] = [const { AtomicUsize::new(0) }; 14];

    fn at<T>(slice: &CudaSlice<T>, known: &AtomicUsize) -> Option<u64> {
        let read = |word: usize| {
            let start = std::ptr::from_ref(slice).cast::<u64>();
            // SAFETY: the word is inside the slice. Padding reads as some number. If that is the
            // address of a live block too, there are two candidates, and none is accepted.
            unsafe { start.add(word).read_volatile() }
        };
        if let Some(word) = known.load(Relaxed).checked_sub(1) {
            return Some(read(word));
        }
        let mut live = (0..size_of::<CudaSlice<T>>() / 8)
            .filter(|&word| memcheck_ledger::size_of(read(word)).is_some());
        let (word, None) = (live.next()?, live.next()) else { return None };
        known.store(word + 1, Relaxed);
        Some(read(word))
    }
    match &cuda.slice {
        Slice::U8(s) => at(s, &WORDS[0]),
        Slice::U32(s) => at(s, &WORDS[1]),
        Slice::I16(s) => at(s, &WORDS[2]),
        Slice::I32(s) => at(s, &WORDS[3]),
        Slice::I64(s) => at(s, &WORDS[4]),
        Slice::BF16(s) => at(s, &WORDS[5]),
        Slice::F16(s) => at(s, &WORDS[6]),
        Slice::F32(s) => at(s, &WORDS[7]),
        Slice::F64(s) => at(s, &WORDS[8]),
        Slice::F8E4M3(s) => at(s, &WORDS[9]),
        Slice::F6E2M3(s) => at(s, &WORDS[10]),
        Slice::F6E3M2(s) => at(s, &WORDS[11]),
        Slice::F4(s) => at(s, &WORDS[12]),
        Slice::F8E8M0(s) => at(s, &WORDS[13]),
    }
}
