//! candle's features `cudnn` and `nccl` on the simulated device.
//!
//! A package with these features compiles candle again, which takes minutes, so that these tests
//! are ignored. `just features` runs them.

use crate::fixture::{Project, Run, memcheck_with};

const MANIFEST: &str = "\
anyhow = \"1\"
[dependencies.candle-core]
version = \"0.11.1\"
features = [\"cudnn\", \"nccl\"]
";

const CUDNN: &str = include_str!("candle_features/cudnn.rs");
const NCCL: &str = include_str!("candle_features/nccl.rs");
const TENSOR_PARALLEL: &str = include_str!("candle_features/tensor_parallel.rs");

fn project() -> Project {
    let project = Project::named("candle-features");
    let manifest = project.read("Cargo.toml");
    project.write("Cargo.toml", &manifest.replace("candle-core = \"0.11.1\"\n", MANIFEST));
    for (name, text) in [("cudnn", CUDNN), ("nccl", NCCL), ("tensor_parallel", TENSOR_PARALLEL)] {
        project.write(&format!("tests/{name}.rs"), text);
    }
    project
}

fn run(project: &Project, target: &str, device: &str, more: &[&str]) -> Run {
    let ids = tempfile::tempdir().expect("a folder");
    let common = ["run", "--test", target, "--device", device];
    let format = ["--message-format", "json", "--no-ci"];
    let arguments: Vec<&str> = common.iter().chain(&format).chain(more).copied().collect();
    let folder = ids.path().display().to_string();
    memcheck_with(project.path(), &arguments, &[("ID_FOLDER", &folder)])
}

#[track_caller]
fn figure(run: &Run, test: &str, space: &str, figure: &str) -> u64 {
    run.test(test)["metrics"][space][figure].as_u64().expect(figure)
}

fn convolutions_by_cudnn_have_an_estimated_workspace(project: &Project) {
    let run = run(project, "cudnn", "sim:h100", &[]).exits(100);
    for test in ["convolutions_are_computed", "convolution"] {
        assert!(run.codes(test).is_empty(), "{test}: {:?}", run.codes(test));
    }
    // Image, filter and output in f32, and the workspace: an `int` for each element of a filter.
    let (image, filter, output) = (2 * 3 * 32 * 32, 8 * 3 * 3 * 3, 2 * 8 * 32 * 32);
    let workspace = 4 * 3 * 3 * 3;
    let peak = 4 * (image + filter + output) + workspace;
    assert_eq!(figure(&run, "convolution", "cuda:0", "peak_allocated"), peak);
    let estimates = run.test("convolution")["estimates"].to_string();
    assert!(estimates.contains("peak_allocated"), "{estimates}");
    let without = run.test("no_convolution")["estimates"].to_string();
    assert!(!without.contains("peak_allocated"), "{without}");
    assert_eq!(run.codes("keeps_its_outputs"), ["leak"]);
    let finding = run.test("keeps_its_outputs")["findings"][0].clone();
    assert_eq!(finding["bytes_per_iteration"], 4 * output);
    let refused = run.test("an_algorithm_that_cudnn_does_not_have")["findings"][0].clone();
    assert_eq!(refused["code"], "test-failed");
    assert!(refused["message"].to_string().contains("CUDNN_STATUS_NOT_SUPPORTED"), "{refused}");
}

fn ranks_are_threads_or_processes(project: &Project) {
    let run = run(project, "nccl", "sim:2xh200", &["--test-threads", "2"]).exits(100);
    let ranks = ["rank_of_its_own_process::rank_0", "rank_of_its_own_process::rank_1"];
    for test in ["collectives_between_threads", "one_thread_in_groups"].into_iter().chain(ranks) {
        assert!(run.codes(test).is_empty(), "{test}: {:?}", run.codes(test));
    }
    // A rank that does not call what the others call.
    assert_eq!(run.codes("ranks_that_disagree"), ["test-failed"]);
}

/// Bytes of the weights of one rank of `tests/tensor_parallel.rs`, in f32, and of its activations
/// at the peak. The file derives them from the operations, and states the same in its assertions.
fn rank(ranks: u64) -> [u64; 2] {
    let (vocab, hidden, inner, layers) = (64, 32, 96, 2);
    let attention = 4 * hidden * hidden / ranks;
    let mlp = 3 * hidden * inner / ranks;
    let weights = 4 * (2 * vocab * hidden + layers * (attention + mlp));
    let (tokens, pairs) = (2 * 8, 2 * 8 * 8);
    let of_heads = (2 + 4) * tokens * hidden / ranks + 2 * pairs * 4 / ranks;
    [weights, 4 * (of_heads + 2 * tokens * hidden + 4 * tokens * inner / ranks + tokens)]
}

fn a_tensor_parallel_llama_has_its_closed_formula_on_each_rank(project: &Project) {
    let run = run(project, "tensor_parallel", "sim:4xh200", &[]).exits(100);
    for gpus in [2, 4] {
        let [weights, activations] = rank(gpus);
        let peak = weights + activations;
        let test = format!("tensor_parallel::gpus_{gpus}");
        assert!(run.codes(&test).is_empty(), "{:?}", run.codes(&test));
        for rank in 0..gpus {
            let space = format!("cuda:{rank}");
            assert_eq!(figure(&run, &test, &space, "setup"), weights, "{space}");
            assert_eq!(figure(&run, &test, &space, "growth"), 0, "{space}");
            assert_eq!(figure(&run, &test, &space, "peak_allocated"), peak, "{space}");
        }

        // The ranks are processes. The marks of the record have weights, peak and growth of those
        // that are not the test's own process.
        let test = format!("ranks_are_processes::gpus_{gpus}_keeps_0");
        assert!(run.codes(&test).is_empty(), "{:?}", run.codes(&test));
        let own = ["setup", "peak_allocated", "growth"];
        let own = own.map(|name| figure(&run, &test, "cuda:0", name));
        assert_eq!(own, [weights, peak, 0]);
        let marks = run.test(&test)["marks"].clone();
        let marks = marks.as_array().expect("marks").iter();
        let labels: Vec<_> = marks.map(|mark| mark["label"].as_str().expect("a label")).collect();
        let expected: Vec<_> =
            (1..gpus).map(|rank| format!("rank {rank}: {weights} {peak} 0")).collect();
        assert_eq!(labels, expected);

        // Rank 0 keeps its keys, its values and the logits.
        let test = format!("ranks_are_processes::gpus_{gpus}_keeps_1");
        assert_eq!(run.codes(&test), ["leak"]);
        let kept = 4 * (2 * 2 * 16 * 32 / gpus + 16 * 64);
        assert_eq!(run.test(&test)["findings"][0]["bytes_per_iteration"], kept);
    }
    // Batch 2, 8 tokens, hidden 32, f32: the sum that each rank keeps.
    let findings = run.test("keeps_the_sums")["findings"].clone();
    let findings = findings.as_array().expect("findings");
    assert_eq!(findings.len(), 2, "{findings:?}");
    for finding in findings {
        assert_eq!(
            (&finding["code"], &finding["bytes_per_iteration"]),
            (&"leak".into(), &2048.into())
        );
    }
}

/// One test, because all of them need the same build.
#[test]
#[ignore = "compiles candle with other features: just features"]
fn cudnn_and_nccl_link_and_run() {
    let project = project();
    convolutions_by_cudnn_have_an_estimated_workspace(&project);
    ranks_are_threads_or_processes(&project);
    a_tensor_parallel_llama_has_its_closed_formula_on_each_rank(&project);
}
