//! Of `functional/killed.rs`: tests whose process a signal ends, and tests that handle one.

use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use candle_core::{DType, Result, Tensor};
use memcheck_runtime::{Trial, mem_test};

/// Calls `end` in the third measured iteration, and allocates 4,096 B in each.
fn in_the_third(trial: &Trial, end: impl Fn()) -> Result<()> {
    let iteration = |index| {
        let block = Tensor::zeros(1024, DType::F32, trial.device())?;
        if index == trial.warmup() + 2 {
            end(); // line: calls the end
        }
        drop(block);
        Ok(())
    };
    trial.iterate(iteration) // line: iterates
}

#[mem_test(baseline = false)]
fn aborts(trial: &mut Trial) -> Result<()> {
    in_the_third(trial, || std::process::abort()) // line: aborts
}

#[inline(never)]
fn read(address: *const u64) -> u64 {
    // SAFETY: no address that the callers pass can be read, and the process is meant to end.
    unsafe { address.read_volatile() } // line: reads
}

#[mem_test(baseline = false)]
fn reads_null(trial: &mut Trial) -> Result<()> {
    in_the_third(trial, || {
        black_box(read(black_box(std::ptr::dangling::<u64>()))); // line: passes null
    })
}

fn send(signal: i32) {
    // SAFETY: the call takes a number.
    unsafe { libc::raise(signal) };
}

// A block of 8 MiB is live when the third iteration begins.
#[mem_test(baseline = false)]
fn is_killed(trial: &mut Trial) -> Result<()> {
    let kept = Tensor::zeros(2 << 20, DType::F32, &candle_core::Device::Cpu)?;
    in_the_third(trial, || send(libc::SIGKILL))?;
    drop(kept);
    Ok(())
}

#[mem_test(baseline = false)] // line: above the function that is killed early
fn is_killed_early(trial: &mut Trial) -> Result<()> {
    send(libc::SIGKILL);
    in_the_third(trial, || {})
}

#[mem_test(baseline = false)] // line: above the function without a trial
fn is_killed_without_a_trial() {
    send(libc::SIGKILL);
}

#[mem_test(baseline = false)]
fn aborts_before_its_iterations(trial: &mut Trial) -> Result<()> {
    if black_box(true) {
        std::process::abort(); // line: aborts early
    }
    in_the_third(trial, || {})
}

#[mem_test(baseline = false)]
fn aborts_on_a_thread(trial: &mut Trial) -> Result<()> {
    in_the_third(trial, || {
        let thread = std::thread::spawn(|| std::process::abort()); // line: aborts on a thread
        let _ = thread.join();
    })
}

struct PanicsAgain;

impl Drop for PanicsAgain {
    fn drop(&mut self) {
        panic!("the second panic");
    }
}

#[mem_test(baseline = false)]
fn panics_while_it_panics(trial: &mut Trial) -> Result<()> {
    in_the_third(trial, || {
        let _again = PanicsAgain;
        panic!("the first panic");
    })
}

#[inline(never)]
#[expect(unconditional_recursion, reason = "its stack overflows")]
fn descend(depth: u64) -> u64 {
    let frame = black_box([depth; 64]);
    descend(depth + 1) + frame[7]
}

#[mem_test(baseline = false)]
fn overflows_its_stack(trial: &mut Trial) -> Result<()> {
    in_the_third(trial, || {
        black_box(descend(0));
    })
}

static HANDLED: AtomicU32 = AtomicU32::new(0);

extern "C" fn count(_: i32) {
    HANDLED.fetch_add(1, Relaxed);
}

extern "C" fn write_and_end(_: i32) {
    let text = b"the handler of the program ran\n";
    // SAFETY: the pointer and the length are those of the text, and the second call does not return.
    unsafe {
        libc::write(2, text.as_ptr().cast(), text.len());
        libc::_exit(9);
    }
}

fn handle(signal: i32, handler: extern "C" fn(i32)) {
    // SAFETY: the handler is a function that is always there, and only does what a handler may do.
    unsafe { libc::signal(signal, handler as libc::sighandler_t) };
}

#[mem_test(baseline = false)]
fn survives_with_its_handler(trial: &mut Trial) -> Result<()> {
    handle(libc::SIGABRT, count);
    let result = in_the_third(trial, || send(libc::SIGABRT));
    assert_eq!(HANDLED.load(Relaxed), 1);
    result
}

#[mem_test(baseline = false)]
fn ends_in_its_handler(trial: &mut Trial) -> Result<()> {
    handle(libc::SIGSEGV, write_and_end);
    in_the_third(trial, || {
        black_box(read(black_box(std::ptr::dangling::<u64>())));
    })
}

#[mem_test(baseline = false)]
fn has_a_child_that_aborts(trial: &mut Trial) -> Result<()> {
    in_the_third(trial, || {
        // SAFETY: the child calls only functions that are allowed after a fork.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: the call has no arguments.
            unsafe { libc::abort() };
        }
        let mut status = 0;
        // SAFETY: the pointer is to a local.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGABRT);
    })
}

/// Its child aborts, and then a signal that leaves no stack ends it.
#[mem_test(baseline = false)]
fn is_ended_after_its_child(trial: &mut Trial) -> Result<()> {
    in_the_third(trial, || {
        // SAFETY: the child calls only functions that are allowed after a fork.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: the call has no arguments.
            unsafe { libc::abort() };
        }
        // SAFETY: a null pointer asks for no status.
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
        // SAFETY: the reaction is that of the system, which ends the process without a handler.
        unsafe { libc::signal(libc::SIGABRT, libc::SIG_DFL) };
        send(libc::SIGABRT);
    })
}

#[mem_test(baseline = false)]
fn is_clean(trial: &mut Trial) -> Result<()> {
    in_the_third(trial, || {})
}
