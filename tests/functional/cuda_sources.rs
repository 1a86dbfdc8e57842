//! Packages with CUDA code of their own, which `cudaforge` or `bindgen_cuda` compiles, and packages
//! whose dependencies always switch candle's `cuda` on. They build and are measured without a CUDA
//! toolkit, or are refused in one sentence.

use crate::fixture::{Project, Run, memcheck};

const KERNEL: &str = "\
extern \"C\" __global__ void add_one(const size_t n, float *out) {
    const size_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { out[i] += 1.0f; }
}
";

/// A kernel that is compiled to PTX and launched by its name.
const PTX_TESTS: &str = include_str!("cuda_sources/own_kernel.rs");

/// A function in C that CUDA code defines.
const LAUNCHER_TESTS: &str = "\
use memcheck_runtime::mem_test;

unsafe extern \"C\" {
    fn launch_add_one(count: usize, out: *mut f32);
}

#[mem_test(baseline = false)]
fn a_launcher_is_called() {
    // SAFETY: nothing is written.
    unsafe { launch_add_one(0, std::ptr::null_mut()) }
}
";

fn simulated(project: &Project) -> Run {
    memcheck(project.path(), &["run", "--device", "sim:t4", "--message-format", "json", "--no-ci"])
}

fn a_kernel_in_ptx_is_measured(dependency: &str, build: &str) -> Project {
    let project = Project::bare(&format!(
        "anyhow = \"1\"\n[build-dependencies]\n{dependency}\n\
         [dev-dependencies]\nmemcheck-runtime = {{ path = \"RUNTIME\" }}\n"
    ));
    project.write("src/kernels.cu", KERNEL);
    project.write("build.rs", build);
    project.write("tests/mem.rs", PTX_TESTS);
    let run = simulated(&project).exits(100);
    assert!(run.codes("a_kernel_is_launched").is_empty());
    let metrics = run.test("a_kernel_is_launched")["metrics"]["cuda:0"].clone();
    assert_eq!(metrics["peak_allocated"], 4000);
    assert_eq!(run.codes("outputs_are_kept"), ["leak"]);
    assert_eq!(run.test("outputs_are_kept")["findings"][0]["bytes_per_iteration"], 4000);
    project
}

fn a_launcher_is_refused_in_one_sentence(project: &Project, build: &str) {
    project.write("build.rs", build);
    project.write("tests/mem.rs", LAUNCHER_TESTS);
    let refused = simulated(project).exits(101);
    let refused = refused.prints("the linker does not find `launch_add_one`");
    refused.prints("if CUDA code defines `launch_add_one`, the simulated device cannot run it");
}

#[test]
#[ignore = "slow: just all"]
fn cuda_code_that_cudaforge_compiles_is_measured_or_refused() {
    let project = a_kernel_in_ptx_is_measured(
        "cudaforge = \"0.1.6\"",
        "fn main() {
    let out = std::path::PathBuf::from(std::env::var(\"OUT_DIR\").unwrap());
    let kernels = cudaforge::KernelBuilder::new().source_dir(\"src\").build_ptx().unwrap();
    kernels.write(out.join(\"ptx.rs\")).unwrap();
}
",
    );
    a_launcher_is_refused_in_one_sentence(
        &project,
        "fn main() {
    let out = std::path::PathBuf::from(std::env::var(\"OUT_DIR\").unwrap());
    let builder = cudaforge::KernelBuilder::new().source_dir(\"src\");
    builder.build_lib(out.join(\"libkernels.a\")).unwrap();
    println!(\"cargo::rustc-link-search=native={}\", out.display());
    println!(\"cargo::rustc-link-lib=static=kernels\");
}
",
    );
}

/// Run by recipes of the justfile, once a week.
mod weekly {
    use super::*;

    #[test]
    #[ignore = "downloads bindgen_cuda: just features"]
    fn cuda_code_that_bindgen_cuda_compiles_is_measured_or_refused() {
        let project = a_kernel_in_ptx_is_measured(
            "bindgen_cuda = \"0.1.6\"",
            "fn main() {
    let out = std::path::PathBuf::from(std::env::var(\"OUT_DIR\").unwrap());
    let kernels = bindgen_cuda::Builder::default().build_ptx().unwrap();
    kernels.write(out.join(\"ptx.rs\")).unwrap();
}
",
        );
        a_launcher_is_refused_in_one_sentence(
            &project,
            "fn main() {
    let out = std::path::PathBuf::from(std::env::var(\"OUT_DIR\").unwrap());
    bindgen_cuda::Builder::default().build_lib(out.join(\"libkernels.a\"));
    println!(\"cargo::rustc-link-search=native={}\", out.display());
    println!(\"cargo::rustc-link-lib=static=kernels\");
}
",
        );
    }
}

/// The `cuda` of candle-core is a feature of a dependency of the package.
#[test]
#[ignore = "slow: just all"]
fn a_package_that_always_switches_cuda_on_is_measured_on_every_leg() {
    let project = Project::bare(
        "on-the-gpu = { path = \"on-the-gpu\" }\n\
         [dev-dependencies]\nmemcheck-runtime = { path = \"RUNTIME\" }\n",
    );
    project.write(
        "on-the-gpu/Cargo.toml",
        "[package]\nname = \"on-the-gpu\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
         [dependencies]\ncandle-core = { version = \"0.11.1\", features = [\"cuda\"] }\n",
    );
    project.write(
        "on-the-gpu/src/lib.rs",
        "pub fn zeros(device: &candle_core::Device) -> candle_core::Result<candle_core::Tensor> {
    candle_core::Tensor::zeros(1024, candle_core::DType::F32, device)
}
",
    );
    project.write("tests/mem.rs", include_str!("cuda_sources/on_the_gpu.rs"));
    for (device, space) in [("cpu", "host"), ("sim:t4", "cuda:0")] {
        let arguments = ["run", "--device", device, "--message-format", "json", "--no-ci"];
        let run = memcheck(project.path(), &arguments).exits(100);
        assert_eq!(run.codes("clean"), [""; 0], "{device}");
        let metrics = run.test("clean")["metrics"][space].clone();
        assert_eq!(metrics["peak_allocated"], 4096, "{device}");
        assert_eq!(run.codes("leaky"), ["leak"], "{device}");
        assert_eq!(run.test("leaky")["findings"][0]["bytes_per_iteration"], 4096, "{device}");
    }
}
