//! Modules, functions and launches. Kernels do nothing.
//!
//! The simulator does not read the image of a module. It assumes that the image contains every
//! name.

use std::ffi::{c_int, c_uint, c_void};

use super::{current, device, stream};
use crate::code::{Answer, Code};
use crate::ffi::{self, In, Out, Text, exports};
use crate::machine::{Handle, with};

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
        let name = name.get()?;
        if std::path::Path::new(&name).exists() { load(module) } else { Err(Code(301)) }
    }

    fn cuModuleLoadData(module: Out<Handle>, image: *const c_void) {
        if image.is_null() { Err(Code::INVALID_VALUE) } else { load(module) }
    }

    fn cuModuleLoadDataEx(
        module: Out<Handle>,
        image: *const c_void,
        _count: c_uint,
        _options: *mut c_int,
        _values: *mut *mut c_void,
    ) {
        if image.is_null() { Err(Code::INVALID_VALUE) } else { load(module) }
    }

    fn cuModuleLoadFatBinary(module: Out<Handle>, image: *const c_void) {
        if image.is_null() { Err(Code::INVALID_VALUE) } else { load(module) }
    }

    fn cuModuleUnload(module: Handle) {
        with(|machine| {
            machine.modules.remove(&module).ok_or(Code::INVALID_HANDLE)?;
            machine.functions.retain(|(owner, _), _| *owner != module);
            machine.function_modules.retain(|_, owner| *owner != module);
            Ok(())
        })
    }

    fn cuModuleGetFunction(function: Out<Handle>, module: Handle, name: Text) {
        let name = name.get()?;
        function.put(with(|machine| {
            machine.modules.get(&module).ok_or(Code::INVALID_HANDLE)?;
            let fresh = machine.handle();
            let handle = *machine.functions.entry((module, name)).or_insert(fresh);
            machine.function_modules.insert(handle, module);
            Ok(handle)
        })?)
    }

    fn cuModuleGetLoadingMode(mode: Out<c_int>) {
        mode.put(2)
    }

    fn cuFuncGetModule(module: Out<Handle>, function: Handle) {
        module.put(module_of(function)?)
    }

    fn cuFuncGetAttribute(value: Out<c_int>, attribute: c_int, function: Handle) {
        let module = module_of(function)?;
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
        _arguments: *mut *mut c_void,
        _extra: *mut *mut c_void,
    ) {
        launch(function, [gx, gy, gz], [bx, by, bz], stream)
    }

    fn cuLaunchKernelEx(
        config: In<LaunchConfig>,
        function: Handle,
        _arguments: *mut *mut c_void,
        _extra: *mut *mut c_void,
    ) {
        let config = config.get()?;
        launch(function, config.grid, config.block, config.stream)
    }

    fn cuLaunchCooperativeKernel(
        function: Handle,
        gx: c_uint, gy: c_uint, gz: c_uint,
        bx: c_uint, by: c_uint, bz: c_uint,
        _shared: c_uint,
        stream: Handle,
        _arguments: *mut *mut c_void,
    ) {
        launch(function, [gx, gy, gz], [bx, by, bz], stream)
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
        bytes.put(48 << 10)
    }
}

fn load(module: Out<Handle>) -> Answer {
    module.put(with(|machine| {
        let context = current::get();
        machine.context(context)?;
        machine.schedule.module()?;
        let handle = machine.handle();
        machine.modules.insert(handle, context);
        Ok(handle)
    })?)
}

fn module_of(function: Handle) -> Answer<Handle> {
    with(|machine| machine.function_modules.get(&function).copied().ok_or(Code::INVALID_HANDLE))
}

/// Returns the compute capability for which a module is compiled, as PTX and as binary code, in the
/// form 90. It is assumed to be that of the card.
fn compute_version(module: Handle) -> Answer<c_int> {
    with(|machine| {
        let context = *machine.modules.get(&module).ok_or(Code::INVALID_HANDLE)?;
        let device = machine.context(context)?.device;
        let (major, minor) = machine.devices[device].spec.card.compute;
        Ok(c_int::from(major) * 10 + c_int::from(minor))
    })
}

/// Makes the checks of the driver before a launch.
fn launch(function: Handle, grid: [c_uint; 3], block: [c_uint; 3], stream: Handle) -> Answer {
    module_of(function)?;
    check_sizes(grid, block)?;
    stream::touch(stream)?;
    with(|machine| {
        machine.launched();
        Ok(())
    })
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
