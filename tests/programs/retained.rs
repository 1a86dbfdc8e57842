//! Of `functional/growth.rs`: memory that a body leaves behind in its first round or in every one.

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

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

/// Memory for threads in a pool of 8 entries, as a regular expression has it: each thread has a number
/// and takes the entry with that number.
static POOL: [Mutex<Option<Vec<u8>>>; 8] = [const { Mutex::new(None) }; 8];
static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static NUMBER: usize = THREADS.fetch_add(1, SeqCst);
    static OWN: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

fn on_a_thread(work: fn()) {
    std::thread::spawn(work).join().unwrap();
}

#[mem_test(baseline = false)]
fn fills_a_pool_by_threads(_trial: &mut Trial) {
    on_a_thread(|| {
        let mut entry = POOL[NUMBER.with(|number| number % 8)].lock().unwrap();
        entry.get_or_insert_with(|| vec![1; 74_748]); // line: the pool
    });
}

/// The memory of a thread ends with it.
#[mem_test(baseline = false)]
fn uses_a_thread_local(_trial: &mut Trial) {
    on_a_thread(|| OWN.set(vec![1; 74_748]));
}

#[mem_test(baseline = false)]
fn leaves_memory_of_each_thread(_trial: &mut Trial) {
    on_a_thread(|| std::mem::forget(vec![1u8; 74_748]));
}

/// Frees 1 MiB half a second after the body has returned.
fn frees_late() {
    let block = vec![1u8; 1 << 20];
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(500));
        drop(block);
    });
}

#[mem_test(baseline = false)]
fn frees_late_and_settles(trial: &mut Trial) {
    trial.settle(Duration::from_secs(30));
    frees_late();
}

#[mem_test(baseline = false)]
fn frees_late_and_does_not_settle(_trial: &mut Trial) {
    frees_late();
}

static LEFT: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
static ROUNDS: AtomicUsize = AtomicUsize::new(0);

/// While the bodies of these rounds run, a thread frees what an earlier round has left.
fn leaves_a_block_and_frees_another_in(rounds: [usize; 2]) {
    if rounds.contains(&ROUNDS.fetch_add(1, SeqCst)) {
        on_a_thread(|| drop(LEFT.lock().unwrap().pop()));
    }
    LEFT.lock().unwrap().push(vec![1; 74_748]);
}

#[mem_test(baseline = false)]
fn leaves_something_while_the_first_is_freed(_trial: &mut Trial) {
    leaves_a_block_and_frees_another_in([1, 1]);
}

#[mem_test(baseline = false)]
fn leaves_something_while_others_are_freed(_trial: &mut Trial) {
    leaves_a_block_and_frees_another_in([2, 6]);
}

static REPLACED: Mutex<Option<Vec<u8>>> = Mutex::new(None);

#[mem_test(baseline = false)]
fn replaces_what_the_round_before_left(_trial: &mut Trial) {
    *REPLACED.lock().unwrap() = Some(vec![1; 74_748]);
}
