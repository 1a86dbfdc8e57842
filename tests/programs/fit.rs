//! Of `functional/fit.rs`: tests with cases, whose memory is a simple function of each case.

use candle_core::{DType, Device, Result, Tensor};
use memcheck_runtime::{Trial, mem_test};

const MIB: (usize, usize) = (256, 1024);

fn activations(rows: usize, dtype: DType, device: &Device) -> Result<()> {
    Tensor::zeros((rows, MIB.0, MIB.1), dtype, device).map(drop)
}

/// 1 MiB of weights and 3 MiB for each element of the batch. Every batch breaks the limits. The test
/// has a baseline, because a search must not write one.
#[mem_test(cases(batch = [1, 2]), fits = "2 MiB", max_peak = "2 MiB")]
fn forward(trial: &mut Trial) -> Result<()> {
    let (batch, device): (usize, _) = (trial.case("batch")?, trial.device().clone());
    let weights = Tensor::zeros(MIB, DType::F32, &device)?;
    trial.iterate(|_| activations(3 * batch, DType::F32, &device))?;
    drop(weights);
    Ok(())
}

#[mem_test(cases(dtype = [f32, f16], batch = [1]), baseline = false)]
fn of_two_cases(trial: &mut Trial) {
    let (batch, dtype): (usize, DType) =
        (trial.case("batch").unwrap(), trial.case("dtype").unwrap());
    let device = trial.device().clone();
    trial.iterate(|_| activations(batch, dtype, &device).unwrap());
}

#[mem_test(cases(batch = [1]), baseline = false)]
fn not_above_four(trial: &mut Trial) -> Result<()> {
    if trial.case::<usize>("batch")? > 4 {
        candle_core::bail!("only four positions")
    }
    Ok(())
}

/// 1 MiB of weights, 4 KiB for each position, and 16 B for each pair of positions.
#[mem_test(cases(seq = [64]), baseline = false)]
fn attention(trial: &mut Trial) -> Result<()> {
    let (seq, device): (usize, _) = (trial.case("seq")?, trial.device().clone());
    let _weights = Tensor::zeros(MIB, DType::F32, &device)?;
    trial.iterate(|_| {
        let hidden = Tensor::zeros((seq, 1024), DType::F32, &device)?;
        let scores = Tensor::zeros((4, seq, seq), DType::F32, &device)?;
        drop((hidden, scores));
        Ok(())
    })
}

/// 4 KiB for each position of a buffer that doubles.
#[mem_test(cases(seq = [64]), baseline = false)]
fn doubling(trial: &mut Trial) -> Result<()> {
    let (seq, device): (usize, _) = (trial.case("seq")?, trial.device().clone());
    trial.iterate(|_| Tensor::zeros((seq.next_power_of_two(), 1024), DType::F32, &device).map(drop))
}

/// A search by the program itself: 1 MiB, and 3 MiB per row for each element of the batch.
fn largest(trial: &mut Trial, rows: usize) -> Result<()> {
    let device = trial.device().clone();
    let _weights = Tensor::zeros(MIB, DType::F32, &device)?;
    trial.iterate(|_| {
        let attempt = |batch| Tensor::zeros((batch, rows, 3 << 18), DType::F32, &device);
        memcheck_runtime::largest_batch(&device, 1..=4, attempt)?;
        Ok(())
    })
}

#[mem_test(fits = "2 MiB", baseline = false)]
fn no_batch_fits(trial: &mut Trial) -> Result<()> {
    largest(trial, 1)
}

#[mem_test(baseline = false)]
fn no_batch_has_room(trial: &mut Trial) -> Result<()> {
    largest(trial, 1 << 20)
}

#[mem_test(baseline = false)]
fn a_batch_has_room(trial: &mut Trial) -> Result<()> {
    largest(trial, 1 << 11)?;
    candle_core::bail!("another reason")
}

#[mem_test(baseline = false)]
fn without_cases(device: &Device) -> Result<()> {
    activations(1, DType::F32, device)
}
