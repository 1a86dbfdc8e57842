//! Fault sweeps over code that survives each refused allocation.

use candle_core::{DType, Device, Result, Tensor};
use memcheck_runtime::{Trial, mem_test};
use memcheck_tests::bert::Bert;

/// Half a batch is enough if a whole one does not fit.
fn in_halves(rows: usize, device: &Device) -> Result<usize> {
    match Tensor::zeros((rows, 256), DType::F32, device).and_then(|batch| batch.relu()) {
        Ok(_) => Ok(1),
        Err(_) if rows > 1 => {
            Ok(in_halves(rows / 2, device)? + in_halves(rows - rows / 2, device)?)
        }
        Err(error) => Err(error),
    }
}

#[mem_test(device = "cuda", fault_sweep, max_growth = "0 B", baseline = false)]
fn halves_of_a_batch(trial: &mut Trial) -> Result<()> {
    let device = trial.device().clone();
    trial.iterate(|_| in_halves(64, &device).map(drop))
}

/// A table that the first iteration creates, also the first after a refusal, stays.
#[mem_test(device = "cuda", fault_sweep, max_growth = "0 B", baseline = false)]
fn a_table_is_created_late(trial: &mut Trial) -> Result<()> {
    let device = trial.device().clone();
    let mut smaller: Option<Tensor> = None;
    trial.iterate(|_| {
        let large = Tensor::zeros(4096, DType::F32, &device).and_then(|table| table.sqr());
        if large.is_err() && smaller.is_none() {
            smaller = Some(Tensor::zeros(1024, DType::F32, &device)?);
        }
        Ok(())
    })
}

/// An `unwrap` in the file of the test is the test's way to return the error.
#[mem_test(device = "cuda", fault_sweep = 3, max_growth = "0 B", baseline = false)]
fn unwrapped_in_the_test(trial: &mut Trial) -> Result<()> {
    let device = trial.device().clone();
    trial.iterate(|_| {
        let zeros = Tensor::zeros(1024, DType::F32, &device).unwrap();
        zeros.sqr().unwrap().sqrt().map(drop)
    })
}

#[mem_test(device = "cuda", fault_sweep, max_growth = "0 B", baseline = false)]
fn bert(trial: &mut Trial) -> anyhow::Result<()> {
    let bert = Bert::tiny(trial.device())?;
    let inputs = bert.inputs(2, 32)?;
    trial.iterate(|_| {
        bert.forward(&inputs)?;
        Ok(())
    })
}
