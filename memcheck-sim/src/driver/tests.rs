//! Tests that call the functions as C does, on the machine of the process.
//!
//! Every test has a separate thread and therefore a separate current context. Tests compare only
//! the changes that they make themselves to the figures of a device, in a context that they create.

use std::ffi::{CStr, c_int, c_void};
use std::ptr::{null, null_mut};

pub(crate) use super::memory::{cuMemcpyDtoH_v2, cuMemcpyHtoD_v2};
use crate::ffi::Out;
use crate::hooked::*;
use crate::machine::Handle;

pub(crate) fn machine() {
    // All tests use the same machine, so the first one to arrive can configure it.
    let _ = crate::configure(&"4xrtx4090,capacity=1GiB".parse().unwrap());
}

pub(crate) fn out<T>(value: &mut T) -> Out<T> {
    // SAFETY: the pointer is writable, and the calls of these tests end before the reference does.
    unsafe { Out::new(value) }
}

/// Creates a context on `device` and makes it current.
pub(crate) fn context(device: c_int) -> Handle {
    machine();
    let mut context = 0;
    // SAFETY: the result pointers point to locals.
    unsafe {
        assert_eq!(super::device::cuInit(0), 0);
        assert_eq!(super::context::cuCtxCreate_v2(out(&mut context), 0, device), 0);
    }
    context
}

#[test]
fn devices_report_their_properties() {
    machine();
    use super::device::*;
    let (mut count, mut value, mut bytes) = (0, 0, 0);
    let mut name = [0; 64];
    // SAFETY: the result pointers point to locals.
    unsafe {
        assert_eq!(cuDeviceGetCount(out(&mut count)), 0);
        assert_eq!(count, 4);
        assert_eq!(cuDeviceGet(out(&mut value), 3), 0);
        assert_eq!(cuDeviceGet(out(&mut value), 4), 101);
        assert_eq!(cuDeviceTotalMem_v2(out(&mut bytes), 0), 0);
        assert_eq!(bytes, 1 << 30);
        assert_eq!(cuDeviceGetName(out(&mut name[0]), 64, 0), 0);
        assert_eq!(CStr::from_ptr(name.as_ptr()), c"NVIDIA GeForce RTX 4090");
        for (attribute, expected) in [(75, 8), (76, 9), (16, 128), (10, 32), (115, 1)] {
            assert_eq!(cuDeviceGetAttribute(out(&mut value), attribute, 0), 0);
            assert_eq!(value, expected);
        }
        assert_eq!(cuDeviceGetAttribute(out(&mut value), 999, 0), 1);
        assert_eq!(cuDeviceGetCount(Out::new(null_mut())), 1);
        let mut text = null();
        assert_eq!(cuGetErrorString(2, out(&mut text)), 0);
        assert_eq!(CStr::from_ptr(text), c"out of memory");
        assert_eq!(cuGetErrorString(-1, out(&mut text)), 1);
    }
}

#[test]
fn without_a_context_nothing_is_allocated() {
    machine();
    let mut address = 0;
    // SAFETY: the result pointers point to locals.
    unsafe {
        assert_eq!(cuMemAlloc_v2(&mut address, 8), 201);
        assert_eq!(cuMemAllocAsync(&mut address, 8, null_mut()), 201);
        assert_eq!(super::context::cuCtxSynchronize(), 201);
        assert_eq!(super::context::cuCtxSetCurrent(0x1234), 709);
    }
}

#[test]
fn a_call_without_a_place_for_its_result_makes_nothing() {
    let mine = context(0);
    // SAFETY: the image is a zero-terminated text.
    unsafe {
        let image = c".version 9.0".as_ptr().cast();
        assert_eq!(super::module::cuModuleLoadData(Out::none(), image), 1);
        assert_eq!(super::event::cuEventCreate(Out::none(), 0), 1);
    }
    let made = crate::machine::with(|machine| {
        Ok(machine.modules.values().filter(|module| module.context == mine).count())
    });
    assert_eq!(made, Ok(0));
}

#[test]
fn an_allocation_reduces_the_free_memory_of_its_device_until_it_is_freed() {
    // No other test uses device 3, because this test compares its free memory to the byte.
    let context = context(3);
    let (mut before, mut free, mut total, mut address) = (0, 0, 0, 0);
    // SAFETY: the result pointers point to locals.
    unsafe {
        assert_eq!(super::memory::cuMemGetInfo_v2(out(&mut before), out(&mut total)), 0);
        assert_eq!(total, 1 << 30);
        assert_eq!(cuMemAllocAsync(&mut address, 1000, 2 as *mut c_void), 0);
        assert_eq!(super::memory::cuMemGetInfo_v2(out(&mut free), out(&mut total)), 0);
        assert_eq!(before - free, 1000);
        assert_eq!(cuMemAlloc_v2(&mut address.clone(), total), 2);
        assert_eq!(cuMemAlloc_v2(&mut address.clone(), 0), 1);
        // An empty block from a pool is a null pointer, which can be freed.
        let mut empty = 1;
        assert_eq!(cuMemAllocAsync(&mut empty, 0, 2 as *mut c_void), 0);
        assert_eq!((empty, cuMemFreeAsync(empty, null_mut())), (0, 0));
        assert_eq!(cuMemAlloc_v2(null_mut(), 8), 1);
        assert_eq!(cuMemFreeAsync(address, null_mut()), 0);
        assert_eq!(cuMemFreeAsync(address, null_mut()), 1);
        assert_eq!(super::memory::cuMemGetInfo_v2(out(&mut free), out(&mut total)), 0);
        assert_eq!(before, free);
        assert_eq!(super::context::cuCtxDestroy_v2(context), 0);
        assert_eq!(cuMemAlloc_v2(&mut address, 8), 201);
    }
}

#[test]
fn contents_are_copied_to_from_and_between_devices() {
    use super::memory::*;
    context(0);
    let other = context(1);
    let mine = super::current::pop().unwrap();
    assert_eq!(mine, other);
    let first = super::current::get();
    let (mut a, mut b) = (0, 0);
    let up = [1_u8, 2, 3, 4];
    let mut down = [9_u8; 4];
    // SAFETY: the result pointers point to locals, and the host ends have the given lengths.
    unsafe {
        assert_eq!(cuMemAlloc_v2(&mut a, 4), 0);
        super::current::push(other).unwrap();
        assert_eq!(cuMemAlloc_v2(&mut b, 4), 0);
        assert_eq!(cuMemcpyHtoDAsync_v2(a, up.as_ptr() as *mut c_void, 4, 2), 0);
        assert_eq!(cuMemcpyPeerAsync(b, other, a, first, 4, 0), 0);
        assert_eq!(cuMemsetD8Async(b + 1, 7, 2, 0), 0);
        assert_eq!(cuMemcpyDtoH_v2(down.as_mut_ptr().cast(), b, 4), 0);
        assert_eq!(down, [1, 7, 7, 4]);
        assert_eq!(cuMemcpyDtoD_v2(b, a, 5), 1);
        assert_eq!(cuMemcpyDtoH_v2(null_mut(), b, 4), 1);
        assert_eq!(cuMemcpyPeer(b, 77, a, first, 4), 709);
        let mut ordinal = 0_u32;
        let ordinal_out = Out::new((&raw mut ordinal).cast::<u64>());
        assert_eq!(cuPointerGetAttribute(ordinal_out, 9, b + 3), 0);
        assert_eq!(ordinal, 1);
        assert_eq!(cuMemFree_v2(a), 0);
        assert_eq!(cuMemFree_v2(b), 0);
    }
}

#[test]
fn destroyed_streams_and_events_are_invalid() {
    use super::event::*;
    use super::stream::*;
    context(0);
    let (mut stream, mut event, mut capturing, mut address) = (0, 0, 9, 0);
    let mut milliseconds = 1.0;
    // SAFETY: the result pointers point to locals.
    unsafe {
        assert_eq!(cuStreamCreate(out(&mut stream), 1), 0);
        assert!(stream > 2);
        assert_eq!(cuEventCreate(out(&mut event), 2), 0);
        assert_eq!(cuEventRecord(event, stream), 0);
        assert_eq!(cuStreamWaitEvent(stream, event, 0), 0);
        assert_eq!(cuEventElapsedTime_v2(out(&mut milliseconds), event, event), 0);
        assert_eq!(milliseconds, 0.0);
        assert_eq!(cuStreamIsCapturing(stream, out(&mut capturing)), 0);
        assert_eq!(capturing, 0);
        assert_eq!(cuMemAllocAsync(&mut address, 8, stream as *mut c_void), 0);
        assert_eq!(cuMemFreeAsync(address, stream as *mut c_void), 0);
        assert_eq!(cuStreamSynchronize(stream), 0);
        assert_eq!(cuEventDestroy_v2(event), 0);
        assert_eq!(cuEventRecord(event, stream), 400);
        assert_eq!(cuStreamDestroy_v2(stream), 0);
        assert_eq!(cuStreamSynchronize(stream), 400);
        assert_eq!(cuMemAllocAsync(&mut address, 8, stream as *mut c_void), 400);
    }
}

#[test]
fn a_created_pool_counts_only_its_own_blocks() {
    use super::pool::*;
    context(2);
    let properties = [1_i32, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let (mut pool, mut value, mut address) = (0, 0, 0);
    // SAFETY: the result pointers point to locals, and the properties are longer than the fields
    // that are read.
    unsafe {
        let head =
            std::mem::transmute::<*const i32, crate::ffi::In<Properties>>(properties.as_ptr());
        assert_eq!(cuMemPoolCreate(out(&mut pool), head), 0);
        let handle = pool as *mut c_void;
        assert_eq!(cuMemAllocFromPoolAsync(&mut address, 1000, handle, null_mut()), 0);
        assert_eq!(cuMemPoolGetAttribute(pool, 7, out(&mut value)), 0);
        assert_eq!(value, 1000);
        assert_eq!(cuMemPoolGetAttribute(pool, 99, out(&mut value)), 1);
        assert_eq!(cuMemFree_v2(address), 0);
        assert_eq!(cuMemPoolGetAttribute(pool, 8, out(&mut value)), 0);
        assert_eq!(value, 1000);
        assert_eq!(cuMemPoolTrimTo(pool, 0), 0);
        assert_eq!(cuMemPoolGetAttribute(pool, 5, out(&mut value)), 0);
        assert_eq!(value, 0);
        assert_eq!(cuMemPoolDestroy(pool), 0);
        assert_eq!(cuMemPoolDestroy(pool), 1);
        assert_eq!(cuDeviceGetDefaultMemPool(out(&mut pool), 2), 0);
        assert_eq!(cuMemPoolDestroy(pool), 1);
    }
}

#[test]
fn pinned_and_managed_memory_is_writable_and_runtime_memory_is_freed_once() {
    context(0);
    let (mut pinned, mut pointer, mut address) = (null_mut(), null_mut(), 0);
    // SAFETY: the result pointers point to locals, and the written memory was allocated.
    unsafe {
        assert_eq!(cuMemHostAlloc(&mut pinned, 16, 0), 0);
        pinned.cast::<u8>().add(15).write(1);
        assert_eq!(cuMemFreeHost(pinned), 0);
        assert_eq!(cuMemFreeHost(pinned), 1);
        assert_eq!(cuMemAllocManaged(&mut address, 16, 1), 0);
        (address as *mut u8).write(1);
        assert_eq!(cuMemFree_v2(address), 0);

        assert_eq!(cudaMalloc(&mut pointer, 0), 0);
        assert!(pointer.is_null());
        assert_eq!(cudaMallocAsync(&mut pointer, 16, null_mut()), 0);
        assert_eq!(cudaFree(pointer), 0);
        assert_eq!(cudaFree(pointer), 1);
        assert_eq!(crate::cudart::cudaPeekAtLastError(), 1);
        assert_eq!(crate::cudart::cudaGetLastError(), 1);
        assert_eq!(crate::cudart::cudaGetLastError(), 0);
    }
}

#[test]
fn the_runtime_makes_the_primary_context_current() {
    machine();
    let (mut pointer, mut context) = (null_mut(), 0);
    // SAFETY: the result pointers point to locals.
    unsafe {
        assert_eq!(cudaMallocAsync(&mut pointer, 16, null_mut()), 0);
        assert_eq!(super::context::cuCtxGetCurrent(out(&mut context)), 0);
        assert_ne!(context, 0);
        assert_eq!(cudaFreeAsync(pointer, null_mut()), 0);
    }
}

#[test]
fn kernels_are_launched_within_the_drivers_limits() {
    use super::module::*;
    context(0);
    let (mut module, mut function) = (0, 0);
    // A kernel without parameters: one that is not known would make the memory of other tests unknown.
    let (name, image) = (c"mine", c".version 9.0\n.visible .entry mine()\n{ ret; }\n");
    // SAFETY: the result pointers point to locals, and the texts are zero-terminated.
    unsafe {
        assert_eq!(cuModuleLoadData(out(&mut module), image.as_ptr().cast()), 0);
        let text = std::mem::transmute::<*const std::ffi::c_char, crate::ffi::Text>(name.as_ptr());
        assert_eq!(cuModuleGetFunction(out(&mut function), module, text), 0);
        let launch = |grid, block, stream| {
            cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, stream, null_mut(), null_mut())
        };
        assert_eq!(launch(1, 1024, 2), 0);
        assert_eq!(launch(1, 1025, 2), 1);
        assert_eq!(launch(0, 1, 2), 1);
        assert_eq!(launch(1, 1, 0x77), 400);
        // The card is an RTX 4090, whose compute capability is 8.9.
        for (attribute, expected) in [(0, 1024), (5, 89), (6, 89)] {
            let mut value = 0;
            assert_eq!(cuFuncGetAttribute(out(&mut value), attribute, function), 0);
            assert_eq!(value, expected, "attribute {attribute}");
        }
        assert_eq!(cuModuleUnload(module), 0);
        assert_eq!(launch(1, 1, 2), 400);
    }
}

#[test]
fn a_kernel_of_candle_is_found_by_name_and_computes() {
    use super::memory::*;
    use super::module::*;
    context(0);
    let image =
        c"//\n// Generated by the stand-in nvcc of memcheck-sim from unary.cu of candle-kernels \
                  0.11.1: no code\n//\n.version 9.0\n";
    let (mut module, mut function, mut from) = (0, 0, 0);
    let up = [1_f32, -2.0];
    let mut down = [0_f32; 2];
    // SAFETY: the result pointers point to locals, the texts are zero-terminated, and the launch
    // has the arguments of the kernel.
    unsafe {
        assert_eq!(cuModuleLoadData(out(&mut module), image.as_ptr().cast()), 0);
        let mut find = |name: &CStr| {
            let text =
                std::mem::transmute::<*const std::ffi::c_char, crate::ffi::Text>(name.as_ptr());
            cuModuleGetFunction(out(&mut function), module, text)
        };
        for missing in [c"uneg_i32", c"badd_f32", c"uneg_f8e4m3"] {
            assert_eq!(find(missing), 500, "{missing:?}");
        }
        assert_eq!(find(c"uneg_bf16"), 0);
        assert_eq!(find(c"uneg_f32"), 0);
        assert_eq!(cuMemAlloc_v2(&mut from, 8), 0);
        assert_eq!(cuMemcpyHtoD_v2(from, up.as_ptr() as *mut c_void, 8), 0);
        let (mut count, mut none) = (2_u64, 0_u64);
        let mut arguments: [*mut c_void; 5] = [
            (&raw mut count).cast(),
            (&raw mut none).cast(),
            (&raw mut none).cast(),
            (&raw mut from).cast(),
            (&raw mut from).cast(),
        ];
        let launch =
            |arguments| cuLaunchKernel(function, 1, 1, 1, 2, 1, 1, 0, 2, arguments, null_mut());
        assert_eq!(launch(null_mut()), 1);
        assert_eq!(launch(arguments.as_mut_ptr()), 0);
        assert_eq!(cuMemcpyDtoH_v2(down.as_mut_ptr().cast(), from, 8), 0);
        assert_eq!(down, [-1.0, 2.0]);
        assert_eq!(cuMemFree_v2(from), 0);
    }
}
