//! Values of the simulated device: a sampler works with them, reads of unknown ones are marked, and
//! the setting that switches them off comes from every source.

use serde_json::json;

use crate::fixture::{Programs, Run, memcheck_with};

fn programs() -> Programs {
    Programs::of("values")
}

/// The filters among the arguments lack the module.
fn run(programs: &Programs, tests: &[&str], arguments: &[&str]) -> Run {
    let filters: Vec<String> = tests.iter().map(|test| format!("values::{test}")).collect();
    let filters = filters.iter().map(String::as_str);
    programs.run("sim:t4", &filters.chain(arguments.iter().copied()).collect::<Vec<_>>())
}

#[test]
fn a_sampler_with_a_temperature_has_the_values_of_the_cpu() {
    let programs = programs();
    let known = run(&programs, &["sampler", "read"], &["--strict-values"]).exits(0);
    for test in ["sampler", "read"] {
        assert!(known.test(test).get("values").is_none(), "{}", known.stdout);
    }
    assert!(!known.stderr.contains("unknown"), "{}", known.stderr);

    // The probabilities are zeros, which the sampler refuses.
    let unknown = run(&programs, &["sampler", "read", "kept"], &["--values", "never"]).exits(100);
    assert_eq!(unknown.codes("sampler"), ["test-failed"]);
    let values = unknown.test("sampler")["values"].clone();
    assert_eq!(values["unknown_reads"], 1, "{values}");
    assert_eq!(values["at"], json!([programs.site("the sampler")]));
    assert_eq!(values["sites"][0]["element"], "f32", "{values}");
    // Ten measured iterations and two before them, and not those that follow the test further.
    let values = unknown.test("read")["values"].clone();
    assert_eq!((&values["unknown_reads"], &values["unknown_bytes"]), (&12.into(), &48.into()));
    let number = programs.site("one number");
    assert_eq!(values["at"], json!([number]));
    assert_eq!(unknown.test("read")["status"], "passed");
    assert_eq!(unknown.exact_metrics("read"), known.exact_metrics("read"));

    // Iterations beyond the measured ones decide the growth, so that their reads have a mark too.
    assert_eq!(unknown.codes("kept_and_seen_late"), ["leak"]);
    let values = unknown.test("kept_and_seen_late")["values"].clone();
    assert_eq!(values["unknown_reads"], 0, "{values}");
    assert!(values["further_unknown_reads"].as_u64() > Some(100), "{values}");
    assert_eq!(values["at"], json!([programs.site("seen late")]));

    let arguments = ["--values", "never", "--strict-values"];
    let strict = run(&programs, &["sampler", "read", "kept"], &arguments).exits(104);
    let finding = strict.test("read")["findings"][0].clone();
    assert_eq!(finding["code"], "not-measured");
    let message = format!(
        "the body read unknown values of device memory 12 times, as zeros: at {number} (f32)"
    );
    assert_eq!(finding["message"], message);
    assert!(finding["hint"].as_str().unwrap().contains("strict_values"), "{finding}");
    assert_eq!(strict.codes("sampler")[..2], ["test-failed", "not-measured"]);
    let codes = strict.codes("kept_and_seen_late");
    assert!(codes.iter().any(|code| code == "not-measured"), "{codes:?}");
}

#[test]
fn small_models_have_the_values_of_the_cpu_by_default() {
    let tests = ["product_of_a_layer", "bert_mini", "llama_mini"];
    let run = run(&programs(), &tests, &["--strict-values"]).exits(0);
    for test in tests {
        assert!(run.test(test).get("values").is_none(), "{}", run.stdout);
    }
}

#[test]
fn the_line_of_a_test_and_its_reports_have_the_mark() {
    let programs = programs();
    let arguments = [
        "run",
        "--device",
        "sim:t4",
        "--no-ci",
        "values::read",
        "--values",
        "never",
        "--report",
        "html=r.html",
        "--report",
        "markdown=r.md",
        "--report",
        "junit=r.xml",
    ];
    let run = programs.memcheck(&arguments).exits(0);
    let line = run.stderr.lines().find(|line| line.contains("PASS")).unwrap();
    assert!(line.ends_with("growth 0 B  12 unknown reads"), "{line}");
    let run = run.prints(&note(&programs));
    assert_eq!(run.stderr.matches("unknown reads").count(), 1, "{}", run.stderr);
    let number = programs.site("one number");
    let escaped = number.replace('/', "&#47;");
    assert!(programs.read("r.html").contains(">12 unknown reads<"));
    assert!(programs.read("r.md").contains(&format!("as zeros: at {escaped} (f32)")));
    let property = format!("name=\"unknown_reads.at\" value=\"{number}\"");
    assert!(programs.read("r.xml").contains(&property), "{}", programs.read("r.xml"));
    let explained = memcheck_with(programs.path(), &["explain", "unknown-values"], &[]).exits(0);
    assert!(explained.stdout.starts_with("# unknown-values"), "{}", explained.stdout);
}

/// The note about the test `read`.
fn note(programs: &Programs) -> String {
    format!(
        "note: the body read unknown values of device memory 12 times, as zeros: at {} (f32): \
         `cargo memcheck explain unknown-values`",
        programs.site("one number")
    )
}

const FAILED_ASSERT: &str = "the kernel is_u32_f32 got the id 64, which is not in 0..64";

#[test]
fn an_id_outside_of_its_dim_fails_with_the_kernel_and_the_id() {
    let programs = programs();
    let known = run(&programs, &["an_id_"], &[]).exits(100);
    assert_eq!(known.test("an_id_inside")["status"], "passed");
    assert_eq!(known.codes("an_id_outside"), ["test-failed"]);
    let finding = known.test("an_id_outside")["findings"][0].clone();
    let text = |part: &str| finding[part].as_str().unwrap_or_default().to_owned();
    assert!(text("message").contains("CUDA_ERROR_ASSERT"), "{finding}");
    assert!(text("hint").starts_with(FAILED_ASSERT), "{finding}");
    // Without values, no kernel can compare the ids.
    let unknown = run(&programs, &["an_id_"], &["--values", "never"]).exits(0);
    assert_eq!(unknown.test("an_id_outside")["values"]["unknown_reads"], 12);
    // The CPU names the id in the error.
    let cpu = programs.run("cpu", &["values::an_id_"]).exits(100);
    assert_eq!(cpu.codes("an_id_outside"), ["test-failed"]);
    assert_eq!(cpu.test("an_id_inside")["status"], "passed");
    let message = cpu.test("an_id_outside")["findings"][0]["message"].to_string();
    assert!(message.contains("64"), "{message}");
}

#[test]
fn a_plain_cargo_test_prints_unknown_reads_and_failed_asserts() {
    let programs = programs();
    let plain = |test: &str, values: &str| {
        let mut command = programs.simulated_cargo_test();
        command
            .args(["--", "--exact", "--show-output", &format!("values::{test}")])
            .env("MEMCHECK_DEVICE", "sim:t4")
            .env("MEMCHECK_VALUES", values);
        let output = command.output().expect("cargo runs");
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&text).into_owned())
    };
    let note = note(&programs);
    let (code, text) = plain("read", "never");
    assert!(code == Some(0) && text.contains(&note), "{text}");
    let (code, text) = plain("read", "auto");
    assert!(code == Some(0) && !text.contains("unknown values"), "{text}");
    let (code, text) = plain("an_id_outside", "auto");
    assert!(code == Some(101) && text.contains(&format!("hint: {FAILED_ASSERT}")), "{text}");
    assert!(text.contains(&format!("memcheck-sim: {FAILED_ASSERT}")), "{text}");
}

#[test]
fn the_setting_comes_from_every_source() {
    let programs = programs();
    let run = |arguments: &[&str], variables: &[(&str, &str)]| {
        programs.run_with("sim:t4", arguments, variables)
    };
    let reads = |run: &Run, test: &str| run.test(test)["values"]["unknown_reads"].clone();
    let attribute = run(&["values::without_values"], &[]).exits(0);
    assert_eq!(reads(&attribute, "without_values"), 12);
    let flag = run(&["values::without_values", "--values", "1 MiB"], &[]).exits(0);
    assert!(reads(&flag, "without_values").is_null());
    let never = ("MEMCHECK_VALUES", "never");
    let variable = run(&["values::before_and_after"], &[never]).exits(0);
    assert_eq!(reads(&variable, "before_and_after_the_iterations"), 2);
    let variables = [never, ("MEMCHECK_STRICT_VALUES", "true")];
    run(&["values::before_and_after"], &variables).exits(104);
    run(&["values::before_and_after", "--strict-values=false"], &variables).exits(0);
    let wrong = run(&["--values", "some"], &[]).exits(2);
    assert!(wrong.stderr.contains("neither `auto`, `never` nor a size"), "{}", wrong.stderr);

    let config = "[default]\nvalues = \"never\"\nstrict_values = true\n";
    programs.configure(config);
    let strict = run(&["values::before_and_after"], &[]).exits(104);
    assert_eq!(strict.codes("before_and_after_the_iterations"), ["not-measured"]);
}

#[test]
fn a_host_function_computes_a_kernel_of_the_program() {
    let programs = Programs::of_cuda("values");
    let known = programs.run("sim:t4", &["--strict-values"]).exits(104);
    assert!(known.codes("registered").is_empty(), "{}", known.stdout);
    // Without a function, or with one that cannot compute the launch, the result is unknown.
    for test in ["unregistered", "refused"] {
        assert_eq!(known.codes(test), ["not-measured"]);
        assert_eq!(known.test(test)["values"]["unknown_reads"], 1);
    }
}
