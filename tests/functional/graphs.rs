//! CUDA graphs, run-time compilation and registered memory, as programs use them through cudarc.

use crate::fixture::{Project, memcheck_with};

const TESTS: &str = r#"
use std::sync::Arc;

use anyhow::Context as _;
use candle_core::cuda_backend::cudarc::driver::{
    CudaGraph, CudaStream, LaunchConfig, PushKernelArg, result, sys,
};
use candle_core::cuda_backend::cudarc::nvrtc;
use candle_core::{Device, Tensor};
use memcheck_runtime::{Trial, mem_test};

fn capture(stream: &Arc<CudaStream>, work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<CudaGraph> {
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
            drop(unsafe { stream.alloc::<u8>(7000)? });
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

#[mem_test(baseline = false, max_growth = "0 B")]
fn a_kernel_is_compiled_at_run_time(trial: &mut Trial) -> anyhow::Result<()> {
    let stream = trial.device().as_cuda_device()?.cuda_stream();
    let ptx = nvrtc::compile_ptx("extern \"C\" __global__ void fill(float *out, int n) { out[0] = n; }")?;
    let module = stream.context().load_module(ptx)?;
    let fill = module.load_function("fill")?;
    let error = module.load_function("absent").expect_err("the source has no such kernel");
    anyhow::ensure!(error.0 == sys::CUresult::CUDA_ERROR_NOT_FOUND, "{error:?}");
    trial.iterate(|_| {
        let mut out = stream.alloc_zeros::<f32>(100)?;
        let count = 100;
        // SAFETY: the arguments are those of the kernel.
        unsafe {
            stream.launch_builder(&fill).arg(&mut out).arg(&count).launch(LaunchConfig::for_num_elems(100))?;
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
        let at = memory[(i as usize % 64) * 4096..].as_ptr().cast_mut().cast();
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
"#;

#[test]
fn graphs_programs_compiled_at_run_time_and_registrations_are_measured() {
    let project = Project::bare(
        "anyhow = \"1\"\n[dev-dependencies]\nmemcheck-runtime = { path = \"RUNTIME\" }\n",
    );
    project.write("tests/mem.rs", TESTS);
    let arguments = ["run", "--device", "sim:t4", "--message-format", "json", "--no-ci"];
    let run = memcheck_with(project.path(), &arguments, &[]).exits(100);
    let metrics = |test: &str, space: &str| run.test(test)["metrics"][space].clone();

    assert_eq!(run.codes("graphs_are_kept"), ["leak"]);
    let finding = run.test("graphs_are_kept")["findings"][0].clone();
    assert_eq!(
        (&finding["space"], &finding["bytes_per_iteration"]),
        (&"cuda:0/graph".into(), &7000.into())
    );
    let line = 1 + TESTS.lines().position(|line| line.contains("alloc::<u8>(7000)")).unwrap();
    assert!(finding.to_string().contains(&format!("\"line\":{line},")), "{finding}");

    assert_eq!(run.codes("a_graph_is_replayed"), [""; 0]);
    let graph = metrics("a_graph_is_replayed", "cuda:0/graph");
    // Both operations have two numbers of 4 bytes.
    assert_eq!((&graph["peak_allocated"], &graph["retained"]), (&16.into(), &0.into()));

    assert_eq!(run.codes("a_kernel_is_compiled_at_run_time"), [""; 0]);
    assert_eq!(metrics("a_kernel_is_compiled_at_run_time", "cuda:0")["peak_allocated"], 400);

    assert_eq!(run.codes("registrations_are_kept"), ["leak"]);
    let finding = run.test("registrations_are_kept")["findings"][0].clone();
    assert_eq!(
        (&finding["space"], &finding["bytes_per_iteration"]),
        (&"cuda:0/pinned".into(), &2048.into())
    );
}
