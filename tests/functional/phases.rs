//! Phases of a body, allocations that are not measured, and counters of a program.

use serde_json::{Value, json};

use crate::fixture::{Programs, Run};

const KIB: u64 = 1 << 10;

fn space(device: &str) -> &'static str {
    if device == "cpu" { "host" } else { "cuda:0" }
}

#[track_caller]
fn phase(run: &Run, test: &str, phase: &str, space: &str) -> Value {
    let line = run.test(test);
    let figures = line["phases"][phase][space].clone();
    assert!(figures.is_object(), "{test}: {}", line["phases"]);
    figures
}

fn figures(peak: u64, growth: u64, start: u64) -> Value {
    json!({"peak_allocated": peak, "growth": growth, "live_at_start": start})
}

fn assert_phases_are_measured(device: &str) {
    let (programs, space) = (Programs::of("phases"), space(device));
    let run = &programs.run(device, &[]).exits(100);
    let of = |test: &str, name: &str| phase(run, test, name, space);
    for test in ["within_its_limits", "above_a_limit"] {
        assert_eq!(of(test, "load"), figures(64 * KIB, 0, 0), "{test}");
        assert_eq!(of(test, "decode"), figures(80 * KIB, 0, 64 * KIB), "{test}");
    }
    assert_eq!(run.codes("within_its_limits"), [""; 0]);
    assert_eq!(run.codes("above_a_limit"), ["peak-limit"]);
    let finding = run.test("above_a_limit")["findings"][0].clone();
    assert_eq!((&finding["phase"], &finding["space"]), (&json!("decode"), &json!(space)));
    assert_eq!((&finding["figure"], &finding["limit"]), (&json!(81_920), &json!(81_919)));
    assert_eq!(run.codes("lacks_a_phase"), ["not-measured"]);

    let keeps = "one_phase_keeps_memory";
    assert_eq!(run.codes(keeps), [""; 0]);
    assert_eq!(of(keeps, "prefill")["growth"], 0);
    assert_eq!(of(keeps, "decode")["growth"], 4 * KIB);

    let cache = "a_cache_that_is_cleared";
    assert_eq!(run.codes(cache), [""; 0]);
    assert_eq!(of(cache, "decode"), figures(8 * KIB, 0, 4 * KIB));
    assert_eq!(of(cache, "reset"), figures(8 * KIB, 0, 8 * KIB));
    assert_eq!(of(cache, "iteration"), figures(8 * KIB, 0, 0));

    let around = "a_phase_around_all_iterations";
    assert_eq!(run.codes(around), [""; 0]);
    assert!(run.test(around)["followed"].is_object(), "{}", run.test(around));
    assert_eq!(of(around, "all"), figures(4 * KIB, 0, 0));
    assert_eq!(of(around, "after"), figures(8 * KIB, 0, 0));

    let threads = "phases_of_two_threads";
    assert_eq!(of(threads, "first"), figures(64 * KIB, 0, 0));
    assert_eq!(of(threads, "second")["peak_allocated"], 64 * KIB);
}

#[test]
fn phases_have_figures_of_their_own_on_the_cpu() {
    assert_phases_are_measured("cpu");
}

#[test]
fn phases_have_figures_of_their_own_on_the_simulated_device() {
    assert_phases_are_measured("sim");
}

#[test]
fn a_phase_that_differs_from_its_baseline_is_a_regression() {
    let programs = Programs::of("phases").with_baselines();
    for device in ["cpu", "sim"] {
        let test = ["phases::with_a_baseline"];
        programs.run(device, &test).exits(0);
        programs.memcheck(&["accept"]).exits(0);
        programs.run(device, &test).exits(0);
        let family = if device == "cpu" { "cpu" } else { "cuda" };
        let baseline = programs.read(&programs.baseline(&format!("with_a_baseline@{family}")));
        for line in
            ["decode/growth: 0", "decode/peak_allocated: 16384", "prefill/peak_allocated: 65536"]
        {
            assert!(baseline.contains(&format!("  {line}\n")), "{baseline}");
        }
        let more = programs.run_with(device, &test, &[("PHASES_MORE", "1")]).exits(100);
        let line = more.test("with_a_baseline");
        assert_eq!(more.codes("with_a_baseline"), ["peak-regression"], "{line}");
        let finding = &line["findings"][0];
        assert_eq!(finding["phase"], "decode", "{finding}");
        assert_eq!((&finding["figure"], &finding["baseline"]), (&json!(24_576), &json!(16_384)));
    }
}

fn assert_fixtures_are_in_no_figure(device: &str) {
    let (programs, space) = (Programs::of("phases"), space(device));
    let filters = ["phases::fixtures", "phases::frees", "--max-iterations", "80"];
    let run = &programs.run(device, &filters).exits(100);
    for (test, setup) in [("fixtures_are_not_measured", 0), ("frees_are_measured", 0)] {
        let line = run.test(test);
        assert_eq!(run.codes(test), [""; 0], "{line}");
        let metrics = &line["metrics"][space];
        assert_eq!((&metrics["setup"], &metrics["retained"]), (&json!(setup), &json!(0)), "{test}");
        assert_eq!(metrics["growth"], 0, "{test}");
        if device == "sim" {
            assert_eq!(metrics["allocations"], 1, "{test}");
        }
    }
    let peak = |test| run.test(test)["metrics"][space]["peak_allocated"].clone();
    assert_eq!(peak("fixtures_are_not_measured"), 16 * KIB);
    assert_eq!(peak("frees_are_measured"), 64 * KIB);
    let measured = run.test("fixtures_are_measured");
    assert_eq!(run.codes("fixtures_are_measured"), ["leak", "retained"], "{measured}");
    assert_eq!(measured["findings"][0]["bytes_per_iteration"], 4 * KIB);
    assert_eq!(measured["metrics"][space]["setup"], 256 * KIB);
}

#[test]
fn fixtures_are_in_no_figure_on_the_cpu() {
    assert_fixtures_are_in_no_figure("cpu");
}

#[test]
fn fixtures_are_in_no_figure_on_the_simulated_device() {
    assert_fixtures_are_in_no_figure("sim");
}

fn assert_counters_are_judged(device: &str) {
    let run = &Programs::of("phases").run(device, &["phases::a_pool"]).exits(100);
    let metrics = |test| run.test(test)["metrics"]["counter/pool"].clone();
    assert_eq!(run.codes("a_pool_that_grows"), ["growth-limit"]);
    let finding = run.test("a_pool_that_grows")["findings"][0].clone();
    assert_eq!(finding["space"], "counter/pool");
    assert_eq!(finding["bytes_per_iteration"], 100);
    for (test, growth, setup, peak) in [
        ("a_pool_that_grows", 100, 1_000, 2_100),
        ("a_pool_that_grows_within_its_limit", 100, 1_000, 2_100),
        ("a_pool_that_fills", 0, 1_000, 1_500),
        ("a_pool_of_one_size", 0, 1_000, 1_000),
    ] {
        let metrics = metrics(test);
        assert_eq!(metrics["growth"], growth, "{test}: {metrics}");
        assert_eq!(metrics["setup"], setup, "{test}: {metrics}");
        assert_eq!(metrics["peak_allocated"], peak, "{test}: {metrics}");
        if test != "a_pool_that_grows" {
            assert_eq!(run.codes(test), [""; 0], "{test}: {}", run.test(test));
        }
    }
}

#[test]
fn counters_of_a_program_are_judged_on_the_cpu() {
    assert_counters_are_judged("cpu");
}

#[test]
fn counters_of_a_program_are_judged_on_the_simulated_device() {
    assert_counters_are_judged("sim");
}
