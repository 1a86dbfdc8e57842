//! The package's own feature for CUDA: it is on in builds for a GPU, so that a run measures the
//! program that its users run there.

use crate::fixture::{Project, Run, memcheck, memcheck_with};
use crate::machine::Machine;

/// The features of a package as most have them, and one that only a list can switch on.
const FEATURES: &str = "
[features]
cuda = [\"candle-core/cuda\"]
cudnn = [\"cuda\", \"candle-core/cudnn\"]
wide = []

[dev-dependencies]
memcheck-runtime = { path = \"RUNTIME\" }
";

/// The size of the buffer shows which features are on.
const TESTS: &str = "\
use candle_core::{DType, Device, Tensor};
use memcheck_runtime::mem_test;

#[mem_test]
fn buffer(device: &Device) -> candle_core::Result<()> {
    let on_gpu = if cfg!(feature = \"cuda\") { 2048 } else { 1024 };
    let size = if cfg!(feature = \"wide\") { 4 * on_gpu } else { on_gpu };
    Tensor::zeros(size, DType::F32, device).map(drop)
}

#[mem_test]
fn on_the_host() {
    std::hint::black_box(vec![0u8; 4096]);
}
";

fn project() -> Project {
    let project = Project::bare(FEATURES);
    project.write("tests/mem.rs", TESTS);
    project
}

const SIM: [&str; 6] = ["run", "--device", "sim", "--message-format", "json", "--no-ci"];

#[track_caller]
fn peak(run: &Run, space: &str) -> u64 {
    run.test("buffer")["metrics"][space]["peak_allocated"].as_u64().expect("a peak")
}

fn run(project: &Project, more: &[&str]) -> Run {
    memcheck(project.path(), &[&SIM[..], more].concat()).exits(0)
}

/// The line of the header about features.
fn header(run: &Run) -> Option<String> {
    run.stderr.lines().find(|line| line.starts_with("features: ")).map(str::to_owned)
}

#[test]
fn a_build_for_a_gpu_has_the_packages_own_feature_unless_it_is_left_out() {
    let project = project();
    let name = project.name();
    let by_default = run(&project, &[]);
    assert_eq!(peak(&by_default, "cuda:0"), 8192);
    let own = "the package's own for CUDA; --no-package-cuda leaves it off";
    assert_eq!(header(&by_default), Some(format!("features: {name}/cuda on sim:h200 ({own})")));
    let listed = project.memcheck(&["list", "--device", "sim"]).exits(0);
    assert_eq!(header(&listed), header(&by_default));

    let without = run(&project, &["--no-package-cuda"]);
    assert_eq!((peak(&without, "cuda:0"), header(&without)), (4096, None));
    let on_cpu = project.run(&[]).exits(0);
    assert_eq!((peak(&on_cpu, "host"), header(&on_cpu)), (4096, None));
    // The user's own flag has switched it on for all devices.
    let by_flag = run(&project, &["--features", "cuda"]);
    assert_eq!((peak(&by_flag, "cuda:0"), header(&by_flag)), (8192, None));

    let wide = format!("features: {name}/wide on sim:h200 (--features-gpu)");
    let listed = run(&project, &["--features-gpu", "wide"]);
    assert_eq!((peak(&listed, "cuda:0"), header(&listed)), (16384, Some(wide)));
    let by_variable =
        memcheck_with(project.path(), &SIM, &[("MEMCHECK_FEATURES_GPU", "cuda,wide")]).exits(0);
    assert_eq!(peak(&by_variable, "cuda:0"), 32768);
    let unknown = memcheck(project.path(), &[&SIM[..], &["--features-gpu", "wyde"]].concat());
    unknown.exits(102).prints("wyde");

    project.write(".config/memcheck.toml", "package_cuda = false\n");
    assert_eq!(peak(&run(&project, &[]), "cuda:0"), 4096);
    let keys = "[device]\nrun = [\"sim\", \"cpu\"]\n[device.sim]\nfeatures = [\"wide\"]\n";
    project.write(".config/memcheck.toml", keys);
    let both = memcheck(project.path(), &["run", "--message-format", "json", "--no-ci"]).exits(0);
    let of_key = format!("features: {name}/wide on sim:h200 (device.sim.features)");
    assert_eq!(header(&both), Some(of_key));
    let peaks: Vec<_> = both
        .json()
        .iter()
        .filter(|line| line["test"] == "buffer")
        .map(|line| {
            let (sim, cpu) = (&line["metrics"]["cuda:0"], &line["metrics"]["host"]);
            let space = if sim.is_null() { cpu } else { sim };
            space["peak_allocated"].clone()
        })
        .collect();
    assert_eq!(peaks, [16384, 4096]);
}

#[test]
#[ignore = "slow: just all"]
fn a_baseline_of_a_gpu_holds_for_the_features_that_it_was_measured_with() {
    let project = project();
    run(&project, &["--no-package-cuda"]);
    project.memcheck(&["accept"]).exits(0);
    let snapshot = |test: &str, family: &str| {
        project.read(&format!("tests/snapshots/mem__{test}@{family}.snap"))
    };
    assert!(!snapshot("buffer", "cuda").contains("features"));

    // Another program, and not a regression.
    let other = run(&project, &[]);
    assert_eq!(other.codes("buffer"), ["uncomparable-baseline"]);
    let message = other.test("buffer")["findings"][0]["message"].to_string();
    assert!(message.contains("another set of features for the GPU (none -> cuda)"), "{message}");
    project.memcheck(&["accept"]).exits(0);
    assert!(snapshot("buffer", "cuda").contains("  features: cuda\n"));
    assert_eq!(run(&project, &[]).codes("buffer"), [""; 0]);

    // A test without a device has one baseline, on whichever device it runs.
    assert!(!snapshot("on_the_host", "cpu").contains("features"));
    assert_eq!(project.run(&[]).exits(0).codes("on_the_host"), [""; 0]);

    // An archive remembers the features of its builds.
    let archive = ["archive", "--archive-file", "a.tar.zst", "--device", "sim"];
    project.memcheck(&archive).exits(0).prints("/cuda on sim:h200");
    let machine = Machine::new();
    machine.copy_from(&project, "a.tar.zst");
    let there = machine.run(&["--device", "sim"]).exits(0);
    assert_eq!(there.codes("buffer"), [""; 0]);
    let name = project.name();
    assert_eq!(header(&there), Some(format!("features: {name}/cuda on sim:h200 (the archive)")));
}

#[test]
fn a_feature_that_is_not_clear_is_named_and_left_off() {
    let flash = FEATURES.replace(
        "cuda = [\"candle-core/cuda\"]",
        "a = [\"candle-core/cuda\"]\n\
                                  b = [\"candle-core/cuda\"]\ncuda = [\"a\", \"candle-core/nccl\"]",
    );
    let project = Project::bare(&flash);
    project.write("tests/mem.rs", TESTS);
    let measured = run(&project, &[]);
    assert_eq!((peak(&measured, "cuda:0"), header(&measured)), (4096, None));
    measured.prints(
        "off in the build for a GPU, because several features enable candle's CUDA: \
         `--features-gpu a` switches `a` on",
    );
}

/// The build fails with the feature on, and the message says how to leave it off.
#[test]
#[ignore = "slow: just all"]
fn a_build_that_fails_with_the_feature_names_the_flag() {
    let project = project();
    project.write(
        "src/lib.rs",
        "#[cfg(feature = \"cuda\")]\ncompile_error!(\"needs a real toolkit\");\n",
    );
    let failed = memcheck(project.path(), &SIM).exits(101).prints("needs a real toolkit");
    failed.prints("`--no-package-cuda` builds without");
    assert_eq!(peak(&run(&project, &["--no-package-cuda"]), "cuda:0"), 4096);
}
