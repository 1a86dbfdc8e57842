//! A runtime without candle's types: packages that use CUDA through cudarc, and those of a candle
//! that the runtime cannot name.

use std::collections::BTreeSet;

use crate::fixture::{Project, Run, memcheck, workspace};

const CUDARC_TESTS: &str = include_str!("no_candle/cudarc.rs");
const LLAMA_TESTS: &str = include_str!("no_candle/llama.rs");

/// The features of candle's cudarc, which is compiled already, so that only the package and the
/// runtime are.
const CUDARC: &str = "\
[dependencies.cudarc]
version = \"0.19\"
default-features = false
features = [\"std\", \"cublas\", \"cublaslt\", \"curand\", \"driver\", \"nvrtc\", \"f16\", \"f8\", \
            \"cuda-version-from-build-system\", \"dynamic-linking\"]
";

/// The manifest of a package that adds the runtime without candle.
pub(crate) fn manifest(name: &str, dependencies: &str) -> String {
    let runtime = workspace().join("memcheck-runtime").display().to_string();
    format!(
        "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[workspace]\n\n\
         {dependencies}\n[dev-dependencies.memcheck-runtime]\npath = \"{runtime}\"\n\
         default-features = false\nfeatures = [\"global-allocator\"]\n\n\
         [profile.dev]\ndebug = \"line-tables-only\"\n\n\
         [profile.dev.package.\"*\"]\ndebug = false\n"
    )
}

fn run(project: &Project, device: &str) -> Run {
    memcheck(project.path(), &["run", "--device", device, "--message-format", "json", "--no-ci"])
}

#[track_caller]
fn figures(run: &Run, test: &str, space: &str) -> [u64; 3] {
    let metrics = run.test(test)["metrics"][space].clone();
    let figure = |name: &str| {
        metrics[name].as_u64().unwrap_or_else(|| panic!("{test}: no {name} in {space}: {metrics}"))
    };
    ["setup", "peak_allocated", "growth"].map(figure)
}

#[track_caller]
fn notes(run: &Run, test: &str) -> String {
    run.test(test)["notes"].to_string()
}

/// What the tests of `no_candle/cudarc.rs` measure, whether cudarc is linked with CUDA or loads it.
fn assert_simulated(project: &Project) {
    let run = run(project, "sim:2xt4").exits(100);
    // A buffer of 4,096 bytes in set-up; one of 1,024 in each iteration.
    assert_eq!(run.codes("keeps_buffers"), ["leak"]);
    let leak = run.test("keeps_buffers")["findings"][0].clone();
    assert_eq!((&leak["space"], &leak["bytes_per_iteration"]), (&"cuda:0".into(), &1024.into()));
    assert!(leak["sites"][0]["file"].as_str().is_some_and(|file| file.ends_with("tests/mem.rs")));
    assert!(run.codes("drops_buffers").is_empty());
    assert_eq!(figures(&run, "drops_buffers", "cuda:0"), [4096, 4096 + 1024, 0]);
    // A body without an argument can use a GPU.
    assert!(run.codes("an_iteration_without_an_argument").is_empty());
    assert_eq!(figures(&run, "an_iteration_without_an_argument", "cuda:0"), [0, 2048, 0]);
    // Only the devices on which a body has allocated are judged.
    assert_eq!(run.codes("keeps_buffers_of_the_second_gpu"), ["leak"]);
    let second = run.test("keeps_buffers_of_the_second_gpu");
    assert_eq!(second["findings"][0]["space"], "cuda:1");
    assert_eq!(notes(&run, "keeps_buffers_of_the_second_gpu"), "null");
    // Without any, the host is, and a note reports it.
    assert_eq!(run.codes("keeps_vectors"), ["leak"]);
    assert_eq!(run.test("keeps_vectors")["findings"][0]["space"], "host");
    let note = notes(&run, "keeps_vectors");
    assert!(note.contains("no GPU was measured, only the host"), "{note}");
}

#[test]
#[ignore = "slow: just all"]
fn cudarc_is_counted_without_candle() {
    let project = Project::named("no-candle-cudarc");
    project.write("Cargo.toml", &manifest("no-candle-cudarc", CUDARC));
    project.write("tests/mem.rs", CUDARC_TESTS);
    let cpu = run(&project, "cpu").exits(100);
    assert_eq!(cpu.codes("keeps_vectors"), ["leak"]);
    assert_eq!(cpu.test("keeps_vectors")["findings"][0]["bytes_per_iteration"], 2 << 20);
    assert!(cpu.codes("drops_vectors").is_empty());
    assert_eq!(notes(&cpu, "keeps_vectors"), "null");
    assert_simulated(&project);

    // cudarc that loads CUDA at run time is answered and counted too.
    let loaded = CUDARC.replace("dynamic-linking", "dynamic-loading");
    project.write("Cargo.toml", &manifest("no-candle-cudarc", &loaded));
    assert_simulated(&project);

    project.write(
        "tests/mem.rs",
        "#[memcheck_runtime::mem_test]\nfn takes_a_device(device: &()) {}\n",
    );
    let refused = run(&project, "cpu").exits(101);
    refused.prints("a device needs the feature `candle` of memcheck-runtime").prints("device: &()");
}

const BLOCK: &str = "\
#[memcheck_runtime::mem_test]
fn block() {
    std::hint::black_box(vec![0u8; 8192]);
}
";

/// Cargo accepts only one version of insta 1, so that the runtime must not need its own. Downloads
/// insta 1.39.
#[test]
#[ignore = "slow: just all"]
fn baselines_are_compared_in_a_package_that_requires_an_older_insta() {
    let project = Project::named("no-candle-insta");
    let insta = "[dev-dependencies]\ninsta = \"=1.39.0\"\n";
    project.write("Cargo.toml", &manifest("no-candle-insta", insta));
    project.write("tests/mem.rs", BLOCK);
    let memcheck = |more: &[&str]| {
        let run = ["run", "--device", "cpu", "--message-format", "json", "--no-ci"];
        memcheck(project.path(), &[&run[..], more].concat())
    };
    assert_eq!(memcheck(&[]).exits(0).summary()["new"], 1);
    project.memcheck(&["accept"]).exits(0);
    assert_eq!(memcheck(&[]).exits(0).summary()["new"], 0);
    project.write("tests/mem.rs", &BLOCK.replace("8192", "16384"));
    let larger = memcheck(&[]).exits(100);
    assert_eq!(larger.codes("block"), ["peak-regression"]);
    assert!(project.has("tests/snapshots/mem__block@cpu.snap.new"));
    // Within the tolerance there is no new snapshot.
    memcheck(&["--tolerance", "100%"]).exits(0);
    assert!(!project.has("tests/snapshots/mem__block@cpu.snap.new"));
}

/// candle 0.8 has cudarc 0.13, which always loads CUDA at run time and panics above CUDA 12.8.
/// Downloads candle 0.8.
#[test]
#[ignore = "slow: just all"]
fn an_older_candle_is_counted_without_its_types() {
    let project = Project::named("no-candle-llama");
    let candle = "[dependencies]\ncandle-core = \"=0.8.4\"\ncandle-nn = \"=0.8.4\"\n\
                  candle-transformers = \"=0.8.4\"\n";
    project.write("Cargo.toml", &manifest("no-candle-llama", candle));
    project.write("tests/mem.rs", LLAMA_TESTS);
    for (device, space) in [("sim:t4", "cuda:0"), ("cpu", "host")] {
        let run = run(&project, device).exits(100);
        // The body asserts the closed formulas of weights and cache.
        assert!(
            run.codes("prefill_and_decode").is_empty(),
            "{:?}",
            run.codes("prefill_and_decode")
        );
        assert_eq!(run.codes("keeps_its_cache"), ["leak"], "{device}");
        let leak = run.test("keeps_its_cache")["findings"][0].clone();
        assert_eq!((&leak["space"], &leak["bytes_per_iteration"]), (&space.into(), &512.into()));
    }
}

/// The entries of a feature of memcheck-runtime, and of the features that it names.
fn entries(feature: &str) -> BTreeSet<String> {
    let manifest = std::fs::read_to_string(workspace().join("memcheck-runtime/Cargo.toml"));
    let manifest = manifest.expect("a manifest");
    let (mut found, mut next) = (BTreeSet::new(), vec![feature.to_owned()]);
    while let Some(name) = next.pop() {
        let mut lines = manifest.lines();
        let Some(list) = lines.find_map(|line| line.strip_prefix(&format!("{name} = ["))) else {
            continue;
        };
        let entries =
            list.trim_end_matches(']').split(", ").map(|it| it.trim_matches('"').to_owned());
        next.extend(entries.filter(|entry| found.insert(entry.clone())));
    }
    found
}

/// `candle-core?/cuda` builds no candle, but cargo looks for one that fits the lock file of the
/// package, and there can be none.
#[test]
fn the_simulated_device_alone_names_nothing_of_candle() {
    let of_candle =
        |feature| entries(feature).into_iter().filter(|it| it.contains("candle")).collect();
    let found: Vec<String> = of_candle("sim");
    assert_eq!(found, [""; 0]);
    let found: Vec<String> = of_candle("candle-cuda");
    assert_eq!(found, ["candle-core?/cuda"]);
}
