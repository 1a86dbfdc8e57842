//! Workloads that decide with computed values. Their figures follow from their decisions, which
//! must be those of the CPU.

use anyhow::Context as _;
use candle_core::Device;
use memcheck_runtime::{Trial, mem_test};
use memcheck_tests::choices::early_exit::{self, EarlyExit};
use memcheck_tests::choices::experts::{self, Mixture};
use memcheck_tests::choices::loss_scale;
use memcheck_tests::choices::sampling::{self, Generator};
use memcheck_tests::choices::speculative::{self, Speculation};
use memcheck_tests::mixed_precision::Step;

use crate::{assert_allocated, assert_peak};

/// The answers have 8 and 23 tokens, and the last one has no end token within 32.
#[mem_test(cases(seed = [2, 3, 5]), iterations = 4, warmup = 1, max_growth = "0 B")]
fn sampling_until_the_end_token(trial: &mut Trial) -> anyhow::Result<()> {
    let seed: u64 = trial.case("seed")?;
    let expected = Generator::new(&Device::Cpu)?.generate(seed)?;
    trial.reset_peak();
    let generator = Generator::new(trial.device())?;
    trial.iterate(|_| {
        anyhow::ensure!(generator.generate(seed)? == expected);
        Ok(())
    })?;
    assert_peak(trial, sampling::peak_bytes(expected.len()));
    Ok(())
}

#[mem_test(iterations = 4, warmup = 1, max_growth = "0 B")]
fn speculative_decoding(trial: &mut Trial) -> anyhow::Result<()> {
    let expected = Speculation::new(&Device::Cpu)?.generate()?;
    trial.reset_peak();
    let speculation = Speculation::new(trial.device())?;
    trial.iterate(|_| {
        anyhow::ensure!(speculation.generate()? == expected);
        Ok(())
    })?;
    assert_peak(trial, speculative::peak_bytes(&expected));
    Ok(())
}

#[mem_test(cases(prompt = [easy, medium, hard]), max_growth = "0 B")]
fn exit_when_certain(trial: &mut Trial) -> anyhow::Result<()> {
    let name: String = trial.case("prompt")?;
    let prompts = early_exit::PROMPTS;
    let (_, prompt) = prompts.into_iter().find(|it| it.0 == name).context("a prompt")?;
    let expected = EarlyExit::new(&Device::Cpu)?.layers(prompt)?;
    trial.reset_peak();
    let model = EarlyExit::new(trial.device())?;
    trial.iterate(|_| {
        anyhow::ensure!(model.layers(prompt)? == expected);
        Ok(())
    })?;
    assert_peak(trial, early_exit::peak_bytes(expected));
    Ok(())
}

#[mem_test(cases(router = [even, skewed]), max_growth = "0 B")]
fn mixture_of_experts(trial: &mut Trial) -> anyhow::Result<()> {
    let is_skewed = trial.case::<String>("router")? == "skewed";
    let (_, expected) = Mixture::new(is_skewed, &Device::Cpu)?.forward()?;
    trial.reset_peak();
    let mixture = Mixture::new(is_skewed, trial.device())?;
    trial.iterate(|_| {
        anyhow::ensure!(mixture.forward()?.1 == expected);
        Ok(())
    })?;
    assert_peak(trial, experts::peak_bytes(expected));
    Ok(())
}

/// The scale overflows, and again whenever two good steps have doubled it; or in every step.
#[mem_test(cases(scale = [overflows, too_large]), device = "cuda", max_growth = "0 B")]
fn scaled_loss(trial: &mut Trial) -> anyhow::Result<()> {
    let (doublings, skips) = match trial.case::<String>("scale")?.as_str() {
        "overflows" => (1, vec![0, 3, 6, 9]),
        _ => (40, (0..12).collect()),
    };
    let scale = loss_scale::LARGEST * 2_f64.powi(doublings);
    let mut trainer = loss_scale::trainer(scale, trial.device())?;
    trial.reset_peak();
    let (mut skipped, mut steps) = (Vec::new(), 0);
    trial.iterate(|step| {
        if trainer.step()? == Step::Skipped {
            skipped.push(step);
        }
        steps = step + 1;
        anyhow::Ok(())
    })?;
    assert_eq!(skipped, skips);
    let updates = steps - skipped.len();
    assert_allocated(trial, loss_scale::live_bytes(updates));
    assert_peak(trial, loss_scale::peak_bytes(updates));
    Ok(())
}
