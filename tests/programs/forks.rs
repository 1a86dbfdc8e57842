//! Of `functional/forks.rs`.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use candle_core::{DType, Result, Tensor};
use memcheck_runtime::{Trial, mem_test};

fn fork() -> i32 {
    // SAFETY: no other thread of the process holds a lock that the child needs.
    unsafe { libc::fork() }
}

/// The exit status of a child, and -1 if a signal ended it.
fn end_of(child: i32) -> i32 {
    let mut status = 0;
    // SAFETY: the pointer is to a local.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -1 }
}

fn exit_now() -> ! {
    // SAFETY: the process needs nothing that it would do at its end.
    unsafe { libc::_exit(0) }
}

fn iterate_cleanly(trial: &Trial) -> Result<()> {
    trial.iterate(|_| Tensor::zeros(1024, DType::F32, trial.device()).map(drop))
}

fn leak(trial: &Trial) -> Result<()> {
    trial.iterate(|_| Tensor::zeros(1024, DType::F32, trial.device()).map(std::mem::forget))
}

/// Ends the measured process without a record, after its clean child has returned.
fn leak_and_exit(trial: &Trial, child: i32) -> ! {
    leak(trial).unwrap();
    end_of(child);
    exit_now()
}

// With a baseline, because a run must not write one.
#[mem_test(max_growth = "0 B")]
fn exits_while_its_child_returns(trial: &mut Trial) -> Result<()> {
    match fork() {
        0 => iterate_cleanly(trial),
        child => leak_and_exit(trial, child),
    }
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn exits_while_its_child_panics(trial: &mut Trial) -> Result<()> {
    match fork() {
        0 => panic!("in the child"),
        child => leak_and_exit(trial, child),
    }
}

/// A second round follows the first one, which keeps memory.
#[mem_test(max_growth = "0 B", baseline = false)]
fn exits_in_its_second_round(trial: &mut Trial) -> Result<()> {
    static ROUND: AtomicU32 = AtomicU32::new(0);
    if ROUND.fetch_add(1, Relaxed) == 0 {
        std::mem::forget(Tensor::zeros(1 << 20, DType::F32, trial.device())?);
        return iterate_cleanly(trial);
    }
    match fork() {
        0 => iterate_cleanly(trial),
        child => {
            end_of(child);
            exit_now()
        }
    }
}

/// The error of the child is that of a body that must be run again without memcheck's subscriber.
#[mem_test(max_growth = "0 B", baseline = false)]
fn exits_while_its_child_installs_a_subscriber(trial: &mut Trial) -> Result<()> {
    match fork() {
        0 => {
            let _ =
                tracing::subscriber::set_global_default(tracing::subscriber::NoSubscriber::new());
            tracing::subscriber::set_global_default(tracing::subscriber::NoSubscriber::new())
                .unwrap();
            iterate_cleanly(trial)
        }
        child => leak_and_exit(trial, child),
    }
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn leaks_while_its_child_returns(trial: &mut Trial) -> Result<()> {
    match fork() {
        0 => iterate_cleanly(trial),
        child => {
            leak(trial)?;
            end_of(child);
            Ok(())
        }
    }
}

// With baselines, which a run must write.
#[mem_test(max_growth = "0 B")]
fn returns_while_its_child_leaks(trial: &mut Trial) -> Result<()> {
    match fork() {
        0 => leak(trial),
        child => {
            iterate_cleanly(trial)?;
            assert_eq!(end_of(child), 3);
            Ok(())
        }
    }
}

#[mem_test(max_growth = "0 B")]
fn returns_while_its_child_fails(trial: &mut Trial) -> Result<()> {
    match fork() {
        0 => trial.iterate(|index| match index {
            11 => Err(candle_core::Error::msg("in the child")),
            _ => Ok(()),
        }),
        child => {
            iterate_cleanly(trial)?;
            end_of(child);
            Ok(())
        }
    }
}

/// Each iteration starts helpers, by `fork` and by the `vfork` of the standard library.
#[mem_test(max_growth = "0 B", baseline = false)]
fn starts_helpers(trial: &mut Trial) -> Result<()> {
    trial.iterate(|_| {
        let child = fork();
        if child == 0 {
            // SAFETY: the arguments end with a null pointer.
            unsafe {
                libc::execlp(c"true".as_ptr(), c"true".as_ptr(), std::ptr::null::<libc::c_char>());
                libc::_exit(9)
            }
        }
        assert_eq!(end_of(child), 0);
        assert!(std::process::Command::new("true").status()?.success());
        Tensor::zeros(1024, DType::F32, trial.device()).map(drop)
    })
}

/// The child leaks what it has when an allocation is refused.
#[mem_test(baseline = false, fault_sweep)]
fn is_swept(trial: &mut Trial) -> Result<()> {
    let child = fork();
    let returned = trial.iterate(|_| {
        let first = Tensor::zeros(1024, DType::F32, trial.device())?;
        match Tensor::zeros(1024, DType::F32, trial.device()) {
            Err(_) if child == 0 => {
                std::mem::forget(first);
                Ok(())
            }
            second => second.map(drop),
        }
    });
    if child > 0 {
        assert_eq!(end_of(child), 3);
    }
    returned
}
