//! The run that decides the growth may end in unexpected ways, and other runs come after it. None
//! of this may hide growth.

use crate::fixture::{Programs, Run};

const MODULE: &str = "further_runs";

fn leak_has_a_line(programs: &Programs, run: &Run, test: &str) {
    let finding = &run.test(test)["findings"][0];
    assert_eq!(finding["code"], "leak", "{test}: {finding}");
    assert!(finding["bytes_per_iteration"].as_u64() >= Some(4_096), "{test}: {finding}");
    let site = finding["sites"][0].to_string();
    assert!(site.contains(&programs.source()), "{test}: {finding}");
}

#[test]
fn growth_is_not_hidden_by_the_end_of_the_run_that_decides_it() {
    let programs = Programs::of(MODULE);
    for explain in ["failed", "always"] {
        let run = programs.run("cpu", &["--explain", explain]).exits(100);
        for test in
            ["leaks_late", "leaks_late_and_panics", "leaks_late_with_a_limit_of_resident_memory"]
        {
            leak_has_a_line(&programs, &run, test);
        }
        for (test, code) in [
            ("leaks_late_and_aborts", "crashed"),
            ("leaks_late_and_exits", "not-measured"),
            ("leaks_at_once_and_aborts", "crashed"),
        ] {
            let finding = &run.test(test)["findings"][0];
            assert_eq!(finding["code"], code, "{test}: {finding}");
            let message = finding["message"].as_str().unwrap_or_default();
            assert!(message.starts_with("in further iterations"), "{test}: {message}");
        }
        let clean = run.test("clean_and_panics");
        assert_eq!(clean["status"], "passed", "{clean}");
        let open = &run.test("fills_a_cache")["findings"][0];
        assert_eq!(open["code"], "undecided", "{open}");
    }
}

#[test]
fn a_leak_on_a_gpu_that_is_first_used_beyond_the_measured_iterations_is_found() {
    let programs = Programs::of(MODULE);
    let run = programs.run("sim:2xh200", &["further_runs::leaks_on_a_gpu"]).exits(100);
    for test in ["leaks_on_a_gpu_that_is_used_late", "leaks_on_a_gpu_that_is_opened_late"] {
        leak_has_a_line(&programs, &run, test);
        assert_eq!(run.test(test)["findings"][0]["space"], "cuda:1");
        assert_eq!(run.test(test)["findings"][0]["bytes_per_iteration"], 4_096);
    }
}
