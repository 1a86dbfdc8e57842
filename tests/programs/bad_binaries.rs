//! Of `functional/bad_binaries.rs`: tests that die, hang, or write half a record.

use std::process::Command;
use std::time::Duration;

use memcheck_runtime::{Trial, mem_test};

#[mem_test(baseline = false)]
fn bystander() {}

#[mem_test(baseline = false, timeout = "6s")]
fn aborts(_trial: &mut Trial) -> Result<(), String> {
    std::process::abort()
}

#[mem_test(baseline = false, timeout = "6s")]
fn is_killed(_trial: &mut Trial) -> Result<(), String> {
    Command::new("kill").args(["-9", &std::process::id().to_string()]).status().unwrap();
    std::thread::sleep(Duration::from_secs(1));
    Ok(())
}

#[mem_test(baseline = false, timeout = "6s")]
fn overflows_its_stack(_trial: &mut Trial) -> Result<(), String> {
    #[expect(unconditional_recursion, reason = "the stack must overflow")]
    fn deep(n: u64) -> u64 {
        std::hint::black_box(n) + deep(n + 1)
    }
    deep(0);
    Ok(())
}

#[mem_test(baseline = false, timeout = "6s")]
fn hangs(_trial: &mut Trial) {
    let mut child = Command::new("sleep").arg("300").spawn().unwrap();
    crate::write("child", child.id());
    child.wait().unwrap();
}

#[mem_test(baseline = false, timeout = "6s")]
fn exits_early(_trial: &mut Trial) -> Result<(), String> {
    std::process::exit(0)
}

#[mem_test(baseline = false, timeout = "6s")]
fn truncates_its_report(_trial: &mut Trial) -> Result<(), String> {
    std::fs::write(crate::report(), "{\"version\":1,\"record\":{").unwrap();
    std::process::exit(0)
}

#[mem_test(baseline = false, timeout = "6s")]
fn reports_in_another_version(_trial: &mut Trial) -> Result<(), String> {
    std::fs::write(crate::report(), "{\"version\":99}").unwrap();
    std::process::exit(0)
}

extern "C" fn hang() {
    std::thread::sleep(Duration::from_secs(600));
}

#[mem_test(max_growth = "0 B", baseline = false, timeout = "5s")]
fn leaks_and_hangs(trial: &mut Trial) {
    // SAFETY: the function has no arguments and does not unwind.
    unsafe { libc::atexit(hang) };
    let mut kept = Vec::new();
    trial
        .iterate(|_| {
            kept.push(vec![0u8; 4096]);
            Ok::<_, String>(())
        })
        .unwrap();
}

#[mem_test(baseline = false)]
#[should_panic(expected = "boom")]
fn other_panic() {
    panic!("index out of bounds");
}

#[mem_test(baseline = false)]
#[should_panic(expected = "boom")]
fn expected_panic() {
    panic!("a message with boom in it");
}

// With a baseline, because a run must not write one.
#[mem_test]
fn gives_up(trial: &mut Trial) {
    let _ = trial.iterate(|i| if i < 5 { Ok(()) } else { Err("an error in iteration 5") });
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn never_iterates(_trial: &mut Trial) {}

/// The second test waits to be interrupted.
mod interrupted {
    use super::*;

    #[mem_test(baseline = false)]
    fn a_first() {}

    #[mem_test(baseline = false)]
    fn b_second() {
        crate::write("child", std::process::id());
        std::thread::sleep(Duration::from_secs(600));
    }

    #[mem_test(baseline = false)]
    fn c_third() {}
}

/// It exits without a report on its second device.
#[mem_test(baseline = false)]
fn once(trial: &mut Trial) {
    if trial.device().is_cuda() && crate::folder().join("ran").exists() {
        std::process::exit(0);
    }
    crate::write("ran", "");
}
