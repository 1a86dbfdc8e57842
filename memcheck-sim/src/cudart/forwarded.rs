//! The functions of the runtime API about streams, events and graphs that do what the driver's do,
//! after the runtime has made a context current.

use std::ffi::{c_int, c_uint, c_ulonglong, c_void};

use super::{context, status};
use crate::code::{Answer, Code};
use crate::driver::{event, graph, stream};
use crate::ffi::{In, Out, exports};
use crate::machine::Handle;

fn forwarded(code: c_int) -> Answer {
    if code == 0 { Ok(()) } else { Err(Code(code)) }
}

macro_rules! forwards {
    ($($name:ident($($arg:ident: $type:ty),*) => $module:ident::$driver:ident($($value:expr),*);)*) => {
        exports! { status;
            $(fn $name($($arg: $type),*) {
                context()?;
                // SAFETY: the C caller makes the promises that the driver's function requires.
                forwarded(unsafe { $module::$driver($($value),*) })
            })*
        }
    };
}

forwards! {
    cudaStreamCreate(made: Out<Handle>) => stream::cuStreamCreate(made, 0);
    cudaStreamCreateWithFlags(made: Out<Handle>, flags: c_uint) =>
        stream::cuStreamCreate(made, flags);
    cudaStreamCreateWithPriority(made: Out<Handle>, flags: c_uint, priority: c_int) =>
        stream::cuStreamCreateWithPriority(made, flags, priority);
    cudaStreamDestroy(it: Handle) => stream::cuStreamDestroy_v2(it);
    cudaStreamQuery(it: Handle) => stream::cuStreamQuery(it);
    cudaStreamWaitEvent(it: Handle, event: Handle, flags: c_uint) =>
        stream::cuStreamWaitEvent(it, event, flags);
    cudaStreamGetFlags(it: Handle, flags: Out<c_uint>) => stream::cuStreamGetFlags(it, flags);
    cudaStreamGetPriority(it: Handle, priority: Out<c_int>) =>
        stream::cuStreamGetPriority(it, priority);
    cudaStreamGetId(it: Handle, id: Out<c_ulonglong>) => stream::cuStreamGetId(it, id);
    cudaStreamGetDevice(it: Handle, device: Out<c_int>) => stream::cuStreamGetDevice(it, device);
    cudaStreamGetCaptureInfo_v2(
        it: Handle, state: Out<c_int>, id: Out<c_ulonglong>, graph: Out<Handle>,
        dependencies: Out<*const Handle>, count: Out<usize>
    ) => stream::cuStreamGetCaptureInfo_v2(it, state, id, graph, dependencies, count);
    cudaStreamGetCaptureInfo_v3(
        it: Handle, state: Out<c_int>, id: Out<c_ulonglong>, graph: Out<Handle>,
        dependencies: Out<*const Handle>, edges: Out<*const c_void>, count: Out<usize>
    ) => stream::cuStreamGetCaptureInfo_v3(it, state, id, graph, dependencies, edges, count);
    cudaThreadExchangeStreamCaptureMode(mode: Out<c_int>) =>
        graph::cuThreadExchangeStreamCaptureMode(mode);
    cudaEventCreate(made: Out<Handle>) => event::cuEventCreate(made, 0);
    cudaEventCreateWithFlags(made: Out<Handle>, flags: c_uint) =>
        event::cuEventCreate(made, flags);
    cudaEventDestroy(it: Handle) => event::cuEventDestroy_v2(it);
    cudaEventRecord(it: Handle, on: Handle) => event::cuEventRecord(it, on);
    cudaEventRecordWithFlags(it: Handle, on: Handle, flags: c_uint) =>
        event::cuEventRecordWithFlags(it, on, flags);
    cudaEventQuery(it: Handle) => event::cuEventQuery(it);
    cudaEventSynchronize(it: Handle) => event::cuEventSynchronize(it);
    cudaEventElapsedTime(milliseconds: Out<f32>, start: Handle, end: Handle) =>
        event::cuEventElapsedTime(milliseconds, start, end);
    cudaGraphInstantiate(made: Out<Handle>, of: Handle, flags: c_ulonglong) =>
        graph::cuGraphInstantiateWithFlags(made, of, flags);
    cudaGraphInstantiateWithFlags(made: Out<Handle>, of: Handle, flags: c_ulonglong) =>
        graph::cuGraphInstantiateWithFlags(made, of, flags);
    cudaGraphGetNodes(of: Handle, nodes: Out<Handle>, count: Out<usize>) =>
        graph::cuGraphGetNodes(of, nodes, count);
    cudaGraphExecGetFlags(executable: Handle, flags: Out<c_ulonglong>) =>
        graph::cuGraphExecGetFlags(executable, flags);
    cudaDeviceGetGraphMemAttribute(device: c_int, number: c_int, value: Out<u64>) =>
        graph::cuDeviceGetGraphMemAttribute(device, number, value);
    cudaDeviceSetGraphMemAttribute(device: c_int, number: c_int, value: In<u64>) =>
        graph::cuDeviceSetGraphMemAttribute(device, number, value);
}
