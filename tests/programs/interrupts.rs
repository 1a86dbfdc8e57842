//! Of `functional/interrupts.rs`: tests that wait for a signal.

use std::time::Duration;

use memcheck_runtime::{Trial, mem_test};

#[mem_test(max_growth = "0 B", baseline = false)]
fn leaky(trial: &mut Trial) {
    let mut kept = Vec::new();
    trial.iterate(|_| kept.push(vec![0u8; 4096]));
    // The first run measures, the second decides, and the third waits to be ended.
    let runs = std::fs::read_to_string(crate::folder().join("runs")).unwrap_or_default();
    if runs.len() == 2 {
        crate::write("third", std::process::id());
        std::thread::sleep(Duration::from_secs(600));
    }
    crate::write("runs", runs + ".");
}

#[mem_test(cases(batch = [1]), baseline = false)]
fn waits(_trial: &mut Trial) {
    crate::write("waiting", "");
    std::thread::sleep(Duration::from_secs(600));
}

#[mem_test(baseline = false, iterations = 1, warmup = 0)]
fn goes_on() {
    crate::write("running", "");
    std::thread::sleep(Duration::from_secs(2));
}
