//! Host functions for kernels of the program's own PTX, which the simulated device cannot run.

use std::fmt;

/// Registers the host function of a kernel, so that its results are known on the simulated device.
/// On other devices the call has no effect.
///
/// The function is found by the kernel's `name`, in every module whose PTX states the sizes of its
/// parameters. `name` can also be a launcher: a function in C of the program's CUDA code, which
/// starts kernels. Its arguments are those of the C function, and a stream is one of them. Kernels
/// of candle are not replaced. A later function replaces an earlier one.
///
/// The function computes a whole launch. If it returns `None` or panics, all memory that the
/// launch's arguments point to becomes unknown. It runs while the simulated device is locked, so
/// that it must not use a tensor on that device.
///
/// ```no_run
/// memcheck_runtime::register_kernel("scale", |launch| {
///     // __global__ void scale(const float* from, float* to, float factor, unsigned count)
///     let (factor, count) = (launch.value::<f32>(2)?, launch.value::<u32>(3)?);
///     let numbers = launch.read::<f32>(0, count as usize)?;
///     let scaled: Vec<f32> = numbers.into_iter().map(|number| number * factor).collect();
///     launch.write(1, &scaled)
/// });
/// ```
pub fn register_kernel(
    name: &str,
    compute: impl Fn(&mut KernelLaunch<'_>) -> Option<()> + Send + Sync + 'static,
) {
    #[cfg(feature = "sim")]
    memcheck_sim::register_kernel(name, move |launch| compute(&mut KernelLaunch { launch }));
    #[cfg(not(feature = "sim"))]
    let _ = (name, compute);
}

/// The same for a kernel whose module does not state the sizes of its parameters, such as one of a
/// template that a build script compiles from CUDA C, because the build for the simulated device
/// has no compiler. `sizes` are the bytes of each parameter.
///
/// # Safety
/// Every launch of a kernel with this name must pass one argument for each of `sizes`, with at
/// least so many bytes.
pub unsafe fn register_kernel_with(
    name: &str,
    sizes: &[usize],
    compute: impl Fn(&mut KernelLaunch<'_>) -> Option<()> + Send + Sync + 'static,
) {
    // SAFETY: the caller makes the same promise.
    #[cfg(feature = "sim")]
    unsafe {
        memcheck_sim::register_kernel_with(name, sizes, move |launch| {
            compute(&mut KernelLaunch { launch })
        });
    }
    #[cfg(not(feature = "sim"))]
    let _ = (name, sizes, compute);
}

/// A launch of a kernel, as its host function sees it. Arguments are numbered from 0.
pub struct KernelLaunch<'a> {
    launch: &'a mut dyn Launch,
}

/// The launch of the simulated device. Another device has none.
trait Launch {
    fn grid(&self) -> [u32; 3];
    fn block(&self) -> [u32; 3];
    fn argument(&self, number: usize) -> Option<&[u8]>;
    fn read(&self, address: u64, length: usize) -> Option<Vec<u8>>;
    fn write(&mut self, address: u64, bytes: &[u8]) -> Option<()>;
}

#[cfg(feature = "sim")]
impl Launch for memcheck_sim::HostLaunch<'_> {
    fn grid(&self) -> [u32; 3] {
        self.grid()
    }

    fn block(&self) -> [u32; 3] {
        self.block()
    }

    fn argument(&self, number: usize) -> Option<&[u8]> {
        self.argument(number)
    }

    fn read(&self, address: u64, length: usize) -> Option<Vec<u8>> {
        self.read(address, length)
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Option<()> {
        self.write(address, bytes)
    }
}

impl fmt::Debug for KernelLaunch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (grid, block) = (self.grid(), self.block());
        f.debug_struct("KernelLaunch").field("grid", &grid).field("block", &block).finish()
    }
}

impl KernelLaunch<'_> {
    /// The numbers of blocks along x, y and z; ones for a launcher.
    pub fn grid(&self) -> [u32; 3] {
        self.launch.grid()
    }

    /// The numbers of threads in a block along x, y and z; ones for a launcher.
    pub fn block(&self) -> [u32; 3] {
        self.launch.block()
    }

    /// The value of an argument; `None` if there is no such argument, or if it has another size.
    pub fn value<T: KernelElement>(&self, number: usize) -> Option<T> {
        let bytes = self.launch.argument(number)?;
        (bytes.len() == size_of::<T>()).then(|| T::from_bytes(bytes))
    }

    /// Reads `count` elements that a pointer argument points to; `None` if one of them is unknown,
    /// or not in the block that the pointer points into.
    pub fn read<T: KernelElement>(&self, number: usize, count: usize) -> Option<Vec<T>> {
        let length = count.checked_mul(size_of::<T>())?;
        let bytes = self.launch.read(self.value(number)?, length)?;
        Some(bytes.chunks_exact(size_of::<T>()).map(T::from_bytes).collect())
    }

    /// Writes elements to the place that a pointer argument points to. `None` if they do not fit
    /// into the block that the pointer points into, or if a limit of `values` does not permit it.
    pub fn write<T: KernelElement>(&mut self, number: usize, elements: &[T]) -> Option<()> {
        let address = self.value(number)?;
        let mut bytes = Vec::with_capacity(size_of_val(elements));
        elements.iter().for_each(|element| element.append_to(&mut bytes));
        self.launch.write(address, &bytes)
    }
}

/// A type of kernel arguments and elements. Half-precision numbers are their bits, as a `u16`.
pub trait KernelElement: Copy + sealed::ElementBytes {}

mod sealed {
    pub trait ElementBytes {
        /// Reads an element from bytes of its size.
        fn from_bytes(bytes: &[u8]) -> Self;
        fn append_to(self, to: &mut Vec<u8>);
    }
}

macro_rules! elements {
    ($($type:ty),*) => {$(
        impl KernelElement for $type {}

        impl sealed::ElementBytes for $type {
            fn from_bytes(bytes: &[u8]) -> Self {
                Self::from_ne_bytes(bytes.try_into().expect("an element has its own size"))
            }

            fn append_to(self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_ne_bytes());
            }
        }
    )*};
}

elements! { u8, i8, u16, i16, u32, i32, u64, i64, f32, f64 }

#[cfg(test)]
mod tests {
    use super::*;

    /// A pointer to one block at address 8, and a number.
    struct Fake {
        arguments: [Vec<u8>; 2],
        block: Vec<u8>,
    }

    impl Launch for Fake {
        fn grid(&self) -> [u32; 3] {
            [2, 1, 1]
        }

        fn block(&self) -> [u32; 3] {
            [32, 1, 1]
        }

        fn argument(&self, number: usize) -> Option<&[u8]> {
            self.arguments.get(number).map(Vec::as_slice)
        }

        fn read(&self, address: u64, length: usize) -> Option<Vec<u8>> {
            let first = usize::try_from(address.checked_sub(8)?).ok()?;
            self.block.get(first..first.checked_add(length)?).map(<[u8]>::to_vec)
        }

        fn write(&mut self, address: u64, bytes: &[u8]) -> Option<()> {
            let first = usize::try_from(address.checked_sub(8)?).ok()?;
            self.block.get_mut(first..first.checked_add(bytes.len())?)?.copy_from_slice(bytes);
            Some(())
        }
    }

    #[test]
    fn arguments_and_elements_have_types() {
        let pointer = 8_u64.to_ne_bytes().to_vec();
        let mut fake = Fake {
            arguments: [pointer, 2.5_f32.to_ne_bytes().to_vec()],
            block: [1_f32, 2.0].into_iter().flat_map(f32::to_ne_bytes).collect(),
        };
        let mut launch = KernelLaunch { launch: &mut fake };
        assert_eq!(launch.value::<f32>(1), Some(2.5));
        assert_eq!((launch.value::<f64>(1), launch.value::<f32>(2)), (None, None));
        assert_eq!(launch.read::<f32>(0, 2), Some(vec![1.0, 2.0]));
        assert_eq!((launch.read::<f32>(0, 3), launch.read::<f64>(0, usize::MAX)), (None, None));
        assert_eq!(launch.write(0, &[3_f32]), Some(()));
        assert_eq!(launch.write(0, &[3_f64, 4.0]), None);
        assert_eq!(launch.read::<f32>(0, 2), Some(vec![3.0, 2.0]));
        assert_eq!(format!("{launch:?}"), "KernelLaunch { grid: [2, 1, 1], block: [32, 1, 1] }");
    }
}
