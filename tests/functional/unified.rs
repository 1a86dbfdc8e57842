//! Machines on which host and device share one memory, and the limits of the host in a test on a
//! GPU.

use crate::fixture::{Programs, Run};

/// Runs the tests that the filters match on these machines.
fn run(programs: &Programs, machine: &str, filters: &[&str]) -> Run {
    programs.run(&format!("sim:{machine}"), filters)
}

fn programs() -> Programs {
    Programs::of_cuda("unified")
}

const MIB: u64 = 1 << 20;

#[test]
fn host_and_device_share_the_memory_of_a_unified_machine() {
    let programs = programs();
    let unified = run(&programs, "gb10,capacity=64MiB", &["--verbose"]).exits(100);
    let finding = |test: &str| unified.test(test)["findings"][0].clone();
    let peak = |test: &str| unified.test(test)["unified"]["peak_allocated"].as_u64().expect(test);

    // 40 MiB of the host and 40 MiB of the device.
    let kept = finding("the_host_keeps_its_copy");
    assert_eq!((&kept["code"], &kept["figure"]), (&"out-of-memory".into(), &(80 * MIB).into()));
    let message = kept["message"].as_str().expect("a message");
    assert!(message.contains("41,943,040 B (40.0 MiB) of the host, 83,886,080 B"), "{message}");
    assert!(message.contains("on NVIDIA GB10 with 67,108,864 B (64.0 MiB) for both"), "{message}");
    assert_eq!(unified.codes("the_host_drops_each_part_first"), [""; 0]);
    assert_eq!(peak("the_host_drops_each_part_first"), 50 * MIB);

    let last = finding("the_host_grows_last");
    assert_eq!((&last["code"], &last["figure"]), (&"out-of-memory".into(), &(70 * MIB).into()));
    assert_eq!((peak("the_host_grows_last"), &last["limit"]), (70 * MIB, &(64 * MIB).into()));
    let message = last["message"].as_str().expect("a message");
    assert!(message.contains("together at the peak, and NVIDIA GB10 has 67,108,864"), "{message}");

    let fits = finding("both_must_fit");
    assert_eq!((&fits["code"], &fits["figure"]), (&"does-not-fit".into(), &(40 * MIB).into()));

    // The content of a mapped file that the device has too.
    let mapped = unified.test("the_file_stays_mapped")["mapped_files"].clone();
    assert_eq!(mapped[0]["copied"], 4 * MIB, "{mapped}");
    assert!(mapped[0]["path"].as_str().is_some_and(|path| path.ends_with("kept.safetensors")));
    let twice = "4,194,304 B (4.00 MiB) are held twice: in the mapped file";
    assert_eq!(unified.stderr.matches(twice).count(), 1, "{}", unified.stderr);
    assert!(unified.test("the_file_is_unmapped")["mapped_files"].is_null());
    for test in ["the_file_stays_mapped", "the_file_is_unmapped"] {
        assert_eq!(unified.codes(test), [""; 0], "{test}");
    }
    let line = "the_file_stays_mapped  peak 8.00 MiB  growth 0 B  host and device ";
    assert!(unified.stderr.contains(line), "{}", unified.stderr);
}

#[test]
fn a_machine_reports_the_properties_of_its_memory() {
    let programs = programs();
    let reports = |machine: &str, expected: &str| {
        let run = run(&programs, machine, &["unified::properties", "--no-capture"]).exits(0);
        let all = format!("{}{}", run.stdout, run.stderr);
        assert!(all.contains(&format!("properties: {expected}\n")), "{machine}: {all}");
    };
    // Bytes of the host come out of the memory of the device, or not.
    let (shared, separate) = ("host 8388608 returned true", "host 0 returned true");
    reports("gb10", &format!("integrated 1 pageable 1 concurrent 1 {shared} total 128523960320"));
    reports(
        "jetson-agx-orin-64gb",
        &format!("integrated 1 pageable 0 concurrent 0 {shared} total 65893089280"),
    );
    reports(
        "gh200",
        &format!("integrated 0 pageable 1 concurrent 1 {separate} total 103079215104"),
    );
    // Two memories: the same tests as on the unified machine pass.
    let separate = run(
        &programs,
        "h200,capacity=64MiB",
        &["unified::the_host_keeps", "unified::the_host_grows", "unified::the_file"],
    );
    let separate = separate.exits(0);
    assert!(separate.test("the_host_keeps_its_copy")["unified"].is_null());
    let mapped = separate.test("the_file_stays_mapped")["mapped_files"].clone();
    assert!(mapped[0]["bytes"].is_u64() && mapped[0]["copied"].is_null(), "{mapped}");
    assert!(!separate.stderr.contains("held twice"), "{}", separate.stderr);
}

#[test]
fn the_host_of_a_test_on_a_gpu_is_judged_if_a_limit_asks_for_it() {
    let programs = programs();
    let run = run(
        &programs,
        "h200",
        &["unified::the_host_leaks", "unified::the_host_is", "unified::the_peak"],
    )
    .exits(100);
    let leak = run.test("the_host_leaks")["findings"][0].clone();
    assert_eq!(run.codes("the_host_leaks"), ["leak"]);
    assert_eq!((&leak["space"], &leak["limit"]), (&"host".into(), &0.into()));
    assert_eq!(leak["bytes_per_iteration"], 5000);
    assert_eq!(leak["sites"][0]["file"], programs.source());
    let small = run.test("the_host_leaks_small_blocks")["findings"][0].clone();
    assert_eq!((&small["code"], &small["space"]), (&"leak".into(), &"host/small".into()));
    assert_eq!(small["bytes_per_iteration"], 24);
    assert_eq!(run.codes("the_host_leaks_without_a_limit"), [""; 0]);
    assert_eq!(run.codes("the_host_is_clean"), [""; 0]);
    assert!(!run.test("the_host_is_clean")["growth"]["host"]["quiet"].is_null());
    let peak = run.test("the_peak_of_the_host_is_high")["findings"][0].clone();
    assert_eq!((&peak["code"], &peak["space"]), (&"peak-limit".into(), &"host".into()));
    assert_eq!((&peak["figure"], &peak["limit"]), (&(2 * MIB).into(), &MIB.into()));
}
