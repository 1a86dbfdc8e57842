//! Caches that fill slowly are no leaks, and what only rises is one although its run was cut short.

use super::leak;
use crate::fixture::{Programs, Run};

fn assert_has_a_line(programs: &Programs, run: &Run, test: &str) {
    let site = leak(run, test)["sites"][0].to_string();
    assert!(site.contains(&programs.source()), "{test}: {site}");
}

fn assert_caches_are_told_from_leaks(device: &str) {
    let programs = Programs::of("caches").with_baselines();
    let run = &programs.run(device, &[]).exits(100);
    for test in [
        "map_of_random_keys::keys_512",
        "map_of_random_keys::keys_1024",
        "map_of_random_keys::keys_16384",
        "map_of_skewed_keys",
        "ring_of_500",
        "lru_of_1000",
        "lru_of_8192_fed_32_at_a_time",
        "list_flushed_every_200",
        "pool_by_exact_length",
        "entries_that_expire",
        "has_no_input_left",
    ] {
        assert_eq!(run.test(test)["status"], "passed", "{test}: {}", run.test(test));
    }
    let followed = run.test("entries_that_expire")["followed"]["seconds"].as_f64();
    assert!(followed >= Some(1.0), "{followed:?}");

    // The smallest steps: of 96 x 96 to 112 x 112, and of the first mask with seven positions.
    for (test, least) in [
        ("accelerates_until_the_context_is_full", 4 * 112 * 112),
        ("accelerates_until_a_panic", 4 * 112 * 112),
        ("accelerates_for_five_iterations", 4 * 112 * 112),
        ("cache_that_is_not_reset_beside_masks", 7 * 2 * 16 * 4 + 4 * (7 * 3 + 4)),
    ] {
        assert_has_a_line(&programs, run, test);
        let finding = leak(run, test);
        // Masks of less than 1 KiB are in another space of the host.
        let least = if device == "cpu" { least.min(7 * 2 * 16 * 4) } else { least };
        assert!(finding["bytes_per_iteration"].as_u64() >= Some(least), "{test}: {finding}");
        let longer_run = finding["longer_run"].to_string();
        let ended = if test.ends_with("panic") {
            "the body panicked"
        } else {
            "the body returned an error: no position is left"
        };
        assert!(longer_run.contains(ended), "{longer_run}");
    }
    let family = if device == "cpu" { "cpu" } else { "cuda" };
    let pending = programs.pending(&format!("accelerates_until_the_context_is_full@{family}"));
    assert!(!programs.has(&pending), "nothing may make a growth of 0 the baseline");
    for (test, every) in [
        ("replaced_by_a_longer_one::every_30", 30),
        ("replaced_by_a_longer_one::every_45", 45),
        ("replaced_by_a_longer_one::every_60", 60),
    ] {
        assert_has_a_line(&programs, run, test);
        let found = leak(run, test)["bytes_per_iteration"].as_u64().unwrap();
        assert!(found.abs_diff(6_144 / every) <= 1, "{test}: {found}");
    }
    if device == "cpu" {
        for (test, content) in [("losses_in_a_list", 4), ("one_tensor_in_a_list", 8)] {
            assert_has_a_line(&programs, run, test);
            assert_eq!(leak(run, test)["bytes_per_iteration"], content, "{test}");
        }
    }
}

#[test]
fn caches_are_told_from_leaks_on_the_simulated_gpu() {
    assert_caches_are_told_from_leaks("sim");
}

#[test]
fn caches_are_told_from_leaks_on_the_cpu() {
    assert_caches_are_told_from_leaks("cpu");
}
