//! The functions that nvcc generates calls to: the registration of kernels before `main`, and the
//! launch `<<<grid, block>>>`.
//!
//! The stand-in compiler generates no such calls. Programs that a real nvcc has built make them,
//! with the simulator as their `libcudart`. The toolkit's `crt/host_runtime.h` and
//! `crt/device_functions.h` declare the functions.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::{Mutex, PoisonError};

use crate::code::{Answer, Code};
use crate::cudart::{self, Dim3};
use crate::driver::check_sizes;
use crate::ffi::{Out, Symbol, exports};
use crate::machine::Handle;

/// The registered kernels. A program identifies a kernel by the address of one of its functions.
///
/// The set must not be part of the machine, because a program registers its kernels before it can
/// configure the machine.
static KERNELS: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());

/// The launch configuration between `<<<` and `>>>`.
#[derive(Clone, Copy)]
struct Configuration {
    grid: Dim3,
    block: Dim3,
    shared: usize,
    stream: Handle,
}

/// `cudaFuncAttributes`. Fields that are not listed here are zero.
#[repr(C)]
pub(crate) struct Attributes {
    shared: usize,
    constant: usize,
    local: usize,
    threads: c_int,
    registers: c_int,
    /// The compute capability for which the kernel is compiled, as PTX and as binary code, in the
    /// form 90. It is assumed to be that of the card.
    ptx: c_int,
    binary: c_int,
    cache: c_int,
    dynamic_shared: c_int,
    rest: [c_int; 23],
}

thread_local! {
    /// The configuration of the launch that the thread is about to make.
    static CONFIGURATION: Cell<Option<Configuration>> = const { Cell::new(None) };
}

exports! { cudart::status;
    fn __cudaPushCallConfiguration(grid: Dim3, block: Dim3, shared: usize, stream: Handle) {
        CONFIGURATION.set(Some(Configuration { grid, block, shared, stream }));
        Ok(())
    }

    fn __cudaPopCallConfiguration(
        grid: Out<Dim3>, block: Out<Dim3>, shared: Out<usize>, stream: Out<Handle>,
    ) {
        // cudaErrorMissingConfiguration.
        let configuration = CONFIGURATION.take().ok_or(Code(52))?;
        grid.put(configuration.grid)?;
        block.put(configuration.block)?;
        shared.put(configuration.shared)?;
        stream.put(configuration.stream)
    }

    fn __cudaGetKernel(kernel: Out<Handle>, function: *const c_void) {
        if !kernels().contains(&(function as usize)) {
            // cudaErrorInvalidDeviceFunction.
            return Err(Code(98));
        }
        kernel.put(function as Handle)
    }

    fn cudaFuncGetAttributes(attributes: Out<Attributes>, function: *const c_void) {
        if !kernels().contains(&(function as usize)) {
            return Err(Code(98));
        }
        let (major, minor) = cudart::card()?.compute;
        let compute = c_int::from(major) * 10 + c_int::from(minor);
        attributes.put(Attributes {
            shared: 0,
            constant: 0,
            local: 0,
            threads: 1024,
            registers: 32,
            ptx: compute,
            binary: compute,
            cache: 0,
            dynamic_shared: 48 << 10,
            rest: [0; 23],
        })
    }

    fn __cudaLaunchKernel(
        kernel: Handle, grid: Dim3, block: Dim3, _arguments: *mut *mut c_void,
        _shared: usize, stream: Handle,
    ) {
        launch(kernel, grid, block, stream)
    }

    fn __cudaLaunchKernel_ptsz(
        kernel: Handle, grid: Dim3, block: Dim3, _arguments: *mut *mut c_void,
        _shared: usize, stream: Handle,
    ) {
        launch(kernel, grid, block, stream)
    }
}

fn kernels() -> std::sync::MutexGuard<'static, BTreeSet<usize>> {
    KERNELS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn launch(kernel: Handle, grid: Dim3, block: Dim3, stream: Handle) -> Answer {
    if !kernels().contains(&(kernel as usize)) {
        return Err(Code::INVALID_HANDLE);
    }
    // The runtime API returns "invalid configuration" where the driver API returns "invalid value".
    check_sizes(grid.sides(), block.sides()).map_err(|_| Code(9))?;
    cudart::launch(stream, |_| {})
}

/// Returns a handle for a program's code. The simulator does not read the code.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __cudaRegisterFatBinary(code: *mut c_void) -> *mut *mut c_void {
    code.cast()
}

/// A no-op: all kernels of the program's code are registered.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __cudaRegisterFatBinaryEnd(_code: *mut *mut c_void) {}

/// A no-op: the program ends.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __cudaUnregisterFatBinary(_code: *mut *mut c_void) {}

/// Registers a kernel by the address of a function of the program.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __cudaRegisterFunction(
    _code: *mut *mut c_void,
    function: *const c_char,
    _device_function: *mut c_char,
    _name: *const c_char,
    _threads: c_int,
    _thread: *mut c_uint,
    _block: *mut c_uint,
    _block_size: *mut Dim3,
    _grid_size: *mut Dim3,
    _warp: *mut c_int,
) {
    let _quiet = memcheck_limits::quiet::enter();
    kernels().insert(function as usize);
}

/// A no-op: a `__device__` or `__constant__` variable is part of the code.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __cudaRegisterVar(
    _code: *mut *mut c_void,
    _variable: *mut c_char,
    _address: *mut c_char,
    _name: *const c_char,
    _external: c_int,
    _size: usize,
    _constant: c_int,
    _global: c_int,
) {
}

/// The functions that do not return a result code.
pub(crate) static OTHERS: &[Symbol] = &[
    Symbol { name: "__cudaRegisterFatBinary", address: __cudaRegisterFatBinary as *const () },
    Symbol { name: "__cudaRegisterFatBinaryEnd", address: __cudaRegisterFatBinaryEnd as *const () },
    Symbol { name: "__cudaUnregisterFatBinary", address: __cudaUnregisterFatBinary as *const () },
    Symbol { name: "__cudaRegisterFunction", address: __cudaRegisterFunction as *const () },
    Symbol { name: "__cudaRegisterVar", address: __cudaRegisterVar as *const () },
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::null_mut;

    /// Makes the calls that nvcc generates for `kernel<<<grid, block>>>()`; `kernel` is the address
    /// of a function.
    fn call(kernel: *const c_void, grid: u32, block: u32) -> c_int {
        let side = |x| Dim3 { x, y: 1, z: 1 };
        let (mut taken_grid, mut taken_block) = (side(0), side(0));
        let (mut shared, mut stream, mut handle) = (0, 0, 0);
        // SAFETY: the result pointers point to locals.
        unsafe {
            __cudaPushCallConfiguration(side(grid), side(block), 64, 0);
            let popped = __cudaPopCallConfiguration(
                Out::new(&raw mut taken_grid),
                Out::new(&raw mut taken_block),
                Out::new(&raw mut shared),
                Out::new(&raw mut stream),
            );
            assert_eq!((popped, taken_grid.x, taken_block.x, shared), (0, grid, block, 64));
            match __cudaGetKernel(Out::new(&raw mut handle), kernel) {
                0 => {
                    let (grid, block) = (taken_grid, taken_block);
                    __cudaLaunchKernel_ptsz(handle, grid, block, null_mut(), shared, stream)
                }
                error => error,
            }
        }
    }

    #[test]
    fn only_a_registered_kernel_with_valid_sizes_is_launched() {
        let (known, unknown) = (c"known".as_ptr(), c"unknown".as_ptr());
        // SAFETY: the function only stores the address of the kernel.
        unsafe {
            let code = __cudaRegisterFatBinary(null_mut());
            let none = null_mut();
            let (a, b) = (null_mut(), null_mut());
            __cudaRegisterFunction(
                code,
                known,
                none,
                known,
                -1,
                a,
                b,
                a.cast(),
                b.cast(),
                null_mut(),
            );
            __cudaRegisterFatBinaryEnd(code);
        }
        assert_eq!(call(known.cast(), 4, 256), 0);
        assert_eq!(call(unknown.cast(), 4, 256), 98);
        assert_eq!(call(known.cast(), 0, 256), 9);
        assert_eq!(call(known.cast(), 4, 2048), 9);
    }

    #[test]
    fn a_pop_without_a_pushed_configuration_is_an_error() {
        // SAFETY: the function checks for null, and no configuration was pushed.
        let popped = unsafe {
            __cudaPopCallConfiguration(
                Out::new(null_mut()),
                Out::new(null_mut()),
                Out::new(null_mut()),
                Out::new(null_mut()),
            )
        };
        assert_eq!(popped, 52);
    }
}
