//! Of `functional/late.rs`: tests that are killed because they take too long.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use candle_core::{DType, Result, Tensor};
use memcheck_runtime::{Trial, mem_test};

/// Calls `wait` in the third measured iteration.
fn in_the_third(trial: &Trial, wait: impl Fn()) -> Result<()> {
    let iteration = |index| {
        let block = Tensor::zeros(1024, DType::F32, trial.device())?;
        if index == trial.warmup() + 2 {
            wait(); // line: calls the end
        }
        drop(block);
        Ok(())
    };
    trial.iterate(iteration) // line: iterates
}

#[inline(never)]
fn sleep_for_ever() {
    loop {
        std::thread::sleep(Duration::from_secs(3600)); // line: sleeps
    }
}

#[mem_test(baseline = false, timeout = "3s")]
fn sleeps(trial: &mut Trial) -> Result<()> {
    in_the_third(trial, || {
        sleep_for_ever(); // line: calls the sleep
    })
}

#[mem_test(baseline = false, timeout = "3s")]
fn waits_for_its_own_lock(trial: &mut Trial) -> Result<()> {
    let weights = Mutex::new(0);
    in_the_third(trial, || {
        let first = weights.lock();
        let second = weights.lock(); // line: locks again
        drop((first, second));
    })
}

/// The thread that iterates is not the one on which the body began.
#[mem_test(baseline = false, timeout = "3s")]
fn iterates_on_a_thread(trial: &mut Trial) -> Result<()> {
    let trial = &*trial;
    std::thread::scope(|scope| {
        let run = || {
            in_the_third(trial, || {
                loop {
                    std::hint::black_box(0); // line: loops
                }
            })
        };
        scope.spawn(run).join().expect("it does not panic")
    })
}

static HANDLED: AtomicU32 = AtomicU32::new(0);

extern "C" fn count(_: i32) {
    HANDLED.fetch_add(1, Relaxed);
}

/// A signal that the program has handled is not the stack that the parent asks for.
#[mem_test(baseline = false, timeout = "3s")]
fn sleeps_after_a_signal(trial: &mut Trial) -> Result<()> {
    // SAFETY: the handler is a function that is always there, and only does what a handler may do.
    unsafe { libc::signal(libc::SIGILL, count as extern "C" fn(i32) as libc::sighandler_t) };
    // SAFETY: the call takes a number.
    unsafe { libc::raise(libc::SIGILL) };
    assert_eq!(HANDLED.load(Relaxed), 1);
    in_the_third(trial, sleep_for_ever)
}

/// No stack can be known if no thread accepts the signal.
#[mem_test(baseline = false, timeout = "3s")]
fn is_deaf(trial: &mut Trial) -> Result<()> {
    // SAFETY: the reaction is that of the system, which ignores the signal.
    unsafe { libc::signal(libc::SIGURG, libc::SIG_IGN) };
    in_the_third(trial, sleep_for_ever)
}

/// The parent asks only before it kills. Another process can send the same signal, which a program
/// ignores unless it has a handler.
#[mem_test(baseline = false)]
fn survives_the_signal(trial: &mut Trial) -> Result<()> {
    in_the_third(trial, || {
        // SAFETY: the call takes a number.
        unsafe { libc::raise(libc::SIGURG) };
    })
}
