//! Behavior of devices that only the simulated one can show on demand: several GPUs, a card's
//! capacity, frees that fail, a lost device, pinned memory.

use crate::fixture::{Programs, Run};

fn run(device: &str, test: &str, faults: &str) -> Run {
    let test = format!("simulated::{test}");
    let faults = [("MEMCHECK_SIM_FAULTS", faults)];
    Programs::of_cuda("simulated").run_with(device, &["--exact", &test], &faults)
}

#[test]
fn a_leak_on_the_second_gpu_is_found_there() {
    let run = run("sim:2xrtx4090", "on_the_second_gpu", "").exits(100);
    let finished = run.test("on_the_second_gpu");
    let finding = &finished["findings"][0];
    assert_eq!((&finding["code"], &finding["space"]), (&"leak".into(), &"cuda:1".into()));
    assert_eq!(finding["bytes_per_iteration"], 1024);
    assert_eq!(finished["metrics"]["cuda:0"]["growth"], 0);
    // The memory of the second GPU's canary must not count for the body: 12 tensors of 1 KiB.
    assert_eq!(finished["metrics"]["cuda:1"]["peak_allocated"], 12 * 1024);
}

#[test]
fn nvml_figures_belong_to_the_device_of_the_driver() {
    // NVML's numbers differ from the driver's. Here they are in the opposite order.
    let run = run("sim:2xrtx4090", "kept_on_both", "").exits(0);
    let metrics = run.test("kept_on_both")["metrics"].clone();
    let figure = |space: &str, name: &str| metrics[space][name].as_u64().expect(name);
    assert_eq!(figure("cuda:0", "retained"), 100 << 20);
    assert_eq!(figure("cuda:1", "retained"), 300 << 20);
    // The pool of the first GPU, and the estimates of its context and of cuBLAS.
    let used = figure("cuda:0", "reserved") + (518 << 20) + (4 << 20);
    assert_eq!(figure("cuda:0", "device_used"), used);
}

#[test]
fn a_card_is_out_of_memory_one_byte_above_its_capacity() {
    // 10 * 2^18 * 4 bytes are 10 MiB exactly.
    run("sim:t4,capacity=10MiB", "ten_mebibytes", "").exits(0);
    let full = run("sim:t4,capacity=10485759B", "ten_mebibytes", "").exits(100);
    assert_eq!(full.codes("ten_mebibytes"), ["out-of-memory"]);
    let faulty = run("sim:t4", "ten_mebibytes", "oom-at=5").exits(100);
    assert_eq!(faulty.codes("ten_mebibytes"), ["out-of-memory"]);
}

#[test]
fn a_free_that_fails_leaves_its_block_live() {
    let run = run("sim:t4", "ten_mebibytes", "free-fails=4").exits(100);
    let finding = run.test("ten_mebibytes")["findings"][0].clone();
    // cudarc keeps the error of the free and returns it from its next call.
    assert_eq!(finding["code"], "test-failed");
    assert_eq!(run.test("ten_mebibytes")["metrics"]["cuda:0"]["retained"], 10 << 20);
}

#[test]
fn a_lost_device_fails_its_test_and_not_the_run() {
    let run = run("sim:t4", "ten_mebibytes", "lost-at=30").exits(100);
    assert_eq!(run.codes("ten_mebibytes"), ["device-fault"]);
}

#[test]
fn a_gpu_that_the_body_opens_itself_is_judged() {
    let run = run("sim:2xrtx4090", "opens_the_second_gpu_itself", "").exits(100);
    assert_eq!(run.codes("opens_the_second_gpu_itself"), ["leak"]);
    let finding = run.test("opens_the_second_gpu_itself")["findings"][0].clone();
    assert_eq!(
        (&finding["space"], &finding["bytes_per_iteration"]),
        (&"cuda:1".into(), &1024.into())
    );
}

#[test]
fn pinned_host_memory_is_a_separate_space() {
    let passing = run("sim:t4", "pinned_memory", "").exits(0);
    let pinned = passing.test("pinned_memory")["metrics"]["cuda:0/pinned"].clone();
    assert_eq!((&pinned["peak_allocated"], &pinned["retained"]), (&5000.into(), &0.into()));
    for (test, space, rate, retained) in [
        ("pinned_memory_is_kept", "cuda:0/pinned", 5000, 60_000),
        ("managed_memory_is_kept", "cuda:0/managed", 3000, 36_000),
    ] {
        let failing = run("sim:t4", test, "").exits(100);
        assert_eq!(failing.codes(test), ["leak", "retained"]);
        for (finding, field, bytes) in [(0, "bytes_per_iteration", rate), (1, "figure", retained)] {
            let finding = failing.test(test)["findings"][finding].clone();
            assert_eq!((&finding["space"], &finding[field]), (&space.into(), &bytes.into()));
        }
    }
}

#[test]
fn an_invalid_fault_is_an_error_and_is_never_ignored() {
    let run = run("sim:t4", "ten_mebibytes", "oom-at=soon").exits(104);
    let finding = run.test("ten_mebibytes")["findings"][0].clone();
    assert_eq!(finding["code"], "not-measured");
    assert!(finding["message"].as_str().unwrap().contains("oom-at"), "{finding}");
}
