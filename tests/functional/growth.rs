//! Programs that cannot be distinguished within ten iterations. The command must follow each of
//! them until its growth is decided.

mod caches;
mod further_runs;

use serde_json::Value;

use crate::fixture::{Programs, Run};

/// The finding `leak` of a test, which must come first.
#[track_caller]
fn leak(run: &Run, test: &str) -> Value {
    assert_eq!(run.codes(test)[0], "leak", "{test}: {}", run.test(test)["growth"]);
    let line = run.test(test);
    let finding = line["findings"][0].clone();
    let space = finding["space"].as_str().unwrap();
    // The finding, the metrics and the shares of the sites must have the same figure.
    assert_eq!(finding["bytes_per_iteration"], line["metrics"][space]["growth"], "{test}");
    let shares = finding["sites"].as_array().unwrap().iter();
    let shares: u64 = shares.filter_map(|site| site["bytes_per_iteration"].as_u64()).sum();
    assert_eq!(finding["bytes_per_iteration"], shares, "{test}: {}", finding["sites"]);
    finding
}

fn assert_growth_is_decided(device: &str) {
    let programs = Programs::of("growth");
    let run = &programs.run(device, &[]).exits(100);
    let host = device == "cpu";
    let mib = 1 << 20;
    for (test, rate) in [
        ("leaks_from_the_sixth_iteration_on", 4 * mib),
        ("leaks_beside_a_queue", 4 * mib / 3),
        ("leaks_beside_a_list_that_is_flushed::every_2", 4 * mib / 3),
        ("leaks_beside_a_list_that_is_flushed::every_3", 4 * mib / 3),
        ("leaks_beside_a_list_that_is_flushed::every_5", 4 * mib / 3),
        ("leaks_beside_a_list_that_is_flushed::every_8", 4 * mib / 3),
        ("leaks_in_every_50th_iteration", 4 * mib / 50),
        ("leaks_in_every_50th_iteration_beside_work", 4 * mib / 50),
        ("enlarged_beside_random_sizes", mib / 16 / 13),
    ] {
        let found = leak(run, test)["bytes_per_iteration"].as_u64().unwrap();
        assert!(found.abs_diff(rate) <= 1, "{test}: {found} is not {rate}");
    }
    for test in ["leaks_but_not_in_the_last_iteration", "leaks_in_99_of_100_iterations"] {
        let found = leak(run, test)["bytes_per_iteration"].as_u64().unwrap();
        assert!((39 * mib / 10..=4 * mib).contains(&found), "{test}: {found}");
    }
    let optimizers = leak(run, "optimizers_kept");
    assert_eq!(optimizers["bytes_per_iteration"], 526_336);
    let sites = optimizers["sites"].as_array().unwrap();
    assert_eq!(sites.iter().filter_map(|site| site["count"].as_u64()).sum::<u64>(), 40);
    for test in [
        "two_events",
        "ring::length_2",
        "ring::length_12",
        "ring::length_40",
        "cache_of_16_keys",
        "freed_by_another_thread",
        "fails_beyond_its_data",
        "counts_its_calls",
    ] {
        assert_eq!(run.codes(test), [""; 0], "{test}: {}", run.test(test));
    }
    // Both events have a remark.
    let events = run.test("two_events")["notes"].to_string();
    assert!(events.contains("8,388,608 B (8.00 MiB) in 2 blocks of"), "{events}");
    assert!(events.contains(&format!("at {}:", programs.source())), "{events}");
    // The leak begins after the measured iterations, and the further iterations must not change any
    // other figure.
    let late = run.test("leaks_in_every_50th_iteration");
    let space = if host { "host" } else { "cuda:0" };
    assert_eq!(late["metrics"][space]["peak_allocated"], 0, "{late}");
    assert_eq!(late["repeat"], Value::Null, "{late}");
    let followed = run.test("ring::length_12")["followed"].clone();
    assert_eq!(followed["decided"], true, "{followed}");
    assert!(followed["iterations"].as_u64().unwrap() > 60, "{followed}");
    if host {
        let found = leak(run, "appends_for_ever")["bytes_per_iteration"].as_u64().unwrap();
        assert!(found.abs_diff(30_000) < 3_000, "{found}");
        assert_eq!(run.codes("appends_up_to_a_bound"), [""; 0]);
        assert_eq!(run.codes("nodes_that_are_replaced"), [""; 0]);
        for (test, rate) in [
            ("nodes_in_every_second_iteration", 4_800_000),
            ("nodes_in_every_iteration", 9_600_000),
            ("embeddings_in_a_list", 280),
        ] {
            let found = leak(run, test);
            assert_eq!(found["space"], "host/small", "{test}");
            assert_eq!(found["bytes_per_iteration"], rate, "{test}");
        }
        let peak = |test| run.test(test)["metrics"]["host/small"]["peak_allocated"].clone();
        assert_eq!(peak("nodes_in_every_iteration"), 115_200_000);
    }
}

#[test]
fn growth_that_ten_iterations_do_not_show_is_decided_on_the_simulated_gpu() {
    assert_growth_is_decided("sim");
}

#[test]
fn growth_that_ten_iterations_do_not_show_is_decided_on_the_cpu() {
    assert_growth_is_decided("cpu");
}

#[test]
fn a_second_round_distinguishes_lazy_allocations_from_retained_memory() {
    let programs = Programs::of("retained");
    let run = programs.run("cpu", &[]).exits(100);
    for test in ["fills_a_lazy_static_above_its_own_limit", "leaves_something_in_every_round"] {
        assert_eq!(run.codes(test), ["retained"], "{test}");
        assert_eq!(run.test(test)["findings"][0]["figure"], 168_332, "{test}");
    }
    // The second round must print nothing.
    let mut plain = programs.cargo_test();
    let output = plain.args(["--", "retained::leaves_something_in_every_round"]).output().unwrap();
    let output = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    for text in ["to stdout", "to stderr"] {
        assert_eq!(output.matches(text).count(), 1, "{output}");
    }
    let once = run.test("fills_a_lazy_static");
    assert_eq!(once["status"], "passed", "{once}");
    let notes = once["notes"].to_string();
    let site = programs.site("the lazy static");
    assert!(notes.contains("168,332 B") && notes.contains(&site), "{notes}");
    for test in ["leaves_memory_of_each_thread", "frees_late_and_does_not_settle"] {
        assert_eq!(run.codes(test), ["retained"], "{test}: {}", run.test(test));
    }
    let left = run.test("leaves_memory_of_each_thread")["findings"][0].clone();
    assert_eq!(left["figure"], 74_748, "{left}");
    let message = left["message"].as_str().unwrap();
    assert!(message.contains(", and again after each of 9 further rounds"), "{message}");
    // A free of an earlier round's block during a body does not hide what that body leaves.
    for when in ["the_first_is", "others_are"] {
        let test = format!("leaves_something_while_{when}_freed");
        assert_eq!(run.codes(&test), ["retained"], "{test}: {}", run.test(&test));
        assert_eq!(run.test(&test)["findings"][0]["figure"], 74_748, "{test}");
    }
    for test in [
        "fills_a_pool_by_threads",
        "uses_a_thread_local",
        "frees_late_and_settles",
        "replaces_what_the_round_before_left",
    ] {
        assert_eq!(run.codes(test), [""; 0], "{test}: {}", run.test(test));
    }
    let pool = run.test("fills_a_pool_by_threads")["notes"].to_string();
    let site = programs.site("the pool");
    let noted = "(the last of 8 further rounds retained no more)";
    assert!(pool.contains(noted) && pool.contains(&site), "{pool}");
    let threads = run.test("hands_its_memory_to_threads");
    assert_eq!(threads["status"], "passed", "{threads}");
    // The note names all bytes, not only those above the limit.
    if let Some((_, freed)) = threads["notes"].to_string().split_once("other threads freed ") {
        let bytes = freed.split(" B").next().unwrap().replace(',', "");
        assert!(bytes.parse::<u64>().unwrap() >= 1 << 20, "{threads}");
    }
}
