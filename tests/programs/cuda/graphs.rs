//! Of `functional/graphs.rs`.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr::{null, null_mut};
use std::sync::Arc;

use anyhow::Context as _;
use candle_core::cuda_backend::cudarc::driver::{
    CudaGraph, CudaStream, LaunchConfig, PushKernelArg, sys,
};
use candle_core::cuda_backend::cudarc::nvrtc;
use candle_core::{Device, Tensor};
use memcheck_runtime::{Trial, mem_test};

fn capture(
    stream: &Arc<CudaStream>,
    work: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<CudaGraph> {
    stream.begin_capture(sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED)?;
    work()?;
    stream.end_capture(sys::CUgraphInstantiate_flags(0))?.context("the capture gave no graph")
}

fn stream() -> anyhow::Result<(Device, Arc<CudaStream>)> {
    let device = Device::new_cuda_with_stream(0)?;
    // SAFETY: all work is on one stream.
    unsafe { device.as_cuda_device()?.disable_event_tracking() };
    let stream = device.as_cuda_device()?.cuda_stream();
    Ok((device, stream))
}

#[mem_test(baseline = false, max_growth = "0 B", max_retained = "1 GiB")]
fn graphs_are_kept(trial: &mut Trial) -> anyhow::Result<()> {
    let (_device, stream) = stream()?;
    trial.iterate(|_| {
        let graph = capture(&stream, || {
            // The first block is freed in the capture, and the second takes its place.
            // SAFETY: the memory is not read.
            drop(unsafe { stream.alloc::<u8>(7000)? }); // line: first block
            // SAFETY: as above.
            drop(unsafe { stream.alloc::<u8>(6000)? });
            Ok(())
        })?;
        std::mem::forget(graph);
        Ok(())
    })
}

#[mem_test(baseline = false, max_growth = "0 B")]
fn a_graph_is_replayed(trial: &mut Trial) -> anyhow::Result<()> {
    let (device, stream) = stream()?;
    let input = Tensor::new(&[1f32, 2.], &device)?;
    trial.iterate(|_| {
        let mut output = None;
        let graph = capture(&stream, || {
            output = Some(((&input * 2.)? + 1.)?);
            Ok(())
        })?;
        graph.launch()?;
        anyhow::ensure!(output.context("no output")?.to_vec1::<f32>()? == [3., 5.]);
        drop(graph);
        // SAFETY: the device exists.
        unsafe { sys::cuDeviceGraphMemTrim(0).result()? };
        Ok(())
    })
}

/// The parameters of a node that allocates on the first device.
fn allocation(bytes: usize) -> sys::CUDA_MEM_ALLOC_NODE_PARAMS {
    // SAFETY: zeros are valid for a structure of numbers and pointers.
    let mut memory: sys::CUDA_MEM_ALLOC_NODE_PARAMS = unsafe { std::mem::zeroed() };
    memory.poolProps.allocType = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    memory.poolProps.location.type_ = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    memory.bytesize = bytes;
    memory
}

/// A graph with one allocation, which a second node fills and a third one frees.
unsafe fn built(bytes: usize) -> anyhow::Result<sys::CUgraph> {
    // SAFETY: all pointers are to locals, and the parameters are those of the nodes.
    unsafe {
        let mut graph = null_mut();
        sys::cuGraphCreate(&mut graph, 0).result()?;
        let mut memory = allocation(bytes);
        let (mut first, mut second, mut third) = (null_mut(), null_mut(), null_mut());
        sys::cuGraphAddMemAllocNode(&mut first, graph, null(), 0, &mut memory).result()?;
        let mut context = null_mut();
        sys::cuCtxGetCurrent(&mut context).result()?;
        let fill = sys::CUDA_MEMSET_NODE_PARAMS {
            dst: memory.dptr,
            pitch: 0,
            value: 7,
            elementSize: 1,
            width: bytes,
            height: 1,
        };
        sys::cuGraphAddMemsetNode(&mut second, graph, null(), 0, &fill, context).result()?;
        sys::cuGraphAddDependencies_v2(graph, &first, &second, null(), 1).result()?;
        sys::cuGraphAddMemFreeNode(&mut third, graph, &second, 1, memory.dptr).result()?;
        // The fourth node runs after the free, so that it has the same memory.
        memory.bytesize = bytes / 2;
        sys::cuGraphAddMemAllocNode(&mut first, graph, &third, 1, &mut memory).result()?;
        sys::cuGraphAddMemFreeNode(&mut second, graph, &first, 1, memory.dptr).result()?;
        let mut count = 0;
        sys::cuGraphGetNodes(graph, null_mut(), &mut count).result()?;
        anyhow::ensure!(count == 5, "{count} nodes");
        Ok(graph)
    }
}

/// The thread has no current context, so that only the node names the device.
#[mem_test(baseline = false, fault_sweep)]
fn a_node_names_its_device(trial: &mut Trial) -> anyhow::Result<()> {
    let (_device, stream) = stream()?;
    trial.iterate(|_| {
        // SAFETY: the pointers are to locals, and the graph is destroyed once.
        unsafe {
            sys::cuCtxSetCurrent(null_mut()).result()?;
            let mut graph = null_mut();
            sys::cuGraphCreate(&mut graph, 0).result()?;
            let mut node = null_mut();
            let mut memory = allocation(3000);
            let added = sys::cuGraphAddMemAllocNode(&mut node, graph, null(), 0, &mut memory);
            stream.context().bind_to_thread()?;
            sys::cuGraphDestroy(graph).result()?;
            Ok(added.result()?)
        }
    })
}

fn instantiated(graph: sys::CUgraph) -> anyhow::Result<sys::CUgraphExec> {
    let mut executable = null_mut();
    // SAFETY: the pointer is to a local.
    unsafe { sys::cuGraphInstantiateWithFlags(&mut executable, graph, 0).result()? };
    Ok(executable)
}

#[mem_test(baseline = false, max_growth = "0 B", max_retained = "1 GiB")]
fn built_graphs_are_kept(trial: &mut Trial) -> anyhow::Result<()> {
    let (_device, stream) = stream()?;
    trial.iterate(|_| {
        stream.context().bind_to_thread()?;
        // SAFETY: the executable exists.
        unsafe {
            let executable = instantiated(built(5000)?)?;
            sys::cuGraphLaunch(executable, stream.cu_stream()).result()?;
        }
        Ok(())
    })
}

#[mem_test(baseline = false, max_growth = "0 B")]
fn an_executable_is_updated(trial: &mut Trial) -> anyhow::Result<()> {
    let (_device, stream) = stream()?;
    trial.iterate(|_| {
        stream.context().bind_to_thread()?;
        // SAFETY: the handles exist until they are destroyed.
        unsafe {
            let (first, second) = (built(1000)?, built(3000)?);
            let executable = instantiated(first)?;
            sys::cuGraphDestroy(first).result()?;
            let mut outcome = std::mem::zeroed();
            sys::cuGraphExecUpdate_v2(executable, second, &mut outcome).result()?;
            sys::cuGraphLaunch(executable, stream.cu_stream()).result()?;
            let mut empty = null_mut();
            sys::cuGraphCreate(&mut empty, 0).result()?;
            let refused = sys::cuGraphExecUpdate_v2(executable, empty, &mut outcome);
            anyhow::ensure!(refused == sys::CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
            for graph in [second, empty] {
                sys::cuGraphDestroy(graph).result()?;
            }
            sys::cuGraphExecDestroy(executable).result()?;
        }
        Ok(())
    })
}

unsafe extern "C" {
    fn cudaStreamCreate(stream: *mut *mut c_void) -> c_int;
    fn cudaStreamDestroy(stream: *mut c_void) -> c_int;
    fn cudaStreamBeginCapture(stream: *mut c_void, mode: c_uint) -> c_int;
    fn cudaStreamEndCapture(stream: *mut c_void, graph: *mut *mut c_void) -> c_int;
    fn cudaMallocAsync(out: *mut *mut c_void, bytes: usize, stream: *mut c_void) -> c_int;
    fn cudaMemsetAsync(at: *mut c_void, value: c_int, bytes: usize, stream: *mut c_void) -> c_int;
    fn cudaFreeAsync(at: *mut c_void, stream: *mut c_void) -> c_int;
    fn cudaGraphInstantiate(out: *mut *mut c_void, graph: *mut c_void, flags: u64) -> c_int;
    fn cudaGraphLaunch(executable: *mut c_void, stream: *mut c_void) -> c_int;
    fn cudaGraphDestroy(graph: *mut c_void) -> c_int;
    fn cudaGraphExecDestroy(executable: *mut c_void) -> c_int;
}

/// As a library in C captures its work.
fn captured_by_the_runtime(keeps: bool) -> anyhow::Result<()> {
    let (mut stream, mut graph, mut executable, mut block) =
        (null_mut(), null_mut(), null_mut(), null_mut());
    let mut call = 0;
    let mut check = |code: c_int| {
        call += 1;
        anyhow::ensure!(code == 0, "call {call} returned {code}");
        Ok(())
    };
    // SAFETY: the pointers are to locals, and the memory and the handles are freed once.
    unsafe {
        check(cudaStreamCreate(&mut stream))?;
        check(cudaStreamBeginCapture(stream, 2))?;
        check(cudaMallocAsync(&mut block, 900, stream))?;
        check(cudaMemsetAsync(block, 1, 900, stream))?;
        check(cudaFreeAsync(block, stream))?;
        check(cudaStreamEndCapture(stream, &mut graph))?;
        check(cudaGraphInstantiate(&mut executable, graph, 0))?;
        check(cudaGraphLaunch(executable, stream))?;
        check(cudaGraphDestroy(graph))?;
        if !keeps {
            check(cudaGraphExecDestroy(executable))?;
        }
        check(cudaStreamDestroy(stream))
    }
}

#[mem_test(baseline = false, max_growth = "0 B")]
fn the_runtime_captures(trial: &mut Trial) -> anyhow::Result<()> {
    trial.iterate(|_| captured_by_the_runtime(false))
}

#[mem_test(baseline = false, max_growth = "0 B", max_retained = "1 GiB")]
fn executables_of_the_runtime_are_kept(trial: &mut Trial) -> anyhow::Result<()> {
    trial.iterate(|_| captured_by_the_runtime(true))
}

#[mem_test(baseline = false)]
fn a_graph_is_cloned(trial: &mut Trial) -> anyhow::Result<()> {
    let mut clone = null_mut();
    trial.iterate(|_| {
        // SAFETY: the pointer is to a local.
        let result = unsafe { sys::cuGraphClone(&mut clone, null_mut()) };
        anyhow::ensure!(result == sys::CUresult::CUDA_ERROR_NOT_SUPPORTED);
        Ok(())
    })
}

#[mem_test(baseline = false, max_growth = "0 B")]
fn a_kernel_is_compiled_at_run_time(trial: &mut Trial) -> anyhow::Result<()> {
    let stream = trial.device().as_cuda_device()?.cuda_stream();
    let ptx =
        nvrtc::compile_ptx("extern \"C\" __global__ void fill(float *out, int n) { out[0] = n; }")?;
    let module = stream.context().load_module(ptx)?;
    let fill = module.load_function("fill")?;
    let error = module.load_function("absent").expect_err("the source has no such kernel");
    anyhow::ensure!(error.0 == sys::CUresult::CUDA_ERROR_NOT_FOUND, "{error:?}");
    trial.iterate(|_| {
        let mut out = stream.alloc_zeros::<f32>(100)?;
        let count = 100;
        // SAFETY: the arguments are those of the kernel.
        unsafe {
            stream
                .launch_builder(&fill)
                .arg(&mut out)
                .arg(&count)
                .launch(LaunchConfig::for_num_elems(100))?;
        }
        Ok(())
    })
}

#[mem_test(baseline = false, max_growth = "0 B", max_retained = "1 GiB")]
fn registrations_are_kept(trial: &mut Trial) -> anyhow::Result<()> {
    let context = trial.device().as_cuda_device()?.cuda_stream().context().clone();
    let memory = vec![0u8; 64 * 4096];
    trial.iterate(|i| {
        context.bind_to_thread()?;
        let at = memory[(i % 64) * 4096..].as_ptr().cast_mut().cast();
        // SAFETY: the memory outlives the registrations.
        unsafe {
            sys::cuMemHostRegister_v2(at, 4096, 0).result()?;
            if i % 2 == 0 {
                sys::cuMemHostUnregister(at).result()?;
            }
        }
        Ok(())
    })
}
