//! Problems of GPUs instead of programs, on the simulated device: other processes on the card,
//! faults of driver and hardware, and slices of a card. Also the holders of memory that the program
//! did not request.

use serde_json::{Value, json};

use crate::fixture::{Programs, Run, remove_process};

const MIB: u64 = 1 << 20;
/// The estimated size of a simulated context. The workspace of cuBLAS is not part of it.
const CONTEXT: u64 = 518 * MIB;

fn programs() -> Programs {
    Programs::of("hardware")
}

fn figure(line: &Value, name: &str) -> u64 {
    line["metrics"]["cuda:0"][name].as_u64().unwrap_or_else(|| panic!("no {name} in {line}"))
}

/// All findings of a test as one text, including hints.
fn findings_text(run: &Run, test: &str) -> String {
    run.test(test)["findings"].to_string()
}

#[test]
fn memory_beyond_the_pool_is_itemized_or_the_report_gives_the_reason() {
    let programs = programs();
    // cuBLAS's own memory, as measured on an H200, and as documented for an RTX 4090.
    for (device, workspace) in [("sim:h200", 67_240_960), ("sim:rtx4090", 4 * MIB)] {
        let followed = programs.run(device, &["hardware::ten", "--explain", "always"]).exits(0);
        let line = followed.test("ten_mebibytes");
        assert_eq!(line["estimates"], json!(["reserved", "peak_reserved", "device_used"]));
        let beyond = figure(&line, "device_used") - figure(&line, "reserved");
        assert_eq!(beyond, CONTEXT + workspace);
        let item = json!({"holder": "libcublas.so.13", "bytes": workspace, "blocks": 1});
        let expected = json!({
            "space": "cuda:0", "bytes": beyond, "items": [item], "rest": CONTEXT,
        });
        assert_eq!(line["untracked"], expected);
    }
    // A run that only counts does not load CUPTI, and must measure the same.
    let counted = programs.run("sim:h200", &["hardware::ten", "--explain", "never"]).exits(0);
    let line = counted.test("ten_mebibytes");
    assert!(line["untracked"].is_null(), "{line}");
    // Without the CUPTI library all of this memory is in `rest`.
    let without = ["hardware::ten", "--explain", "always", "--runner", "env -u MEMCHECK_SIM_NVML"];
    let line = programs.run("sim:h200", &without).exits(0).test("ten_mebibytes");
    let reason = &line["untracked"]["reason"];
    assert_eq!(reason, "the simulated toolkit has no CUPTI: `MEMCHECK_SIM_NVML` is not set");
    assert_eq!(
        (&line["untracked"]["items"], &line["untracked"]["rest"]),
        (&json!([]), &Value::Null)
    );
    assert!(
        line["notes"]
            .to_string()
            .contains("the simulated toolkit has no NVML: `MEMCHECK_SIM_NVML` is not set"),
        "{line}"
    );
}

#[test]
fn another_process_is_reported_only_if_it_holds_memory_that_the_test_needs() {
    let programs = programs();
    fn others(text: &str) -> [(&str, &str); 1] {
        [("MEMCHECK_SIM_PROCESSES", text)]
    }
    let alone = programs.run("sim:t4,capacity=100MiB", &["hardware::ten"]).exits(0);
    // 10 x 2^18 x 4 bytes, and the same again for the result.
    let needed = 20 * MIB;
    let other = format!("4711:python:{}B", 100 * MIB - needed);
    let enough =
        programs.run_with("sim:t4,capacity=100MiB", &["hardware::ten"], &others(&other)).exits(0);
    let (mut then, mut now) = (alone.test("ten_mebibytes"), enough.test("ten_mebibytes"));
    [&mut then, &mut now].into_iter().for_each(remove_process);
    assert_eq!(figure(&now, "peak_allocated"), needed);
    for part in ["findings", "metrics", "iterations", "status"] {
        assert_eq!(then[part], now[part], "{part}");
    }
    assert!(now["others"].is_null(), "the other process is reported: {now}");

    // The process holds one byte more, and another process is on a device that the test does not
    // use.
    let more = format!("4711:python:{}B,12:other:1MiB@1", 100 * MIB - needed + 1);
    let machine = "sim:2xt4,capacity=100MiB";
    let full = programs.run_with(machine, &["hardware::ten"], &others(&more)).exits(100);
    assert_eq!(full.codes("ten_mebibytes"), ["out-of-memory"]);
    let holder = json!([{
        "space": "cuda:0", "pid": 4711, "name": "python", "bytes": 100 * MIB - needed + 1,
    }]);
    assert_eq!(full.test("ten_mebibytes")["others"], holder);
    let text = findings_text(&full, "ten_mebibytes");
    for part in
        ["process 4711 (python) holds 83,886,081 B (80.0 MiB) of cuda:0", "end the other process"]
    {
        assert!(text.contains(part), "`{part}` is not in {text}");
    }
    assert!(!text.contains("(other)"), "{text}");
    // Without the other process, the card itself is too small, and the report must not blame a
    // process.
    let small = programs.run("sim:t4,capacity=15MiB", &["hardware::ten"]).exits(100);
    assert_eq!(small.codes("ten_mebibytes"), ["out-of-memory"]);
    assert!(!findings_text(&small, "ten_mebibytes").contains("process"));
    // The test does not fit into its own limit, regardless of other processes.
    let fits = programs.run_with(
        "sim:t4,capacity=100MiB",
        &["hardware::ten", "--fits", "15 MiB"],
        &others(&other),
    );
    assert_eq!(fits.exits(100).codes("ten_mebibytes"), ["does-not-fit"]);
    // If the canary has no room, the test must be `not-measured`.
    let all =
        programs.run_with("sim:t4", &["hardware::ten"], &others("4711:python:1TiB")).exits(104);
    let text = findings_text(&all, "ten_mebibytes");
    assert!(text.contains("no block can be allocated on `sim:t4`"), "{text}");
    assert!(text.contains("process 4711 (python) holds"), "{text}");
    let wrong = programs.run_with("sim:t4", &["hardware::ten"], &others("4711:python")).exits(104);
    assert!(findings_text(&wrong, "ten_mebibytes").contains("MEMCHECK_SIM_PROCESSES"));
}

#[test]
fn a_hardware_fault_has_its_own_finding_and_does_not_affect_the_next_test() {
    let programs = programs();
    let with = |faults: &str, code: u8| {
        programs.run_with("sim:t4", &[], &[("MEMCHECK_SIM_FAULTS", faults)]).exits(code)
    };
    // One fault of each place that fails. The words and their errors are a unit test of memcheck-sim
    // (`faults.rs`), and the hints of all errors one of memcheck-core (`judgement/fault.rs`).
    // The device cannot be opened: exit code 105, with a hint. A body without a device does not
    // need it and passes.
    for (faults, parts) in [
        ("init=no-device", ["CUDA_ERROR_NO_DEVICE", "CUDA_VISIBLE_DEVICES"]),
        ("driver=12040", ["CUBLAS_STATUS_NOT_INITIALIZED", "update the driver"]),
        ("ecc-at=1", ["CUDA_ERROR_ECC_UNCORRECTABLE", "nvidia-smi"]),
    ] {
        let run = with(faults, 105);
        for test in ["ten_mebibytes", "a_kernel_in_every_iteration"] {
            assert_eq!(run.codes(test), ["no-device"], "{faults}");
            assert_eq!(run.test(test)["status"], "not-measured", "{faults}");
            let text = findings_text(&run, test);
            for part in parts {
                assert!(text.contains(part), "{faults}: `{part}` is not in {text}");
            }
        }
        assert_eq!(run.test("small")["status"], "passed", "{faults}");
    }
    // The device opens, but the first free fails, so that the canary cannot prove the probe.
    let run = with("free-fails=1", 104);
    assert_eq!(run.codes("ten_mebibytes"), ["not-measured"]);
    let text = findings_text(&run, "ten_mebibytes");
    for part in [
        "the first free failed on `sim:t4`",
        "CUDA_ERROR_UNKNOWN",
        "`MEMCHECK_SIM_FAULTS=free-fails=1` causes this",
    ] {
        assert!(text.contains(part), "`{part}` is not in {text}");
    }
    assert_eq!(run.test("small")["status"], "passed");
    // The device fails while the body runs: the test is measured, exit code 100.
    for (faults, parts) in [
        ("module=no-binary", ["CUDA_ERROR_NO_BINARY_FOR_GPU", "CUDA_COMPUTE_CAP"]),
        ("ecc-at=30", ["CUDA_ERROR_ECC_UNCORRECTABLE", "--gpu-reset"]),
        ("launch-fails-at=1", ["CUDA_ERROR_LAUNCH_FAILED", "compute-sanitizer"]),
    ] {
        let run = with(faults, 100);
        for test in ["ten_mebibytes", "a_kernel_in_every_iteration"] {
            assert_eq!(run.codes(test), ["device-fault"], "{faults}");
            let text = findings_text(&run, test);
            for part in parts {
                assert!(text.contains(part), "{faults}: `{part}` is not in {text}");
            }
        }
        assert_eq!(run.test("small")["status"], "passed", "{faults}");
    }
    // `ten_mebibytes` launches a kernel in each of 12 iterations. Every process counts its own
    // launches, so no process has a 13th.
    let clean = with("launch-fails-at=13", 0);
    assert_eq!(clean.test("ten_mebibytes")["status"], "passed");
}

#[test]
fn nvml_reports_the_figures_of_a_slice() {
    let programs = programs();
    let whole = programs.run("sim:h200", &["hardware::ten"]).exits(0).test("ten_mebibytes");
    let slice = programs.run("sim:h200,mig", &["hardware::ten"]).exits(0).test("ten_mebibytes");
    assert_eq!(figure(&slice, "device_used"), figure(&whole, "device_used"));
    assert!(slice["notes"].is_null(), "{slice}");
    // If NVML has no figures, the report must give the reason, and nothing else may change.
    let silent = [("MEMCHECK_SIM_FAULTS", "nvml=silent")];
    let line = programs
        .run_with("sim:h200,mig", &["hardware::ten"], &silent)
        .exits(0)
        .test("ten_mebibytes");
    assert!(line["metrics"]["cuda:0"]["device_used"].is_null(), "{line}");
    let notes = line["notes"].to_string();
    assert!(notes.contains("NVML is not available: the device is a slice of a card"), "{notes}");
    let line =
        programs.run_with("sim:h200", &["hardware::ten"], &silent).exits(0).test("ten_mebibytes");
    assert!(!line["notes"].to_string().contains("slice"), "{line}");
}

#[test]
fn hidden_gpus_cannot_be_selected() {
    let programs = programs();
    let bin = programs.path().join("bin");
    let list = "GPU 0: NVIDIA H200 (UUID: GPU-1a2b)\n  MIG 1g.18gb     Device  0: (UUID: MIG-77)\n\
                GPU 1: Tesla T4 (UUID: GPU-1a3c)\n";
    programs.write("bin/nvidia-smi", &format!("#!/bin/sh\ncat <<'END'\n{list}END\n"));
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(bin.join("nvidia-smi"), executable).unwrap();
    let inherited = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{inherited}", bin.display());
    let run_on = |device: &str, visible: &str| {
        let variables = [("PATH", path.as_str()), ("CUDA_VISIBLE_DEVICES", visible)];
        programs.run_with(device, &["hardware::ten"], &variables).exits(105)
    };
    run_on("cuda:1", "MIG-77").prints("the driver lists 1 GPU");
    run_on("cuda", "5").prints("CUDA_VISIBLE_DEVICES=5 names none of the 2 GPUs");
    run_on("cuda:2", "1,0").prints("the driver lists 2 GPUs");
}
