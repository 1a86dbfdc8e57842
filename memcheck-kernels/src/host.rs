//! Kernels of the program, computed by host functions that it registers.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, PoisonError, RwLock};

use super::arguments::Parameter;
use super::launch::Shape;
use super::memory::Memory;

type Compute = dyn Fn(&mut HostLaunch<'_>) -> Option<()> + Send + Sync;

/// A host function and, if the program has stated their sizes, the kernel's parameters.
#[derive(Clone)]
struct HostKernel {
    parameters: Option<Arc<[Parameter]>>,
    compute: Arc<Compute>,
}

static KERNELS: RwLock<Option<HashMap<String, HostKernel>>> = RwLock::new(None);

/// Registers the host function of a kernel by its name, for modules of PTX that state the sizes of
/// its parameters. A later function replaces an earlier one. Kernels of candle are not replaced.
///
/// The function runs on the thread that launches, while the simulated machine is locked: it must
/// not call a CUDA function. If it returns `None` or panics, every block that an argument points to
/// becomes unknown.
pub fn register_kernel(
    name: &str,
    compute: impl Fn(&mut HostLaunch<'_>) -> Option<()> + Send + Sync + 'static,
) {
    insert(name, HostKernel { parameters: None, compute: Arc::new(compute) });
}

/// Registers the host function of a kernel, also for modules that do not state the sizes of its
/// parameters, such as those of the stand-in compiler.
///
/// # Safety
///
/// Every launch of a kernel with this name must pass one argument for each of `sizes`, with at
/// least so many bytes.
pub unsafe fn register_kernel_with(
    name: &str,
    sizes: &[usize],
    compute: impl Fn(&mut HostLaunch<'_>) -> Option<()> + Send + Sync + 'static,
) {
    let parameters = sizes.iter().map(|&size| Parameter::of_size(size as u64)).collect();
    insert(name, HostKernel { parameters: Some(parameters), compute: Arc::new(compute) });
}

fn insert(name: &str, kernel: HostKernel) {
    let _quiet = memcheck_limits::quiet::enter();
    let mut kernels = KERNELS.write().unwrap_or_else(PoisonError::into_inner);
    kernels.get_or_insert_default().insert(name.to_owned(), kernel);
}

fn find(name: &str) -> Option<HostKernel> {
    KERNELS.read().unwrap_or_else(PoisonError::into_inner).as_ref()?.get(name).cloned()
}

/// Returns the parameters of a kernel, if the program has stated their sizes.
pub fn stated_parameters(name: &str) -> Option<Arc<[Parameter]>> {
    find(name)?.parameters
}

/// Computes a launch with the registered function. Returns false if there is none, or if it cannot
/// compute the launch.
pub(crate) fn launch(
    name: &str,
    memory: &mut dyn Memory,
    shape: Shape,
    parameters: &[Vec<u8>],
) -> bool {
    let Some(kernel) = find(name) else { return false };
    let mut launch = HostLaunch { memory, shape, parameters };
    // A panic must not unwind through the C function that launches.
    let done =
        std::panic::catch_unwind(AssertUnwindSafe(|| (kernel.compute)(&mut launch).is_some()));
    done.unwrap_or_else(|_| {
        eprintln!("memcheck-sim: the host function of the kernel `{name}` panicked: its outputs are unknown");
        false
    })
}

/// A launch of a kernel of the program.
pub struct HostLaunch<'a> {
    memory: &'a mut dyn Memory,
    shape: Shape,
    parameters: &'a [Vec<u8>],
}

impl std::fmt::Debug for HostLaunch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostLaunch").field("shape", &self.shape).finish_non_exhaustive()
    }
}

impl HostLaunch<'_> {
    /// Returns the numbers of blocks along x, y and z.
    pub fn grid(&self) -> [u32; 3] {
        self.shape.grid
    }

    /// Returns the numbers of threads in a block along x, y and z.
    pub fn block(&self) -> [u32; 3] {
        self.shape.block
    }

    /// Returns the bytes of an argument.
    pub fn argument(&self, number: usize) -> Option<&[u8]> {
        self.parameters.get(number).map(Vec::as_slice)
    }

    /// Returns `length` bytes of device, pinned or managed memory; `None` if they are not in one
    /// live block, or if one of them is unknown.
    pub fn read(&self, address: u64, length: usize) -> Option<Vec<u8>> {
        let length = length as u64;
        match self.memory.span(address, length) {
            Some(span) => self.memory.values().bytes(span).map(|bytes| bytes.into_owned()),
            None => self.memory.host_bytes(address, length),
        }
    }

    /// Writes bytes to device, pinned or managed memory. Returns `None` if they are not in one live
    /// block, or if a limit does not permit it; the bytes are then unknown.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Option<()> {
        let length = bytes.len() as u64;
        let is_of_device = self.memory.span(address, length).is_some();
        if !is_of_device {
            self.memory.host_bytes(address, length)?;
        }
        if !self.memory.values_mut().charge(length) {
            self.memory.overwritten(address, length);
            return None;
        }
        self.memory.write_bytes(address, bytes);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::harness::{TestDevice, bytes_of};
    use super::*;

    const SHAPE: Shape = Shape { grid: [2, 1, 1], block: [32, 1, 1] };

    fn arguments(from: u64, to: u64) -> [Vec<u8>; 2] {
        [from, to].map(|address| bytes_of(&address.to_ne_bytes()).to_vec())
    }

    fn address(launch: &HostLaunch<'_>, number: usize) -> u64 {
        u64::from_ne_bytes(launch.argument(number).unwrap().try_into().unwrap())
    }

    #[test]
    fn a_registered_function_reads_and_writes_known_values() {
        register_kernel("tests_twice", |launch| {
            assert_eq!((launch.grid()[0], launch.block()[0]), (2, 32));
            let bytes = launch.read(address(launch, 0), 3)?;
            let twice: Vec<u8> = bytes.iter().map(|byte| byte * 2).collect();
            launch.write(address(launch, 1), &twice)
        });
        let mut device = TestDevice::new();
        let (from, to, unknown) =
            (device.upload(&[1_u8, 2, 3]), device.upload(&[9_u8; 4]), device.allocate(3));
        let memory = &mut device.memory;
        assert!(launch("tests_twice", memory, SHAPE, &arguments(from, to)));
        assert!(!launch("tests_twice", memory, SHAPE, &arguments(unknown, to)));
        // Outside of a block.
        assert!(!launch("tests_twice", memory, SHAPE, &arguments(from, to + 2)));
        assert!(!launch("tests_none", memory, SHAPE, &arguments(from, to)));
        assert_eq!(device.download(to, 4), Some(vec![2_u8, 4, 6, 9]));
    }

    #[test]
    fn a_function_that_panics_computes_nothing() {
        register_kernel("tests_panic", |_| panic!("as expected"));
        let mut device = TestDevice::new();
        assert!(!launch("tests_panic", &mut device.memory, SHAPE, &[]));
        assert_eq!(stated_parameters("tests_panic"), None);
        // SAFETY: the kernel is never launched.
        unsafe { register_kernel_with("tests_sizes", &[8, 4], |_| None) };
        let expected = [8, 4].map(Parameter::of_size);
        assert_eq!(stated_parameters("tests_sizes").as_deref(), Some(&expected[..]));
    }
}
