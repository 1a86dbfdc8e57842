//! Fault sweeps that must fail, each with another effect of a refused allocation.

mod unsafe_steps;

use candle_core::Result;
use memcheck_runtime::{Trial, mem_test};

use unsafe_steps::{KeptOnError, StateFirst};

#[mem_test(device = "cuda", fault_sweep, baseline = false)]
#[ignore = "leaks on an error path on purpose"]
fn an_error_path_leaks(trial: &mut Trial) -> Result<()> {
    let device = trial.device().clone();
    trial.iterate(|_| KeptOnError::step(&device))
}

#[mem_test(device = "cuda", fault_sweep, baseline = false)]
#[ignore = "panics on an error path on purpose"]
fn an_error_path_panics(trial: &mut Trial) -> Result<()> {
    let device = trial.device().clone();
    trial.iterate(|_| unsafe_steps::unwrapped(&device))
}

#[mem_test(device = "cuda", fault_sweep, baseline = false, timeout = "20s")]
#[ignore = "hangs on an error path on purpose"]
fn an_error_path_hangs(trial: &mut Trial) -> Result<()> {
    let device = trial.device().clone();
    trial.iterate(|_| unsafe_steps::endless(&device))
}

#[mem_test(device = "cuda", fault_sweep, baseline = false)]
#[ignore = "aborts on an error path on purpose"]
fn an_error_path_aborts(trial: &mut Trial) -> Result<()> {
    let device = trial.device().clone();
    trial.iterate(|_| unsafe_steps::aborting(&device))
}

#[mem_test(device = "cuda", fault_sweep = 7, baseline = false)]
#[ignore = "changes its state before the step that fails on purpose"]
fn an_error_path_keeps_state(trial: &mut Trial) -> Result<()> {
    let device = trial.device().clone();
    let mut state = StateFirst::default();
    trial.iterate(|_| state.step(&device))
}
