//! Streams: work is complete as soon as it is queued, so streams are always idle. A stream that is
//! being captured records its work instead (`graph`).

use std::ffi::{c_int, c_uint, c_ulonglong, c_void};

use super::current;
use crate::code::{Answer, Code};
use crate::ffi::{self, Out, Symbol, exports};
use crate::machine::{Handle, Stream, with};

/// `CUhostFn`.
type HostFunction = Option<unsafe extern "C" fn(*mut c_void)>;
/// `CUstreamCallback`.
type Callback = Option<unsafe extern "C" fn(Handle, c_int, *mut c_void)>;

exports! { ffi::driver;
    fn cuStreamCreate(stream: Out<Handle>, flags: c_uint) {
        create(stream, flags, 0)
    }

    fn cuStreamCreateWithPriority(stream: Out<Handle>, flags: c_uint, priority: c_int) {
        // CUDA documents that a priority out of the range is clamped.
        create(stream, flags, priority.clamp(-5, 0))
    }

    fn cuStreamDestroy_v2(stream: Handle) {
        with(|machine| machine.streams.remove(&stream).map(drop).ok_or(Code::INVALID_HANDLE))
    }

    fn cuStreamSynchronize(stream: Handle) {
        with(|machine| {
            let context = machine.stream_context(stream, current::get())?;
            machine.graphs.forbid_wait(stream)?;
            machine.synchronize(context)
        })
    }

    fn cuStreamQuery(stream: Handle) {
        with(|machine| machine.graphs.forbid_wait(stream))?;
        touch(stream).map(drop)
    }

    fn cuStreamWaitEvent(stream: Handle, event: Handle, _flags: c_uint) {
        touch(stream)?;
        with(|machine| {
            machine.events.context(event)?;
            machine.graphs.wait_event(stream, event)
        })
    }

    fn cuStreamIsCapturing(stream: Handle, status: Out<c_int>) {
        properties(stream)?;
        status.put(with(|machine| Ok(machine.graphs.status(stream)))?)
    }

    fn cuStreamGetCaptureInfo_v2(
        stream: Handle,
        status: Out<c_int>,
        id: Out<c_ulonglong>,
        graph: Out<Handle>,
        dependencies: Out<*const Handle>,
        count: Out<usize>,
    ) {
        dependencies.offer(std::ptr::null());
        count.offer(0);
        capture_info(stream, status, id, graph)
    }

    fn cuStreamGetCaptureInfo_v3(
        stream: Handle,
        status: Out<c_int>,
        id: Out<c_ulonglong>,
        graph: Out<Handle>,
        dependencies: Out<*const Handle>,
        edges: Out<*const c_void>,
        count: Out<usize>,
    ) {
        dependencies.offer(std::ptr::null());
        edges.offer(std::ptr::null());
        count.offer(0);
        capture_info(stream, status, id, graph)
    }

    fn cuStreamGetCtx(stream: Handle, context: Out<Handle>) {
        context.put(properties(stream)?.context)
    }

    fn cuStreamGetCtx_v2(stream: Handle, context: Out<Handle>, green: Out<Handle>) {
        green.offer(0);
        context.put(properties(stream)?.context)
    }

    fn cuStreamGetDevice(stream: Handle, device: Out<c_int>) {
        let context = properties(stream)?.context;
        device.put(with(|machine| Ok(machine.context(context)?.device as c_int))?)
    }

    fn cuStreamGetFlags(stream: Handle, flags: Out<c_uint>) {
        flags.put(properties(stream)?.flags)
    }

    fn cuStreamGetId(stream: Handle, id: Out<c_ulonglong>) {
        properties(stream)?;
        id.put(stream)
    }

    fn cuStreamGetPriority(stream: Handle, priority: Out<c_int>) {
        priority.put(properties(stream)?.priority)
    }

    fn cuStreamAttachMemAsync(stream: Handle, _address: u64, _length: usize, _flags: c_uint) {
        touch(stream).map(drop)
    }
}

// The functions below call back into the program, whose allocations must count. They can therefore
// be quiet only while the simulator works.

/// Runs the function at once, because the stream is idle, or records it for a graph.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuLaunchHostFunc(
    stream: Handle,
    function: HostFunction,
    data: *mut c_void,
) -> c_int {
    let Some(function) = function else { return Code::INVALID_VALUE.0 };
    let recorded = quietly(|| {
        touch(stream)?;
        with(|machine| Ok(machine.submit_host(stream, function, data as usize)))
    });
    match recorded {
        Err(code) => return code.0,
        Ok(true) => return 0,
        Ok(false) => {}
    }
    // SAFETY: the caller passed a function and the data that it takes.
    unsafe { function(data) };
    0
}

/// Runs the function at once, because the stream is idle.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuStreamAddCallback(
    stream: Handle,
    callback: Callback,
    data: *mut c_void,
    flags: c_uint,
) -> c_int {
    let Some(callback) = callback.filter(|_| flags == 0) else { return Code::INVALID_VALUE.0 };
    let allowed = || {
        with(|machine| machine.graphs.forbid_wait(stream))?;
        touch(stream)
    };
    if let Err(code) = quietly(allowed) {
        return code.0;
    }
    // SAFETY: the caller passed a function and the data that it takes.
    unsafe { callback(stream, 0, data) };
    0
}

pub(crate) static CALLBACKS: &[Symbol] = &[
    Symbol { name: "cuLaunchHostFunc", address: cuLaunchHostFunc as *const () },
    Symbol { name: "cuStreamAddCallback", address: cuStreamAddCallback as *const () },
];

fn quietly<T>(work: impl FnOnce() -> T) -> T {
    let _quiet = memcheck_limits::quiet::enter();
    work()
}

fn create(stream: Out<Handle>, flags: c_uint, priority: c_int) -> Answer {
    // `CU_STREAM_NON_BLOCKING` is the only flag.
    if flags > 1 {
        return Err(Code::INVALID_VALUE);
    }
    stream.make(|machine| {
        let context = current::get();
        machine.context(context)?;
        let handle = machine.handle();
        machine.streams.insert(handle, Stream { context, flags, priority });
        Ok(handle)
    })
}

/// Reports the capture of a stream. The handle of its graph is also its number.
fn capture_info(
    stream: Handle,
    status: Out<c_int>,
    id: Out<c_ulonglong>,
    graph: Out<Handle>,
) -> Answer {
    properties(stream)?;
    let (state, handle) = with(|machine| {
        Ok((machine.graphs.status(stream), machine.graphs.capture_of(stream).unwrap_or(0)))
    })?;
    id.offer(handle);
    graph.offer(handle);
    status.put(state)
}

/// Returns the properties of a stream. A default stream belongs to the current context.
fn properties(stream: Handle) -> Answer<Stream> {
    with(|machine| {
        let context = machine.stream_context(stream, current::get())?;
        let default = Stream { context, flags: 0, priority: 0 };
        Ok(machine.streams.get(&stream).copied().unwrap_or(default))
    })
}

/// Queues work on `stream`, and returns its context.
pub(super) fn touch(stream: Handle) -> Answer<Handle> {
    with(|machine| {
        let context = machine.stream_context(stream, current::get())?;
        machine.touch()?;
        Ok(context)
    })
}
