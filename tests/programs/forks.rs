//! Of `functional/forks.rs`.

use candle_core::{DType, Tensor};
use memcheck_runtime::{Trial, mem_test};

/// The child leaks what it has when an allocation is refused.
#[mem_test(baseline = false, fault_sweep)]
fn forks(trial: &mut Trial) -> candle_core::Result<()> {
    // SAFETY: no other thread of the process holds a lock that the child needs.
    let child = unsafe { libc::fork() };
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
        let mut status = 0;
        // SAFETY: the pointer is to a local.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!(libc::WEXITSTATUS(status), 3);
    }
    returned
}
