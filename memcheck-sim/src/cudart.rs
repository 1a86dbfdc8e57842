//! The part of the CUDA runtime API that candle's C code and related code call.
//!
//! It works on the same machine as the driver API, as the real one does. The allocating functions
//! are in `hooked`. They must not call the driver's functions, so that a probe sees each allocation
//! once.

pub(crate) mod forwarded;

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_uint, c_void};

use memcheck_limits::cards::Card;

use crate::code::{Answer, Code, describe};
use crate::driver::current;
use crate::ffi::{Out, Symbol, exports};
use crate::machine::graphs::NodeKind;
use crate::machine::{Handle, Machine, with};
use crate::transfer::End;

thread_local! {
    static LAST_ERROR: Cell<c_int> = const { Cell::new(0) };
}

/// Returns the return value of a runtime function. An error is also stored as the thread's last
/// error.
pub(crate) fn status(answer: Answer) -> c_int {
    let code = answer.err().map_or(0, |code| code.0);
    if code != 0 {
        LAST_ERROR.set(code);
    }
    code
}

/// Returns the runtime's context: the current context or, without one, the primary context of the
/// thread's device, which becomes current.
pub(crate) fn context() -> Answer<Handle> {
    match current::get() {
        0 => {
            let primary = with(|machine| machine.retain_primary(current::runtime_device()))?;
            current::set(primary)?;
            Ok(primary)
        }
        context => Ok(context),
    }
}

pub(crate) fn card() -> Answer<&'static Card> {
    let context = context()?;
    with(|machine| {
        let device = machine.context(context)?.device;
        Ok(machine.devices[device].spec.card)
    })
}

/// `dim3`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Dim3 {
    pub(crate) x: c_uint,
    pub(crate) y: c_uint,
    pub(crate) z: c_uint,
}

impl Dim3 {
    pub(crate) fn sides(self) -> [c_uint; 3] {
        [self.x, self.y, self.z]
    }
}

exports! { status;
    fn cudaGetDevice(device: Out<c_int>) {
        device.put(match current::get() {
            0 => current::runtime_device(),
            context => with(|machine| Ok(machine.context(context)?.device as c_int))?,
        })
    }

    fn cudaSetDevice(device: c_int) {
        let primary = with(|machine| machine.retain_primary(device))?;
        current::set_runtime_device(device);
        current::set(primary)
    }

    fn cudaProfilerStart() {
        Ok(())
    }

    fn cudaProfilerStop() {
        Ok(())
    }

    fn cudaGetDeviceCount(count: Out<c_int>) {
        count.put(with(|machine| Ok(machine.devices.len() as c_int))?)
    }

    fn cudaDeviceGetAttribute(value: Out<c_int>, attribute: c_int, device: c_int) {
        let card = with(|machine| Ok(machine.device(device)?.spec.card))?;
        value.put(crate::driver::attribute(card, attribute, device)?)
    }

    fn cudaDriverGetVersion(version: Out<c_int>) {
        version.put(with(|machine| Ok(machine.schedule.driver()))?)
    }

    fn cudaRuntimeGetVersion(version: Out<c_int>) {
        version.put(crate::driver::VERSION)
    }

    fn cudaDeviceSynchronize() {
        let context = context()?;
        with(|machine| {
            machine.graphs.forbid_unsafe()?;
            machine.synchronize(context)
        })
    }

    fn cudaStreamIsCapturing(stream: Handle, state: Out<c_int>) {
        let context = context()?;
        state.put(with(|machine| {
            machine.stream_context(stream, context)?;
            Ok(machine.graphs.status(stream))
        })?)
    }

    fn cudaStreamSynchronize(stream: Handle) {
        synchronize(stream)
    }

    fn cudaStreamSynchronize_ptsz(stream: Handle) {
        synchronize(stream)
    }

    fn cudaMemGetInfo(free: Out<usize>, total: Out<usize>) {
        let context = context()?;
        let (unused, capacity) = with(|machine| {
            let device = machine.context(context)?.device;
            let memory = &machine.devices[device].memory;
            Ok((memory.free_bytes(), memory.capacity()))
        })?;
        free.put(unused as usize)?;
        total.put(capacity as usize)
    }

    fn cudaMemset(to: u64, value: c_int, count: usize) {
        fill(to, value, count, 0)
    }

    fn cudaMemsetAsync(to: u64, value: c_int, count: usize, stream: Handle) {
        fill(to, value, count, stream)
    }

    fn cudaMemsetAsync_ptsz(to: u64, value: c_int, count: usize, stream: Handle) {
        fill(to, value, count, stream)
    }

    fn cudaMemcpy(to: u64, from: u64, length: usize, kind: c_int) {
        copy(to, from, length, kind, 0)
    }

    fn cudaMemcpyAsync(to: u64, from: u64, length: usize, kind: c_int, stream: Handle) {
        copy(to, from, length, kind, stream)
    }

    fn cudaMemcpyAsync_ptsz(to: u64, from: u64, length: usize, kind: c_int, stream: Handle) {
        copy(to, from, length, kind, stream)
    }

    fn cudaFuncSetAttribute(_function: *const c_void, _attribute: c_int, _value: c_int) {
        Ok(())
    }

    fn cudaLaunchKernel(
        _function: *const c_void,
        _grid: Dim3,
        _block: Dim3,
        _arguments: *mut *mut c_void,
        _shared: usize,
        stream: Handle,
    ) {
        launch(stream, |_| {})
    }

    fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: Out<c_int>, _function: *const c_void, block: c_int, _shared: usize, _flags: c_uint,
    ) {
        if !(1..=1024).contains(&block) {
            return Err(Code::INVALID_VALUE);
        }
        blocks.put(1024 / block)
    }
}

/// Returns the thread's last error and resets it.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cudaGetLastError() -> c_int {
    LAST_ERROR.replace(0)
}

/// Returns the thread's last error.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cudaPeekAtLastError() -> c_int {
    LAST_ERROR.get()
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cudaGetErrorName(code: c_int) -> *const c_char {
    describe(code).map_or(c"unrecognized error code", |(name, _)| name).as_ptr()
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cudaGetErrorString(code: c_int) -> *const c_char {
    describe(code).map_or(c"unrecognized error code", |(_, text)| text).as_ptr()
}

/// The functions that do not return a result code.
pub(crate) static OTHERS: &[Symbol] = &[
    Symbol { name: "cudaGetLastError", address: cudaGetLastError as *const () },
    Symbol { name: "cudaPeekAtLastError", address: cudaPeekAtLastError as *const () },
    Symbol { name: "cudaGetErrorName", address: cudaGetErrorName as *const () },
    Symbol { name: "cudaGetErrorString", address: cudaGetErrorString as *const () },
];

fn synchronize(stream: Handle) -> Answer {
    let context = context()?;
    with(|machine| {
        let context = machine.stream_context(stream, context)?;
        machine.graphs.forbid_wait(stream)?;
        machine.synchronize(context)
    })
}

pub(crate) fn fill(to: u64, value: c_int, count: usize, stream: Handle) -> Answer {
    let context = context()?;
    with(|machine| {
        machine.stream_context(stream, context)?;
        machine.fill_on(stream, to, &[value as u8], count)
    })
}

/// Copies by `cudaMemcpyKind`: host to host, host to device, device to host, device to device, any
/// to any.
fn copy(to: u64, from: u64, length: usize, kind: c_int, stream: Handle) -> Answer {
    let host = |address: u64| End::Host(address as *mut c_void);
    let (to, from) = match kind {
        0 => (host(to), host(from)),
        1 => (End::Device(to), host(from)),
        2 => (host(to), End::Device(from)),
        3 => (End::Device(to), End::Device(from)),
        4 => (End::Any(to), End::Any(from)),
        _ => return Err(Code(21)),
    };
    let context = context()?;
    with(|machine| {
        machine.stream_context(stream, context)?;
        // SAFETY: the C caller promises that the host ends are valid, as cudaMemcpy requires, for a
        // stream that is being captured also during the launches of the graph.
        unsafe { machine.copy_on(stream, to, from, length) }
    })
}

/// Launches a kernel on `stream`, which does `work`.
pub(crate) fn launch(
    stream: Handle,
    work: impl Fn(&mut Machine) + Send + Sync + 'static,
) -> Answer {
    let context = context()?;
    with(|machine| {
        machine.stream_context(stream, context)?;
        machine.touch()?;
        machine.submit(stream, NodeKind::Kernel, move |machine| {
            machine.launched();
            work(machine);
        });
        Ok(())
    })
}
