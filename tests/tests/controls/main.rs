//! Negative controls: memory tests that must fail.
//!
//! Each is the leaky twin of a test in `workloads` and is ignored in an ordinary run.
//! `functional/controls.rs` runs them through `cargo memcheck`, and asserts the code and the bytes
//! per iteration of each.

mod choices;
mod faults;
mod process;

use candle_core::{DType, Device, Tensor};
use memcheck_runtime::{Trial, mem_test};
use memcheck_tests::leaks::{KeptGradients, LastLogits, RunningLoss, Snapshots};
use memcheck_tests::llama::{Llama, Session};
use memcheck_tests::t5::T5;
use memcheck_tests::training::Trainer;
use memcheck_tests::whisper::Whisper;

#[mem_test(max_growth = "0 B", baseline = false)]
#[ignore = "leaks on purpose"]
fn llama_cache_never_cleared(trial: &mut Trial) -> anyhow::Result<()> {
    let llama = Llama::tiny(trial.device(), DType::F32)?;
    let mut session = Session::new(&llama, &llama.prompt(2, 64)?)?;
    trial.iterate(|_| {
        session.step()?;
        Ok(())
    })
}

#[mem_test(max_growth = "0 B", baseline = false)]
#[ignore = "leaks on purpose"]
fn t5_cache_never_cleared(trial: &mut Trial) -> anyhow::Result<()> {
    let mut t5 = T5::tiny(trial.device())?;
    let source = t5.source(2, 16)?;
    trial.iterate(|_| {
        t5.generate_without_clearing(&source, 4)?;
        Ok(())
    })
}

#[mem_test(baseline = false, max_retained = "0 B")]
#[ignore = "leaks on purpose"]
fn whisper_model_kept_for_ever(trial: &mut Trial) -> anyhow::Result<()> {
    let mut whisper = Whisper::tiny(trial.device())?;
    let inputs = whisper.inputs(1)?;
    trial.iterate(|_| {
        whisper.transcribe_without_reset(&inputs, 4)?;
        candle_core::Result::Ok(())
    })?;
    std::mem::forget(inputs);
    Ok(())
}

#[mem_test(baseline = false)]
#[ignore = "leaks on purpose"]
fn training_keeps_losses(trial: &mut Trial) -> anyhow::Result<()> {
    let mut trainer = Trainer::new(trial.device())?;
    trial.iterate(|_| {
        trainer.leaky_step()?;
        Ok(())
    })
}

#[mem_test(max_growth = "0 B", baseline = false)]
#[ignore = "leaks on purpose"]
fn running_loss_keeps_the_graph(trial: &mut Trial) -> anyhow::Result<()> {
    let mut leaky = RunningLoss::new(trial.device())?;
    trial.iterate(|_| Ok(leaky.leaky_step()?))
}

#[mem_test(max_growth = "0 B", baseline = false)]
#[ignore = "leaks on purpose"]
fn gradients_are_kept(trial: &mut Trial) -> anyhow::Result<()> {
    let mut leaky = KeptGradients::new(trial.device())?;
    trial.iterate(|_| Ok(leaky.leaky_step()?))
}

#[mem_test(max_growth = "0 B", baseline = false)]
#[ignore = "leaks on purpose"]
fn snapshots_are_kept(trial: &mut Trial) -> anyhow::Result<()> {
    let mut leaky = Snapshots::new(trial.device())?;
    trial.iterate(|_| Ok(leaky.leaky_step()?))
}

#[mem_test(max_growth = "0 B", baseline = false)]
#[ignore = "leaks on purpose"]
fn a_view_keeps_its_storage(trial: &mut Trial) -> anyhow::Result<()> {
    let mut leaky = LastLogits::new(trial.device())?;
    trial.iterate(|_| Ok(leaky.leaky_step()?))
}

/// The smallest leak that a device shows: four bytes per iteration.
#[mem_test(device = "cuda", max_growth = "0 B", baseline = false)]
#[ignore = "leaks on purpose"]
fn four_bytes_an_iteration(trial: &mut Trial) -> anyhow::Result<()> {
    let device: Device = trial.device().clone();
    let mut kept = Vec::with_capacity(64);
    trial.iterate(|_| {
        kept.push(Tensor::zeros((), DType::F32, &device)?);
        Ok(())
    })
}

#[mem_test(max_peak = "1 MiB", baseline = false)]
#[ignore = "exceeds its peak limit on purpose"]
fn one_block_over_the_peak(trial: &mut Trial) -> anyhow::Result<()> {
    let device = trial.device().clone();
    trial.iterate(|_| {
        Tensor::zeros((1 << 18) + 1, DType::F32, &device)?;
        Ok(())
    })
}

#[mem_test(max_allocations = 1, baseline = false)]
#[ignore = "allocates too often on purpose"]
fn two_allocations(device: &Device) -> candle_core::Result<()> {
    Tensor::zeros(1024, DType::F32, device)?;
    Tensor::zeros(1024, DType::F32, device)?;
    Ok(())
}

#[mem_test(device = "cuda", baseline = false)]
#[ignore = "runs out of memory on purpose"]
fn more_than_any_card(device: &Device) -> candle_core::Result<()> {
    Tensor::zeros((1 << 20, 1 << 20), DType::F32, device)?;
    Ok(())
}

#[mem_test(baseline = false)]
#[ignore = "fails on purpose"]
fn an_error(_device: &Device) -> candle_core::Result<()> {
    candle_core::bail!("an error on purpose")
}

#[mem_test(baseline = false)]
#[ignore = "aborts on purpose"]
fn an_abort() {
    std::process::abort();
}

#[mem_test(baseline = false)]
#[ignore = "exits early on purpose"]
fn an_exit() {
    std::process::exit(0);
}

#[mem_test(baseline = false, timeout = "1s")]
#[ignore = "hangs on purpose"]
fn a_hang() {
    std::thread::sleep(std::time::Duration::from_secs(600));
}
