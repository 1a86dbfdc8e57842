//! A user's package outside this workspace, with only a dependency and two tests, on the CPU and on
//! the simulated GPU.

use crate::fixture::{CLEAN_AND_FIXED, CLEAN_AND_LEAKY, Programs, Project, memcheck};

fn assert_leak_is_found_fixed_and_accepted(
    device: &str,
    space: &str,
    with_leak: impl FnOnce(&Project),
) -> Project {
    let project = Project::new(CLEAN_AND_LEAKY);
    let arguments = ["run", "--device", device, "--message-format", "json", "--no-ci"];

    let leaky = memcheck(project.path(), &arguments).exits(100);
    let finding = leaky.test("leaky")["findings"][0].clone();
    assert_eq!(finding["code"], "leak");
    assert_eq!(finding["space"], space);
    // One tensor of 1024 f32 per iteration.
    assert_eq!(finding["bytes_per_iteration"], 4096);
    assert_eq!(finding["limit"], 0);
    assert_eq!(leaky.test("clean")["status"], "passed");
    let summary = leaky.summary();
    assert_eq!((&summary["passed"], &summary["failed"]), (&1.into(), &1.into()));

    with_leak(&project);

    project.write("tests/mem.rs", &format!("{PRELUDE}{CLEAN_AND_FIXED}"));
    let fixed = memcheck(project.path(), &arguments).exits(0);
    assert_eq!(fixed.summary()["new"], 2);
    project.memcheck(&["accept"]).exits(0);
    let accepted = memcheck(project.path(), &arguments).exits(0);
    assert_eq!(accepted.summary()["new"], 0);
    assert!(accepted.codes("clean").is_empty());
    project
}

const PRELUDE: &str =
    "use candle_core::{DType, Device, Tensor};\nuse memcheck_runtime::{Trial, mem_test};\n";

#[test]
fn a_leak_is_found_fixed_and_accepted_on_the_cpu() {
    let project =
        assert_leak_is_found_fixed_and_accepted("cpu", "host", a_plain_cargo_test_fails_too);
    // An example is compiled only if a flag selects it.
    project.write("examples/broken.rs", "compile_error!(\"this example was compiled\");\n");
    project.run(&[]).exits(0);
    project.run(&["--examples"]).prints("this example was compiled");
}

fn a_plain_cargo_test_fails_too(project: &Project) {
    let output = project.cargo_test().output().expect("cargo runs");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(101), "{stdout}");
    assert!(stdout.contains("test clean ... ok"), "{stdout}");
    assert!(stdout.contains("leak: host grows by 4,096 B (4.00 KiB) per iteration"), "{stdout}");
}

#[test]
fn a_leak_is_found_fixed_and_accepted_on_the_simulated_gpu() {
    assert_leak_is_found_fixed_and_accepted("sim:rtx4090", "cuda:0", |_| ());
}

#[test]
fn a_body_without_a_device_is_judged_on_the_host_wherever_it_runs() {
    let programs = Programs::of("user_package");
    for device in ["cpu", "sim:t4"] {
        let run = programs.run(device, &[]).exits(100);
        let finding = run.test("leaks_on_the_host")["findings"][0].clone();
        assert_eq!((&finding["code"], &finding["space"]), (&"leak".into(), &"host".into()));
        assert_eq!(finding["bytes_per_iteration"], 2 << 20, "{device}");
    }
}

#[test]
fn a_unit_test_in_src_is_a_memory_test_too() {
    let project = Project::new("");
    project.write(
        "src/lib.rs",
        "#[cfg(test)]
mod tests {
    mod inner {
        #[memcheck_runtime::mem_test(max_growth = \"0 B\")]
        fn clean() -> Result<(), String> {
            std::hint::black_box(vec![0u8; 4096]);
            Ok(())
        }
        #[memcheck_runtime::mem_test(baseline = false)]
        #[ignore = \"later\"]
        fn ignored() {}
        #[memcheck_runtime::mem_test(baseline = false)]
        #[should_panic(expected = \"boom\")]
        fn panics() {
            panic!(\"boom\");
        }
    }
}
",
    );
    let run = project.run(&[]).exits(0);
    let clean = run.test("tests::inner::clean");
    assert_eq!((&clean["status"], &clean["binary"]), (&"passed".into(), &project.name().into()));
    assert_eq!(clean["metrics"]["host"]["peak_allocated"], 4096);
    assert_eq!(run.test("tests::inner::panics")["status"], "passed");
    assert_eq!(run.test("tests::inner::ignored")["status"], "ignored");
    let krate = project.name().replace('-', "_");
    assert!(project.has(&format!("src/snapshots/{krate}__tests__inner__clean@cpu.snap.new")));
}
