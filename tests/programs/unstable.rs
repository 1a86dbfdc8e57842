//! Of `functional/unstable.rs`: tests whose figures differ from run to run. A file counts the
//! processes of each test, and the body allocates 1 MiB more in every second process, so that the
//! differences are the same in each run of the functional tests.

use memcheck_runtime::{Trial, mem_test};

/// Goes to the folder of the files, which the functional test reads. Their paths are short, because
/// a body must not exceed a limit of 450 B here.
fn enter_folder() {
    let folder = std::env::var_os("UNSTABLE_FOLDER").expect("the functional test sets it");
    std::env::set_current_dir(folder).unwrap();
}

/// The number of processes of a test before this one.
fn processes(test: &str) -> usize {
    use std::io::Write;
    enter_folder();
    let path = format!("{test}.processes");
    let before = std::fs::metadata(&path).map_or(0, |file| file.len() as usize);
    let file = std::fs::File::options().append(true).create(true).open(&path);
    file.unwrap().write_all(b".").unwrap();
    before
}

/// Allocates `mib` MiB in each iteration.
fn allocates(trial: &mut Trial, mib: usize) {
    trial.iterate(|_| drop(std::hint::black_box(vec![1_u8; mib << 20])));
}

/// Allocates `mib` in the first process of a test, 1 MiB less in the second, and so on.
fn alternates(trial: &mut Trial, test: &str, mib: usize) {
    let mib = mib - processes(test) % 2;
    allocates(trial, mib);
}

#[mem_test(baseline = false, max_peak = "1 MiB")]
fn steady(trial: &mut Trial) {
    processes("steady");
    allocates(trial, 1);
}

#[mem_test(baseline = false, max_peak = "1 MiB")]
fn steady_above_its_limit(trial: &mut Trial) {
    processes("steady_above_its_limit");
    allocates(trial, 2);
}

#[mem_test(baseline = false, max_peak = "1536 KiB")]
fn limit_between(trial: &mut Trial) {
    alternates(trial, "limit_between", 2);
}

#[mem_test(baseline = false, max_peak = "512 KiB")]
fn above_its_limit(trial: &mut Trial) {
    alternates(trial, "above_its_limit", 2);
}

#[mem_test(max_peak = "4 MiB")]
fn below_its_limit(trial: &mut Trial) {
    alternates(trial, "below_its_limit", 2);
}

/// Frees a block one iteration later in every second process. A longer run decides whether the
/// other block, which stays, is growth.
#[mem_test(baseline = false)]
fn frees_later(trial: &mut Trial) {
    let last = 5 + processes("frees_later") % 2;
    let (mut freed, mut kept) = (Vec::new(), Vec::new());
    trial.iterate(|i| match i {
        4 => (freed, kept) = (vec![1_u8; 4_096], vec![1_u8; 2_048]),
        _ if i == last => freed = Vec::new(),
        _ => {}
    });
    drop((freed, kept));
}

/// No baseline has small blocks, but limits apply to them.
#[mem_test(baseline = false, max_peak = "450 B")]
fn limit_between_small_blocks(trial: &mut Trial) {
    let bytes = if processes("limit_between_small_blocks").is_multiple_of(2) { 600 } else { 300 };
    trial.iterate(|_| drop(std::hint::black_box(vec![1_u8; bytes])));
}

/// Only the second process, which is the longer run, is above the limit.
#[mem_test(baseline = false, max_peak = "1536 KiB", max_growth = "1 KiB")]
fn above_its_limit_in_the_longer_run(trial: &mut Trial) {
    let mib = if processes("above_its_limit_in_the_longer_run") == 1 { 2 } else { 1 };
    let mut kept = Vec::new();
    trial.iterate(|_| {
        drop(std::hint::black_box(vec![1_u8; mib << 20]));
        kept.push(vec![1_u8; 1_024]);
    });
}

/// The set-up of the second process alone, which is the longer run, is above the limit.
#[mem_test(baseline = false, max_peak = "1536 KiB")]
fn above_its_limit_in_the_setup_of_the_longer_run(trial: &mut Trial) {
    let mib = if processes("above_its_limit_in_the_setup_of_the_longer_run") == 1 { 2 } else { 1 };
    drop(std::hint::black_box(vec![1_u8; mib << 20]));
    let mut kept = Vec::new();
    trial.iterate(|i| {
        if i == 4 {
            kept.push(vec![1_u8; 2_048]);
        }
    });
}

#[mem_test(baseline = false, max_peak = "0.75 x limit_between")]
fn relative_to_limit_between(trial: &mut Trial) {
    allocates(trial, 1);
}

/// Steady until the file `moved` exists.
fn moves(trial: &mut Trial, test: &str, mib: usize) {
    enter_folder();
    if std::path::Path::new("moved").exists() {
        alternates(trial, test, mib);
    } else {
        processes(test);
        allocates(trial, 1);
    }
}

#[mem_test]
fn baseline_between(trial: &mut Trial) {
    moves(trial, "baseline_between", 2);
}

#[mem_test]
fn above_its_baseline(trial: &mut Trial) {
    moves(trial, "above_its_baseline", 3);
}
