//! Rayon's pool: its number of threads comes from every source, and a test whose peak depends on it has
//! a note. A test that does not use the GPU of its leg has one too.

use crate::fixture::{Programs, Run};

const ONE_THREAD: &str = "allocated memory on the threads of rayon's pool, which has one thread";

fn peak(run: &Run, test: &str, space: &str) -> u64 {
    run.test(test)["metrics"][space]["peak_allocated"].as_u64().expect("a peak")
}

fn notes(run: &Run, test: &str) -> String {
    run.test(test)["notes"].to_string()
}

fn assert_threads_are_set(device: &str, space: &str) {
    let programs = Programs::of("threads");
    let filters = ["threads::layers", "threads::sums"];
    let run = programs.run(device, &filters).exits(0);
    assert_eq!(peak(&run, "layers_in_parallel", space), 1 << 16);
    assert_eq!(peak(&run, "layers_on_four_threads", space), 4 << 16);
    let note = notes(&run, "layers_in_parallel");
    assert!(note.contains(ONE_THREAD) && note.contains("`threads = 4`"), "{note}");
    for test in ["layers_on_four_threads", "sums_in_parallel"] {
        assert!(!notes(&run, test).contains("rayon"), "{}", notes(&run, test));
    }

    let parallel = "threads::layers_in_parallel";
    let of = |arguments: &[&str], variables: &[(&str, &str)]| {
        let arguments = [&[parallel], arguments].concat();
        let run = programs.run_with(device, &arguments, variables).exits(0);
        assert!(!notes(&run, "layers_in_parallel").contains("rayon"), "{}", run.stdout);
        peak(&run, "layers_in_parallel", space) >> 16
    };
    assert_eq!(of(&["--threads", "3"], &[]), 3);
    assert_eq!(of(&[], &[("MEMCHECK_THREADS", "2")]), 2);
    assert_eq!(of(&[], &[("RAYON_NUM_THREADS", "3")]), 3);
    programs.configure("[[override]]\ntest = \"threads::*\"\nthreads = 2\n");
    assert_eq!(of(&[], &[("RAYON_NUM_THREADS", "3")]), 2);
    let none = programs.run(device, &[parallel, "--threads", "0"]).exits(2);
    assert!(none.stderr.contains("at least 1"), "{}", none.stderr);
}

#[test]
fn the_threads_of_rayons_pool_are_set_on_the_simulated_gpu() {
    assert_threads_are_set("sim", "cuda:0");
}

#[test]
fn the_threads_of_rayons_pool_are_set_on_the_cpu() {
    assert_threads_are_set("cpu", "host");
}

#[test]
fn what_the_pools_keep_for_each_thread_is_in_no_figure() {
    let programs = Programs::of("threads");
    let figures = |threads| {
        let arguments = ["threads::adds_many_elements", "--threads", threads];
        let run = programs.run("cpu", &arguments).exits(0);
        assert_eq!(run.test("adds_many_elements")["metrics"]["host/small"]["retained"], 0);
        let metrics = run.exact_metrics("adds_many_elements");
        ["host", "host/small"].map(|space| {
            ["setup", "allocated", "peak_allocated"].map(|name| metrics[space][name].clone())
        })
    };
    let one = figures("1");
    for threads in ["2", "3"] {
        assert_eq!(figures(threads), one, "{threads} threads");
    }
}

#[test]
fn a_test_that_does_not_use_the_gpu_has_a_note_with_the_growth_of_the_host() {
    let programs = Programs::of("threads");
    let filters = ["threads::picks", "threads::sums"];
    let run = programs.run("sim", &filters).exits(0);
    let grows = notes(&run, "picks_the_cpu_and_grows");
    let grew = "grew by 1,048,576 B (1.00 MiB) per iteration";
    assert!(grows.contains("GPU not used") && grows.contains(grew), "{grows}");
    let quiet = notes(&run, "picks_the_cpu");
    assert!(quiet.contains("GPU not used") && !quiet.contains("per iteration"), "{quiet}");
    assert!(!notes(&run, "sums_in_parallel").contains("GPU not used"));

    // A filter is a part of a name, and the other test grows on the CPU.
    let run = programs.run("cpu", &["--exact", "threads::picks_the_cpu"]).exits(0);
    assert!(!notes(&run, "picks_the_cpu").contains("GPU not used"), "{}", run.stdout);
}
