//! Of `functional/plain.rs`: tests whose processes must end with them, and one whose growth cannot be
//! decided.

use std::process::Command;

use memcheck_runtime::{Trial, mem_test};

/// Starts a process in a session of its own, whose parent has ended, and returns its id.
fn daemon() -> String {
    let script = "echo $$; exec sleep 600 >/dev/null 2>&1";
    let started = Command::new("setsid").args(["--fork", "sh", "-c", script]).output();
    String::from_utf8(started.unwrap().stdout).unwrap().trim().to_owned()
}

/// Starts a child and a daemon, writes all process ids to a file, and hangs.
fn hang(file: &str) {
    let mut child = Command::new("sleep").arg("600").spawn().unwrap();
    crate::write(file, format!("{} {} {}", std::process::id(), child.id(), daemon()));
    child.wait().unwrap();
}

#[mem_test(baseline = false, timeout = "10m")]
fn hangs() {
    hang("ids");
}

#[mem_test(baseline = false, timeout = "2s")]
fn ends_by_a_time_out() {
    hang("timed-out");
}

#[mem_test(baseline = false, iterations = 1, warmup = 0)]
fn ends_by_a_return() {
    crate::write("returned", daemon());
}

#[mem_test(baseline = false, iterations = 1, warmup = 0)]
fn ends_by_an_abort() {
    crate::write("aborted", daemon());
    std::process::abort();
}

#[mem_test(baseline = false, iterations = 1, warmup = 0)]
fn ends_by_an_exit() {
    crate::write("exited", daemon());
    std::process::exit(0);
}

fn cache<const BYTES: usize>() -> Vec<u8> {
    vec![1; BYTES]
}

/// Twelve caches, each filled once. The level rises in every iteration, but the call sites show
/// that each of them leaves only one block behind.
#[mem_test(max_growth = "0 B", baseline = false)]
fn fills_twelve_caches(trial: &mut Trial) -> candle_core::Result<()> {
    let caches: [fn() -> Vec<u8>; 12] = [
        cache::<20_000>,
        cache::<20_100>,
        cache::<20_200>,
        cache::<20_300>,
        cache::<20_400>,
        cache::<20_500>,
        cache::<20_600>,
        cache::<20_700>,
        cache::<20_800>,
        cache::<20_900>,
        cache::<21_000>,
        cache::<21_100>,
    ];
    let mut filled = Vec::with_capacity(12);
    trial.iterate(|iteration| {
        filled.push(caches[iteration]());
        Ok(())
    })
}
