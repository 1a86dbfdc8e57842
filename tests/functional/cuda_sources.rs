//! Packages with CUDA code of their own, which `cudaforge` or `bindgen_cuda` compiles, and packages
//! whose dependencies always switch candle's `cuda` on. They build and are measured without a CUDA
//! toolkit.

use crate::fixture::{Project, Run, memcheck};

const KERNEL: &str = "\
extern \"C\" __global__ void add_one(const size_t n, float *out) {
    const size_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { out[i] += 1.0f; }
}
";

/// A kernel that is compiled to PTX and launched by its name.
const PTX_TESTS: &str = include_str!("cuda_sources/own_kernel.rs");

/// Functions in C that CUDA code defines.
const LAUNCHERS: &str = include_str!("cuda_sources/kernels.cu");
const SCRATCH: &str = include_str!("cuda_sources/scratch.cuh");
/// cargo links the library of a build script to the library of the package.
const DECLARATIONS: &str = include_str!("cuda_sources/launchers.rs");
const LAUNCHER_TESTS: &str = include_str!("cuda_sources/own_launcher.rs");

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

/// The notes about a test, and the number of its reads of unknown values.
fn notes(run: &Run, test: &str) -> (Vec<String>, u64) {
    let test = run.test(test);
    let notes = test["notes"].as_array().into_iter().flatten();
    let notes = notes.map(|note| note.as_str().expect("a text").to_owned());
    let launches = notes.filter(|note| note.contains("launch_")).collect();
    (launches, test["values"]["unknown_reads"].as_u64().unwrap_or(0))
}

fn launchers_in_a_library_are_measured(project: &Project, build: &str) {
    project.write("src/kernels.cu", LAUNCHERS);
    project.write("src/scratch.cuh", SCRATCH);
    project.write("build.rs", build);
    project.write("src/lib.rs", DECLARATIONS);
    let package = project.name().replace('-', "_");
    project.write("tests/mem.rs", &LAUNCHER_TESTS.replace("package", &package));
    let run = simulated(project).exits(100);
    let source = format!("src/kernels.cu of {} 0.1.0", project.name());

    // Three iterations: the values are unknown, the bytes are those of the program's own calls.
    let (launches, reads) = notes(&run, "a_launcher_is_called");
    let expected = format!(
        "3 launches of your own kernels: not simulated, so that the memory behind their arguments \
         is unknown: launch_add_one ({source}); `register_kernel` can give them host functions"
    );
    assert_eq!((launches, reads), (vec![expected], 3));
    assert_eq!(run.test("a_launcher_is_called")["metrics"]["cuda:0"]["peak_allocated"], 4000);
    assert!(run.codes("a_launcher_is_called").is_empty());

    assert_eq!(run.codes("outputs_are_kept"), ["leak"]);
    assert_eq!(run.test("outputs_are_kept")["findings"][0]["bytes_per_iteration"], 4000);
    let (launches, _) = notes(&run, "outputs_are_kept");
    let allocates = format!("launch_scan ({source}) calls cudaMallocAsync: ");
    assert!(launches[1].starts_with(&allocates), "{launches:?}");

    // The output alone is unknown: one read of it, and none of the input.
    assert_eq!((notes(&run, "inputs_are_known").1, run.codes("inputs_are_known")), (1, Vec::new()));

    let (launches, reads) = notes(&run, "a_name_of_candle");
    let clash = format!("launch_mmq_gguf_q4_0 ({source}) has the name of a launcher of candle: ");
    assert!(launches[1].starts_with(&clash), "{launches:?}");
    assert_eq!((reads, run.codes("a_name_of_candle")), (1, Vec::new()));

    assert_eq!(notes(&run, "a_host_function_computes_it"), (Vec::new(), 0));
    assert!(run.codes("a_host_function_computes_it").is_empty());
}

fn a_name_that_no_source_defines_is_refused_in_one_sentence(project: &Project) {
    project.write("src/kernels.cu", &LAUNCHERS.replace("launch_scan", "launch_other"));
    let refused = simulated(project).exits(101);
    let refused = refused.prints("the linker does not find `launch_scan`");
    refused.prints("no source that was compiled for the simulated device defines `launch_scan`");
}

#[test]
#[ignore = "slow: just all"]
fn cuda_code_that_cudaforge_compiles_is_measured() {
    let project = a_kernel_in_ptx_is_measured(
        "cudaforge = \"0.1.6\"",
        "fn main() {
    let out = std::path::PathBuf::from(std::env::var(\"OUT_DIR\").unwrap());
    let kernels = cudaforge::KernelBuilder::new().source_dir(\"src\").build_ptx().unwrap();
    kernels.write(out.join(\"ptx.rs\")).unwrap();
}
",
    );
    launchers_in_a_library_are_measured(
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
    a_name_that_no_source_defines_is_refused_in_one_sentence(&project);
}

/// Run by recipes of the justfile, once a week.
mod weekly {
    use super::*;

    /// A fork of candle-kernels with the version of the original, and one other kernel.
    #[test]
    #[ignore = "compiles candle again: just features"]
    fn the_kernels_of_an_unknown_source_have_unknown_values() {
        let project = Project::bare(
            "anyhow = \"1\"\n[dev-dependencies]\nmemcheck-runtime = { path = \"RUNTIME\" }\n\
             [patch.crates-io]\ncandle-kernels = { path = \"candle-kernels\" }\n",
        );
        let original = memcheck_sources::folder("candle-kernels");
        let mut folders = vec![original.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let Ok(text) = std::fs::read_to_string(&path) else { continue };
                let text = match path.ends_with("src/unary.cu") {
                    true => text.replace("uneg_f32, -x", "uneg_f32, -x - x"),
                    false => text,
                };
                let file = path.strip_prefix(&original).expect("a file of the package");
                project.write(&format!("candle-kernels/{}", file.display()), &text);
            }
        }
        assert!(project.read("candle-kernels/src/unary.cu").contains("-x - x"));
        project.write("tests/mem.rs", include_str!("cuda_sources/fork.rs"));
        let run = simulated(&project).exits(0);
        let notes = |test: &str| run.test(test)["notes"].to_string();
        let note = "3 launches of candle's kernels: not simulated, because memcheck does not know";
        assert!(notes("negated").contains(note), "{}", notes("negated"));
        assert!(notes("negated").contains("uneg_f32 (candle-kernels 0.11.1)"));
        assert_eq!(run.test("negated")["values"]["unknown_reads"], 3);
        // The other sources are those of the original.
        assert_eq!(run.test("affine")["values"], serde_json::Value::Null);
        assert!(!notes("affine").contains("not simulated"));
    }

    #[test]
    #[ignore = "downloads bindgen_cuda: just features"]
    fn cuda_code_that_bindgen_cuda_compiles_is_measured() {
        let project = a_kernel_in_ptx_is_measured(
            "bindgen_cuda = \"0.1.6\"",
            "fn main() {
    let out = std::path::PathBuf::from(std::env::var(\"OUT_DIR\").unwrap());
    let kernels = bindgen_cuda::Builder::default().build_ptx().unwrap();
    kernels.write(out.join(\"ptx.rs\")).unwrap();
}
",
        );
        launchers_in_a_library_are_measured(
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
        // Without the simulated device, a program that opens a GPU gets the driver's error.
        assert_eq!(run.codes("opens_a_gpu"), [""; 0], "{device}");
        let metrics = run.test("opens_a_gpu")["metrics"][space].clone();
        assert_eq!(metrics["peak_allocated"], 4096, "{device}");
        assert_eq!(run.codes("leaky"), ["leak"], "{device}");
        assert_eq!(run.test("leaky")["findings"][0]["bytes_per_iteration"], 4096, "{device}");
    }
}
