//! Modules, functions and launches. [`memcheck_kernels`] has the kernels.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;

use super::{current, device};
use crate::code::{Answer, Code};
use crate::ffi::{self, In, Out, Text, exports, text_of};
use crate::machine::graphs::NodeKind;
use crate::machine::{Function, Handle, Machine, Module, with};
use crate::unsimulated::Unsimulated;
use memcheck_kernels::{Arguments, Image, Parameter, Shape};

/// The part of `CUlaunchConfig` that the simulator reads.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct LaunchConfig {
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared: c_uint,
    stream: Handle,
}

exports! { ffi::driver;
    fn cuModuleLoad(module: Out<Handle>, name: Text) {
        // CUDA_ERROR_FILE_NOT_FOUND.
        let image = std::fs::read(name.get()?).map_err(|_| Code(301))?;
        load(module, Image::of_text(&String::from_utf8_lossy(&image)))
    }

    fn cuModuleLoadData(module: Out<Handle>, image: *const c_void) {
        load_data(module, image)
    }

    fn cuModuleLoadDataEx(
        module: Out<Handle>,
        image: *const c_void,
        _count: c_uint,
        _options: *mut c_int,
        _values: *mut *mut c_void,
    ) {
        load_data(module, image)
    }

    fn cuModuleLoadFatBinary(module: Out<Handle>, image: *const c_void) {
        load_data(module, image)
    }

    fn cuModuleUnload(module: Handle) {
        with(|machine| {
            machine.modules.remove(&module).ok_or(Code::INVALID_HANDLE)?;
            machine.function_names.retain(|(owner, _), _| *owner != module);
            machine.functions.retain(|_, function| function.module != module);
            Ok(())
        })
    }

    fn cuModuleGetFunction(function: Out<Handle>, module: Handle, name: Text) {
        let name = name.get()?;
        function.put(with(|machine| {
            let Module { context, image } =
                machine.modules.get(&module).ok_or(Code::INVALID_HANDLE)?;
            let key = (module, name);
            // Otherwise each look-up of a name would add a function.
            if let Some(&known) = machine.function_names.get(&key) {
                return Ok(known);
            }
            let device = machine.contexts.get(context).ok_or(Code::INVALID_CONTEXT)?.device;
            let (major, minor) = machine.devices[device].spec.card.compute;
            let code = image.find(&key.1, major * 10 + minor).ok_or(Code::NOT_FOUND)?;
            let handle = machine.handle();
            let name = key.1.as_str().into();
            machine.function_names.insert(key, handle);
            machine.functions.insert(handle, Function { module, name, code });
            Ok(handle)
        })?)
    }

    fn cuModuleGetLoadingMode(mode: Out<c_int>) {
        // `CU_MODULE_LAZY_LOADING`, the driver's default.
        mode.put(2)
    }

    fn cuFuncGetModule(module: Out<Handle>, function: Handle) {
        module.put(module_of(function)?)
    }

    fn cuFuncGetAttribute(value: Out<c_int>, attribute: c_int, function: Handle) {
        let module = module_of(function)?;
        // The most threads, bytes of memory, registers, versions and settings. No code is
        // compiled, so that most values are the same for every kernel.
        value.put(match attribute {
            0 => 1024,
            1..=3 => 0,
            4 => 32,
            5 | 6 => compute_version(module)?,
            7..=15 => 0,
            _ => return Err(Code::INVALID_VALUE),
        })
    }

    fn cuFuncSetAttribute(function: Handle, _attribute: c_int, _value: c_int) {
        module_of(function).map(drop)
    }

    fn cuFuncSetCacheConfig(function: Handle, _config: c_int) {
        module_of(function).map(drop)
    }

    fn cuFuncLoad(function: Handle) {
        module_of(function).map(drop)
    }

    fn cuLaunchKernel(
        function: Handle,
        gx: c_uint, gy: c_uint, gz: c_uint,
        bx: c_uint, by: c_uint, bz: c_uint,
        _shared: c_uint,
        stream: Handle,
        arguments: *mut *mut c_void,
        _extra: *mut *mut c_void,
    ) {
        launch(function, [gx, gy, gz], [bx, by, bz], stream, arguments)
    }

    fn cuLaunchKernelEx(
        config: In<LaunchConfig>,
        function: Handle,
        arguments: *mut *mut c_void,
        _extra: *mut *mut c_void,
    ) {
        let config = config.get()?;
        launch(function, config.grid, config.block, config.stream, arguments)
    }

    fn cuLaunchCooperativeKernel(
        function: Handle,
        gx: c_uint, gy: c_uint, gz: c_uint,
        bx: c_uint, by: c_uint, bz: c_uint,
        _shared: c_uint,
        stream: Handle,
        arguments: *mut *mut c_void,
    ) {
        launch(function, [gx, gy, gz], [bx, by, bz], stream, arguments)
    }

    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: Out<c_int>, function: Handle, block: c_int, _shared: usize,
    ) {
        blocks.put(resident_blocks(function, block)?)
    }

    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: Out<c_int>, function: Handle, block: c_int, _shared: usize, _flags: c_uint,
    ) {
        blocks.put(resident_blocks(function, block)?)
    }

    fn cuOccupancyMaxPotentialBlockSize(
        grid: Out<c_int>, block: Out<c_int>, function: Handle,
        _dynamic: *const c_void, _shared: usize, limit: c_int,
    ) {
        potential_block_size(grid, block, function, limit)
    }

    fn cuOccupancyMaxPotentialBlockSizeWithFlags(
        grid: Out<c_int>, block: Out<c_int>, function: Handle,
        _dynamic: *const c_void, _shared: usize, limit: c_int, _flags: c_uint,
    ) {
        potential_block_size(grid, block, function, limit)
    }

    fn cuOccupancyAvailableDynamicSMemPerBlock(
        bytes: Out<usize>, function: Handle, _blocks: c_int, _block: c_int,
    ) {
        module_of(function)?;
        // The memory that a block has without a request for more.
        bytes.put(48 << 10)
    }
}

fn load_data(module: Out<Handle>, image: *const c_void) -> Answer {
    if image.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: the C caller promises that the image is a zero-terminated text or binary code, which
    // starts with another byte.
    let text = unsafe { text_of(image) };
    load(module, text.map_or_else(Image::default, |text| Image::of_text(&text)))
}

fn load(module: Out<Handle>, image: Image) -> Answer {
    module.make(|machine| {
        let context = current::get();
        machine.context(context)?;
        machine.schedule.module()?;
        let handle = machine.handle();
        machine.modules.insert(handle, Module { context, image });
        Ok(handle)
    })
}

fn module_of(function: Handle) -> Answer<Handle> {
    with(|machine| machine.functions.get(&function).map(|it| it.module).ok_or(Code::INVALID_HANDLE))
}

/// Returns the compute capability for which a module is compiled, as PTX and as binary code, in the
/// form 90. It is assumed to be that of the card.
fn compute_version(module: Handle) -> Answer<c_int> {
    with(|machine| {
        let context = machine.modules.get(&module).ok_or(Code::INVALID_HANDLE)?.context;
        let device = machine.context(context)?.device;
        let (major, minor) = machine.devices[device].spec.card.compute;
        Ok(c_int::from(major) * 10 + c_int::from(minor))
    })
}

/// Makes the checks of the driver, and returns the work of a launch with the values of its
/// arguments.
///
/// # Safety
///
/// The arguments must be those of the kernel.
pub(super) unsafe fn kernel_work(
    machine: &Machine,
    function: Handle,
    (grid, block): ([c_uint; 3], [c_uint; 3]),
    arguments: *const *mut c_void,
) -> Answer<impl Fn(&mut Machine) + Send + Sync + use<>> {
    let function = machine.functions.get(&function).ok_or(Code::INVALID_HANDLE)?;
    let name = function.name.clone();
    check_sizes(grid, block)?;
    let work = KernelCall::read(&name, &function.code, arguments)?;
    let image = machine.modules.get(&function.module).map(|module| &module.image);
    let package: Arc<str> = image.and_then(Image::package).unwrap_or_default().into();
    let is_of_candle = image.is_some_and(Image::is_unknown_candle);
    Ok(move |machine: &mut Machine| {
        machine.launched();
        if !work.run(machine, &name, Shape { grid, block }) {
            machine.count_unsimulated(Unsimulated {
                name: &name,
                source: &package,
                allocations: "",
                is_of_candle,
                replaces_candle: false,
            });
        }
    })
}

/// Computes a kernel, or records it for a graph.
fn launch(
    function: Handle,
    grid: [c_uint; 3],
    block: [c_uint; 3],
    stream: Handle,
    arguments: *const *mut c_void,
) -> Answer {
    with(|machine| {
        // SAFETY: the C caller promises that the arguments are those of this kernel.
        let work = unsafe { kernel_work(machine, function, (grid, block), arguments) }?;
        machine.stream_context(stream, current::get())?;
        machine.touch()?;
        machine.submit(stream, NodeKind::Kernel, work);
        Ok(())
    })
}

/// A kernel with its arguments.
enum KernelCall {
    Known(memcheck_kernels::Kernel, Arguments),
    Foreign(Arc<[Parameter]>, Vec<Vec<u8>>),
    Opaque,
}

impl KernelCall {
    fn read(
        name: &str,
        code: &memcheck_kernels::KernelCode,
        arguments: *const *mut c_void,
    ) -> Answer<Self> {
        let parameters = match code {
            memcheck_kernels::KernelCode::Known(kernel) => {
                // SAFETY: the C caller promises that the arguments are those of this kernel.
                let arguments = unsafe { Arguments::read(arguments, kernel.widths()) };
                return Ok(Self::Known(*kernel, arguments.ok_or(Code::INVALID_VALUE)?));
            }
            memcheck_kernels::KernelCode::Parameters(parameters) => Some(parameters.clone()),
            // The program has promised that every launch has arguments of the sizes that it stated.
            memcheck_kernels::KernelCode::Opaque => memcheck_kernels::stated_parameters(name),
        };
        // SAFETY: the C caller promises that the arguments are those of this kernel. Without
        // pointers, the arguments are in a buffer of the caller, which is not read.
        let foreign = parameters.and_then(|parameters| unsafe {
            let values = memcheck_kernels::read_arguments(arguments, &parameters)?;
            Some(Self::Foreign(parameters, values))
        });
        Ok(foreign.unwrap_or(Self::Opaque))
    }

    /// Returns false if the device does not know the code of the kernel.
    fn run(&self, machine: &mut Machine, name: &str, shape: Shape) -> bool {
        match self {
            Self::Known(kernel, arguments) => kernel.launch(machine, shape, *arguments),
            Self::Foreign(parameters, values) => {
                if !memcheck_kernels::launch_registered(machine, name, shape, values) {
                    memcheck_kernels::forget_arguments(machine, parameters, values);
                    return false;
                }
            }
            Self::Opaque => {
                memcheck_kernels::launch_opaque(machine);
                return false;
            }
        }
        true
    }
}

/// Checks the sizes that every device accepts.
pub(crate) fn check_sizes(grid: [c_uint; 3], block: [c_uint; 3]) -> Answer {
    let threads = block.iter().try_fold(1_u32, |all, &n| all.checked_mul(n));
    if grid.contains(&0) || !threads.is_some_and(|threads| (1..=1024).contains(&threads)) {
        return Err(Code::INVALID_VALUE);
    }
    if grid[0] > i32::MAX as c_uint || grid[1] > 65_535 || grid[2] > 65_535 {
        return Err(Code::INVALID_VALUE);
    }
    Ok(())
}

/// Returns the number of blocks of this size that a multiprocessor can hold. Only its limits of
/// threads and blocks count, not registers and shared memory.
fn resident_blocks(function: Handle, block: c_int) -> Answer<c_int> {
    module_of(function)?;
    if !(1..=1024).contains(&block) {
        return Err(Code::INVALID_VALUE);
    }
    with(|machine| {
        let ordinal = machine.context(current::get())?.device;
        let card = machine.devices[ordinal].spec.card;
        // 39 and 106 are the threads and the blocks of a multiprocessor.
        let threads = device::attribute(card, 39, ordinal as c_int)?;
        Ok((threads / block).min(device::attribute(card, 106, ordinal as c_int)?))
    })
}

fn potential_block_size(
    grid: Out<c_int>,
    block: Out<c_int>,
    function: Handle,
    limit: c_int,
) -> Answer {
    let size = if (1..1024).contains(&limit) { limit } else { 1024 };
    let blocks = resident_blocks(function, size)?;
    let multiprocessors = with(|machine| {
        let ordinal = machine.context(current::get())?.device;
        Ok(machine.devices[ordinal].spec.card.multiprocessors as c_int)
    })?;
    grid.put(blocks * multiprocessors)?;
    block.put(size)
}
