//! Limits of the memory that iterations keep in all, and of the bytes that one iteration allocates.

use serde_json::Value;

use crate::fixture::{Programs, Run};

fn finding(run: &Run, test: &str, code: &str) -> Value {
    let test = run.test(test);
    let findings = test["findings"].as_array().expect("findings");
    let found = findings.iter().find(|finding| finding["code"] == code);
    found.unwrap_or_else(|| panic!("no {code}: {test}")).clone()
}

fn assert_limits_are_judged(device: &str) {
    let programs = Programs::of("limits");
    let run = programs.run(device, &[]).exits(100);
    for test in
        ["cache_of_its_declared_size", "long_cache_of_its_declared_size", "loads_a_model_once"]
    {
        assert_eq!(run.codes(test), [""; 0], "{test}: {}", run.test(test));
    }
    let space = if device == "cpu" { "host" } else { "cuda:0" };
    assert_eq!(run.test("cache_of_its_declared_size")["metrics"][space]["growth"], 0);

    assert_eq!(run.codes("cache_above_its_declared_size"), ["kept-limit"]);
    let kept = finding(&run, "cache_above_its_declared_size", "kept-limit");
    assert_eq!((&kept["figure"], &kept["limit"]), (&262_144.into(), &261_120.into()), "{kept}");
    assert_eq!(kept["space"], space);
    let site = &kept["sites"][0];
    let place = format!("{}:{}", site["file"].as_str().unwrap_or_default(), site["line"]);
    assert_eq!(place, programs.site("the entry"), "{kept}");

    // Growth is judged beyond the limit.
    assert_eq!(run.codes("leak_beyond_the_limit"), ["leak", "kept-limit"]);
    let kept = finding(&run, "leak_beyond_the_limit", "kept-limit");
    let figure = kept["figure"].as_u64().unwrap();
    assert!(figure > 819_200 && figure.is_multiple_of(4_096), "{kept}");
    let leak = finding(&run, "leak_beyond_the_limit", "leak");
    assert_eq!(leak["bytes_per_iteration"], 4_096, "{leak}");
    assert_eq!(leak["hint"], Value::Null, "{leak}");
    let leak = finding(&run, "leak_without_a_limit", "leak");
    assert!(leak["hint"].as_str().is_some_and(|hint| hint.contains("`max_kept = ")), "{leak}");

    let allocated = finding(&run, "loads_a_model_in_every_iteration", "allocated-limit");
    assert_eq!(run.codes("loads_a_model_in_every_iteration"), ["allocated-limit"]);
    assert_eq!((&allocated["figure"], &allocated["limit"]), (&1_052_672.into(), &65_536.into()));
    assert_eq!(allocated["sites"][0]["bytes"], 1 << 20, "{allocated}");

    // A flag is stronger than an attribute, and the smaller model is below it.
    let arguments = ["limits::loads_a_model", "--max-allocated", "2 MiB"];
    programs.run(device, &arguments).exits(0);
    let variable = [("MEMCHECK_MAX_KEPT", "1 KiB")];
    let run = programs.run_with(device, &["limits::cache_of"], &variable).exits(100);
    assert!(run.codes("cache_of_its_declared_size").contains(&"kept-limit".to_owned()));
    programs.configure("[[override]]\ntest = \"limits::cache_of*\"\nmax_kept = \"1 KiB\"\n");
    programs.run(device, &["limits::cache_of"]).exits(100);
}

#[test]
fn kept_and_allocated_bytes_have_limits_on_the_simulated_gpu() {
    assert_limits_are_judged("sim");
}

#[test]
fn kept_and_allocated_bytes_have_limits_on_the_cpu() {
    assert_limits_are_judged("cpu");
}
