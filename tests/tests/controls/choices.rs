//! Workloads that decide with computed values, and leak as many blocks as they decide.

use candle_core::Result;
use memcheck_runtime::{Trial, mem_test};
use memcheck_tests::choices::early_exit::{EarlyExit, PROMPTS};
use memcheck_tests::choices::experts::Mixture;
use memcheck_tests::choices::loss_scale;
use memcheck_tests::choices::sampling::Generator;
use memcheck_tests::choices::speculative::Speculation;

#[mem_test(max_growth = "0 B", baseline = false)]
#[ignore = "leaks on purpose"]
fn logits_of_sampled_tokens_are_kept(trial: &mut Trial) -> Result<()> {
    let generator = Generator::new(trial.device())?;
    let mut kept = Vec::new();
    trial.iterate(|_| generator.generate_keeping_logits(2, &mut kept).map(drop))
}

#[mem_test(max_growth = "0 B", baseline = false)]
#[ignore = "leaks on purpose"]
fn logits_of_replaced_tokens_are_kept(trial: &mut Trial) -> Result<()> {
    let speculation = Speculation::new(trial.device())?;
    let mut kept = Vec::new();
    trial.iterate(|_| speculation.generate_keeping_logits(&mut kept).map(drop))
}

#[mem_test(max_growth = "0 B", baseline = false)]
#[ignore = "leaks on purpose"]
fn states_of_run_layers_are_kept(trial: &mut Trial) -> Result<()> {
    let model = EarlyExit::new(trial.device())?;
    let mut kept = Vec::new();
    trial.iterate(|_| model.layers_keeping_states(PROMPTS[1].1, &mut kept).map(drop))
}

#[mem_test(max_growth = "0 B", baseline = false)]
#[ignore = "leaks on purpose"]
fn rows_of_busy_experts_are_kept(trial: &mut Trial) -> Result<()> {
    let mixture = Mixture::new(true, trial.device())?;
    let mut kept = Vec::new();
    trial.iterate(|_| mixture.forward_keeping_rows(&mut kept).map(drop))
}

#[mem_test(max_growth = "0 B", baseline = false)]
#[ignore = "leaks on purpose"]
fn gradients_of_skipped_steps_are_kept(trial: &mut Trial) -> Result<()> {
    let mut kept = Vec::new();
    // A new trainer each time, because a loss that falls makes steps overflow at other times.
    trial.iterate(|_| {
        let mut trainer = loss_scale::trainer(2.0 * loss_scale::LARGEST, trial.device())?;
        trainer.step_keeping_overflows(&mut kept).map(drop)
    })
}
