//! Of `functional/growth.rs`: memory that a body leaves behind in its first round or in every one.

use std::sync::{Mutex, OnceLock};

use memcheck_runtime::{Trial, mem_test};

static ONCE: OnceLock<Vec<u8>> = OnceLock::new();
static ALWAYS: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

#[mem_test(baseline = false)]
fn fills_a_lazy_static(_trial: &mut Trial) {
    ONCE.get_or_init(|| vec![1; 168_332]); // line: the lazy static
}

#[mem_test(baseline = false, max_retained = "64 KiB")]
fn fills_a_lazy_static_above_its_own_limit(_trial: &mut Trial) {
    ONCE.get_or_init(|| vec![1; 168_332]);
}

#[mem_test(baseline = false)]
fn leaves_something_in_every_round(_trial: &mut Trial) {
    println!("to stdout");
    eprintln!("to stderr");
    ALWAYS.lock().unwrap().push(vec![1; 168_332]);
}

#[mem_test(baseline = false)]
fn hands_its_memory_to_threads(trial: &mut Trial) {
    trial.iterate(|i| {
        let block = vec![1u8; 1 << 20];
        std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(i as u64 % 5));
            drop(block);
        });
    });
}
