//! Training: forward, cross-entropy, backward and AdamW. The loss is kept as a number.

use memcheck_runtime::{Trial, mem_test};
use memcheck_tests::leaks::{KeptGradients, LastLogits, RunningLoss, Snapshots};
use memcheck_tests::training::Trainer;

#[mem_test(max_growth = "0 B")]
fn step(trial: &mut Trial) -> anyhow::Result<()> {
    let mut trainer = Trainer::new(trial.device())?;
    trial.iterate(|_| {
        trainer.fixed_step()?;
        Ok(())
    })
}

#[mem_test(max_growth = "0 B")]
fn running_loss(trial: &mut Trial) -> anyhow::Result<()> {
    let mut fixed = RunningLoss::new(trial.device())?;
    trial.iterate(|_| Ok(fixed.fixed_step()?))
}

#[mem_test(max_growth = "0 B")]
fn gradients(trial: &mut Trial) -> anyhow::Result<()> {
    let mut fixed = KeptGradients::new(trial.device())?;
    trial.iterate(|_| Ok(fixed.fixed_step()?))
}

#[mem_test(max_growth = "0 B")]
fn snapshots(trial: &mut Trial) -> anyhow::Result<()> {
    let mut fixed = Snapshots::new(trial.device())?;
    trial.iterate(|_| Ok(fixed.fixed_step()?))
}

#[mem_test(max_growth = "0 B")]
fn last_logits(trial: &mut Trial) -> anyhow::Result<()> {
    let mut fixed = LastLogits::new(trial.device())?;
    trial.iterate(|_| Ok(fixed.fixed_step()?))
}
