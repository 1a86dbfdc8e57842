//! The functions of the driver and the runtime API that allocate and free.
//!
//! Another crate defines these symbols as probes, which count and then call the functions here. In
//! an rlib the functions must therefore have Rust names only. With the feature `standalone` they
//! are exported under their C names like all others.

use std::ffi::{c_int, c_uint, c_void};

use crate::code::{Answer, Code};
use crate::cudart;
use crate::driver::current;
use crate::driver::graph::check_edge_data;
use crate::driver::node::NodePlace;
use crate::ffi::{self, Out};
use crate::host::Origin;
use crate::machine::graphs::{Mismatch, Mode, Step};
use crate::machine::{Handle, with};

macro_rules! hooked {
    ($($family:path: $name:ident($($arg:ident: $ty:ty),*) $body:block)*) => {
        $(
            #[doc = concat!("`", stringify!($name), "`, with CUDA's signature and result codes.")]
            ///
            /// # Safety
            ///
            /// As CUDA documents: result pointers must be null or writable, and memory that is
            /// being freed must not be in use.
            #[cfg_attr(feature = "standalone", unsafe(no_mangle))]
            pub unsafe extern "C" fn $name($($arg: $ty),*) -> c_int {
                let _quiet = memcheck_limits::quiet::enter();
                let body = move || -> Answer { $body };
                $family(body())
            }
        )*
        #[cfg(any(test, feature = "standalone"))]
        pub(crate) static EXPORTS: &[ffi::Symbol] = &[
            $(ffi::Symbol { name: stringify!($name), address: $name as *const () }),*
        ];
    };
}

hooked! {
    ffi::driver: cuMemAlloc_v2(dptr: *mut u64, bytesize: usize) {
        direct(dptr, current::get(), bytesize)
    }
    ffi::driver: cuMemAllocPitch_v2(
        dptr: *mut u64, pitch: *mut usize, width: usize, height: usize, _element: c_uint
    ) {
        pitched(dptr, pitch, current::get(), width, height)
    }
    ffi::driver: cuMemAllocManaged(dptr: *mut u64, bytesize: usize, _flags: c_uint) {
        managed(dptr, current::get(), bytesize)
    }
    ffi::driver: cuMemAllocHost_v2(pp: *mut *mut c_void, bytesize: usize) {
        pinned(pp, current::get(), bytesize, 0)
    }
    ffi::driver: cuMemHostAlloc(pp: *mut *mut c_void, bytesize: usize, flags: c_uint) {
        pinned(pp, current::get(), bytesize, flags)
    }
    ffi::driver: cuMemAllocAsync(dptr: *mut u64, bytesize: usize, stream: *mut c_void) {
        ordered(dptr, current::get(), None, bytesize, stream)
    }
    ffi::driver: cuMemAllocAsync_ptsz(dptr: *mut u64, bytesize: usize, stream: *mut c_void) {
        ordered(dptr, current::get(), None, bytesize, stream)
    }
    ffi::driver: cuMemAllocFromPoolAsync(
        dptr: *mut u64, bytesize: usize, pool: *mut c_void, stream: *mut c_void
    ) {
        ordered(dptr, current::get(), Some(pool), bytesize, stream)
    }
    ffi::driver: cuMemAllocFromPoolAsync_ptsz(
        dptr: *mut u64, bytesize: usize, pool: *mut c_void, stream: *mut c_void
    ) {
        ordered(dptr, current::get(), Some(pool), bytesize, stream)
    }
    ffi::driver: cuMemFree_v2(dptr: u64) {
        with(|machine| machine.context(current::get()).map(drop))?;
        free(dptr)
    }
    ffi::driver: cuMemFreeAsync(dptr: u64, stream: *mut c_void) {
        free_ordered(dptr, current::get(), stream)
    }
    ffi::driver: cuMemFreeAsync_ptsz(dptr: u64, stream: *mut c_void) {
        free_ordered(dptr, current::get(), stream)
    }
    ffi::driver: cuMemFreeHost(p: *mut c_void) {
        free_host(p)
    }
    ffi::driver: cuMemHostRegister_v2(p: *mut c_void, bytesize: usize, flags: c_uint) {
        with(|machine| {
            machine.context(current::get())?;
            machine.host.register(p as u64, bytesize as u64, flags)
        })
    }
    ffi::driver: cuMemHostUnregister(p: *mut c_void) {
        with(|machine| {
            let registered = |origin| origin == Origin::Registered;
            // CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED
            machine.host.release(p as u64, registered).map(drop).map_err(|_| Code(713))
        })
    }

    ffi::driver: cuStreamBeginCapture_v2(stream: *mut c_void, mode: c_uint) {
        let mode = Mode::of(mode)?;
        with(|machine| machine.begin_capture(stream as Handle, current::get(), mode).map(drop))
    }
    ffi::driver: cuStreamEndCapture(stream: *mut c_void, graph: *mut *mut c_void) {
        end_capture(stream as Handle, graph)
    }
    ffi::driver: cuGraphUpload(executable: *mut c_void, stream: *mut c_void) {
        upload(executable as Handle, stream as Handle, current::get())
    }
    ffi::driver: cuGraphLaunch(executable: *mut c_void, stream: *mut c_void) {
        launch_graph(executable as Handle, stream as Handle, current::get())
    }
    ffi::driver: cuGraphExecDestroy(executable: *mut c_void) {
        with(|machine| machine.destroy_executable(executable as Handle))
    }
    ffi::driver: cuGraphDestroy(graph: *mut c_void) {
        with(|machine| machine.destroy_graph(graph as Handle))
    }
    ffi::driver: cuDeviceGraphMemTrim(device: c_int) {
        trim(device)
    }
    ffi::driver: cuGraphAddMemAllocNode(
        node: *mut *mut c_void, graph: *mut c_void, after: *const *mut c_void, count: usize,
        parameters: *mut c_void
    ) {
        let place = NodePlace { graph: graph as Handle, after: after.cast(), count };
        place.add_allocation(result(node.cast())?, result(parameters.cast())?)
    }
    ffi::driver: cuGraphAddNode(
        node: *mut *mut c_void, graph: *mut c_void, after: *const *mut c_void, count: usize,
        parameters: *mut c_void
    ) {
        let place = NodePlace { graph: graph as Handle, after: after.cast(), count };
        place.add_any(result(node.cast())?, parameters)
    }
    ffi::driver: cuGraphAddNode_v2(
        node: *mut *mut c_void, graph: *mut c_void, after: *const *mut c_void,
        data: *const c_void, count: usize, parameters: *mut c_void
    ) {
        check_edge_data(data.cast(), count)?;
        let place = NodePlace { graph: graph as Handle, after: after.cast(), count };
        place.add_any(result(node.cast())?, parameters)
    }
    ffi::driver: cuGraphExecUpdate(
        executable: *mut c_void, graph: *mut c_void, node: *mut *mut c_void, outcome: *mut c_int
    ) {
        let update = with(|machine| machine.update(executable as Handle, graph as Handle))?;
        result(node)?.put(update.err().map_or(0, Mismatch::node) as *mut c_void)?;
        result(outcome)?.put(update.err().map_or(0, Mismatch::number))?;
        update.map_err(|_| Code::UPDATE_FAILURE)
    }
    ffi::driver: cuGraphExecUpdate_v2(
        executable: *mut c_void, graph: *mut c_void, outcome: *mut c_void
    ) {
        update(executable as Handle, graph as Handle, outcome)
    }

    cudart::status: cudaMalloc(dev_ptr: *mut *mut c_void, size: usize) {
        let context = cudart::context()?;
        if size == 0 {
            return empty(dev_ptr);
        }
        direct(dev_ptr.cast(), context, size)
    }
    cudart::status: cudaMallocPitch(
        dev_ptr: *mut *mut c_void, pitch: *mut usize, width: usize, height: usize
    ) {
        pitched(dev_ptr.cast(), pitch, cudart::context()?, width, height)
    }
    cudart::status: cudaMallocManaged(dev_ptr: *mut *mut c_void, size: usize, _flags: c_uint) {
        managed(dev_ptr.cast(), cudart::context()?, size)
    }
    cudart::status: cudaMallocHost(ptr: *mut *mut c_void, size: usize) {
        pinned(ptr, cudart::context()?, size, 0)
    }
    cudart::status: cudaHostAlloc(p_host: *mut *mut c_void, size: usize, flags: c_uint) {
        pinned(p_host, cudart::context()?, size, flags)
    }
    cudart::status: cudaMallocAsync(dev_ptr: *mut *mut c_void, size: usize, stream: *mut c_void) {
        runtime_ordered(dev_ptr, None, size, stream)
    }
    cudart::status: cudaMallocAsync_ptsz(dev_ptr: *mut *mut c_void, size: usize, stream: *mut c_void) {
        runtime_ordered(dev_ptr, None, size, stream)
    }
    cudart::status: cudaMallocFromPoolAsync(
        ptr: *mut *mut c_void, size: usize, pool: *mut c_void, stream: *mut c_void
    ) {
        runtime_ordered(ptr, Some(pool), size, stream)
    }
    cudart::status: cudaMallocFromPoolAsync_ptsz(
        ptr: *mut *mut c_void, size: usize, pool: *mut c_void, stream: *mut c_void
    ) {
        runtime_ordered(ptr, Some(pool), size, stream)
    }
    cudart::status: cudaStreamBeginCapture(stream: *mut c_void, mode: c_uint) {
        let (mode, context) = (Mode::of(mode)?, cudart::context()?);
        with(|machine| machine.begin_capture(stream as Handle, context, mode).map(drop))
    }
    cudart::status: cudaStreamEndCapture(stream: *mut c_void, graph: *mut *mut c_void) {
        end_capture(stream as Handle, graph)
    }
    cudart::status: cudaGraphUpload(executable: *mut c_void, stream: *mut c_void) {
        upload(executable as Handle, stream as Handle, cudart::context()?)
    }
    cudart::status: cudaGraphLaunch(executable: *mut c_void, stream: *mut c_void) {
        launch_graph(executable as Handle, stream as Handle, cudart::context()?)
    }
    cudart::status: cudaGraphExecUpdate(
        executable: *mut c_void, graph: *mut c_void, outcome: *mut c_void
    ) {
        update(executable as Handle, graph as Handle, outcome)
    }
    cudart::status: cudaGraphExecDestroy(executable: *mut c_void) {
        with(|machine| machine.destroy_executable(executable as Handle))
    }
    cudart::status: cudaGraphDestroy(graph: *mut c_void) {
        with(|machine| machine.destroy_graph(graph as Handle))
    }
    cudart::status: cudaDeviceGraphMemTrim(device: c_int) {
        trim(device)
    }
    cudart::status: cudaFree(dev_ptr: *mut c_void) {
        cudart::context()?;
        free(dev_ptr as u64)
    }
    cudart::status: cudaFreeHost(ptr: *mut c_void) {
        free_host(ptr)
    }
    cudart::status: cudaFreeAsync(dev_ptr: *mut c_void, stream: *mut c_void) {
        free_ordered(dev_ptr as u64, cudart::context()?, stream)
    }
    cudart::status: cudaFreeAsync_ptsz(dev_ptr: *mut c_void, stream: *mut c_void) {
        free_ordered(dev_ptr as u64, cudart::context()?, stream)
    }
}

/// Wraps the result parameter of a hooked function, which must not be null.
fn result<T>(pointer: *mut T) -> Answer<Out<T>> {
    if pointer.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: all callers in this file are `unsafe fn`s whose contract requires a writable pointer.
    Ok(unsafe { Out::new(pointer) })
}

fn direct(dptr: *mut u64, context: Handle, bytes: usize) -> Answer {
    let dptr = result(dptr)?;
    dptr.put(with(|machine| machine.allocate(context, bytes))?)
}

/// Allocates rows that are padded to 512 bytes. The padding is part of the block.
fn pitched(
    dptr: *mut u64,
    pitch: *mut usize,
    context: Handle,
    width: usize,
    height: usize,
) -> Answer {
    let (dptr, pitch) = (result(dptr)?, result(pitch)?);
    let row = width.checked_next_multiple_of(512).ok_or(Code::INVALID_VALUE)?;
    let bytes = row.checked_mul(height).ok_or(Code::INVALID_VALUE)?;
    dptr.put(with(|machine| machine.allocate(context, bytes))?)?;
    pitch.put(row)
}

fn managed(dptr: *mut u64, context: Handle, bytes: usize) -> Answer {
    let dptr = result(dptr)?;
    dptr.put(with(|machine| machine.allocate_managed(context, bytes))?)
}

fn pinned(pointer: *mut *mut c_void, context: Handle, bytes: usize, flags: c_uint) -> Answer {
    let pointer = result(pointer)?;
    pointer.put(with(|machine| {
        machine.context(context)?;
        Ok(machine.allocate_host(bytes as u64, Origin::Pinned, flags)? as *mut c_void)
    })?)
}

fn ordered(
    dptr: *mut u64,
    current: Handle,
    pool: Option<*mut c_void>,
    bytes: usize,
    stream: *mut c_void,
) -> Answer {
    let dptr = result(dptr)?;
    let pool = pool.map(|pool| pool as Handle);
    dptr.put(with(|machine| machine.allocate_async(stream as Handle, current, pool, bytes))?)
}

fn runtime_ordered(
    pointer: *mut *mut c_void,
    pool: Option<*mut c_void>,
    size: usize,
    stream: *mut c_void,
) -> Answer {
    let context = cudart::context()?;
    if size == 0 {
        return empty(pointer);
    }
    ordered(pointer.cast(), context, pool, size, stream)
}

/// Returns a null pointer, as the runtime API does for a request of 0 bytes.
fn empty(pointer: *mut *mut c_void) -> Answer {
    result(pointer)?.put(std::ptr::null_mut())
}

fn free(address: u64) -> Answer {
    let pause = with(|machine| machine.free(address))?;
    // The thread sleeps outside the lock, so that a slow free delays this thread only.
    if !pause.is_zero() {
        std::thread::sleep(pause);
    }
    Ok(())
}

fn free_ordered(address: u64, current: Handle, stream: *mut c_void) -> Answer {
    let is_recorded = with(|machine| {
        machine.stream_context(stream as Handle, current)?;
        machine.free_on(stream as Handle, address)
    })?;
    if is_recorded { Ok(()) } else { free(address) }
}

fn end_capture(stream: Handle, graph: *mut *mut c_void) -> Answer {
    let graph = result(graph)?;
    match with(|machine| machine.end_capture(stream)) {
        Ok(handle) => graph.put(handle as *mut c_void),
        Err(code) => {
            graph.offer(std::ptr::null_mut());
            Err(code)
        }
    }
}

fn upload(executable: Handle, stream: Handle, context: Handle) -> Answer {
    with(|machine| {
        machine.stream_context(stream, context)?;
        machine.upload(executable)
    })
}

/// `CUgraphExecUpdateResultInfo`.
#[repr(C)]
struct UpdateOutcome {
    result: c_int,
    node: Handle,
    /// The other end of the dependency that differs. The simulator compares nodes.
    from: Handle,
}

fn update(executable: Handle, graph: Handle, outcome: *mut c_void) -> Answer {
    let outcome = result(outcome.cast())?;
    let update = with(|machine| machine.update(executable, graph))?;
    let (number, node) =
        update.err().map_or((0, 0), |mismatch| (mismatch.number(), mismatch.node()));
    outcome.put(UpdateOutcome { result: number, node, from: 0 })?;
    update.map_err(|_| Code::UPDATE_FAILURE)
}

fn trim(device: c_int) -> Answer {
    with(|machine| {
        machine.device(device)?;
        machine.trim_graphs(device as usize)
    })
}

/// Does the work of a graph. Functions of the program run without the lock of the machine, and
/// count.
fn launch_graph(executable: Handle, stream: Handle, context: Handle) -> Answer {
    let steps = with(|machine| {
        machine.stream_context(stream, context)?;
        machine.graphs.forbid_wait(stream)?;
        machine.start(executable)
    })?;
    for step in steps {
        match step {
            Step::Device(work) => with(|machine| {
                work(machine);
                Ok(())
            })?,
            // SAFETY: the program has passed the function and the data that it takes, for every
            // launch of the graph.
            Step::Host(function, data) => memcheck_limits::quiet::lifted(|| unsafe {
                function(data as *mut c_void);
            }),
            // The machine returns the work of child graphs itself.
            Step::Child(_) | Step::Nothing => {}
        }
    }
    Ok(())
}

fn free_host(pointer: *mut c_void) -> Answer {
    if pointer.is_null() {
        return Ok(());
    }
    with(|machine| {
        machine.release_host(pointer as u64, |origin| origin == Origin::Pinned).map(drop)
    })
}
