//! Measures the memory of a model from its Hugging Face configuration alone, or from the header of a
//! GGUF file. The estimator loads the model's own code with zero weights, runs it on the simulated device and counts its
//! allocations.
//!
//! This is a part of memcheck, and any version can change it. Depend on `memcheck-runtime` instead.
//!
//! `cargo memcheck estimate` builds this crate as a program and exchanges JSON with it: a
//! [`Question`] on stdin, an [`Answer`] on stdout. Data flows in one direction:
//!
//! ```text
//! question (what is asked, checked) -> families (the model) -> measure | training -> answer
//!                                    │    └ weights (zeros, counted) <- safetensors (names, shapes)
//!                                    └─> gguf (the model of a GGUF file, of zeros)
//! ```
//!
//! This crate contains no formula for the size of a model. It measures all figures, and the tests
//! compare them with formulas.
#![forbid(unsafe_code)]

#[cfg(test)]
mod candle_sources;
mod families;
mod faults;
#[cfg(test)]
mod fuzzing;
mod gguf;
mod host;
mod host_peaks;
mod measure;
mod problem;
mod question;
mod requests;
mod safetensors;
mod sizes;
mod stage;
mod training;
mod weights;

use std::cell::Cell;
use std::io::Read;
use std::panic::AssertUnwindSafe;

use candle_core::{Device, Tensor};
use memcheck_core::wire::estimate::{Answer, Estimate, Question, VERSION};

use crate::problem::Problem;
use crate::stage::FailureStage;

pub use crate::families::{architecture, architectures};
pub use crate::faults::{Faults, Refusals};
pub use crate::host_peaks::HostPeaks;
pub use crate::requests::{Between, Requests};
pub use crate::weights::Elements;

/// The program: reads one question and prints one answer.
pub fn main() {
    let mut text = String::new();
    let answer = match std::io::stdin().read_to_string(&mut text) {
        Ok(_) => answer_text(&text),
        Err(error) => {
            Problem::invalid_question(format!("the estimator cannot read its input: {error}"))
                .answer()
        }
    };
    match serde_json::to_string(&answer) {
        Ok(line) => println!("{line}"),
        Err(error) => eprintln!("memcheck-estimate: cannot serialize the answer: {error}"),
    }
}

fn answer_text(text: &str) -> Answer {
    let question = match serde_json::from_str::<Question>(text) {
        Ok(question) if question.version == VERSION => question,
        Ok(_) | Err(_) => {
            return Problem::invalid_question(
                "the estimator and cargo-memcheck have different versions",
            )
            .hint("use the same version of cargo-memcheck and memcheck-runtime")
            .answer();
        }
    };
    match device() {
        Ok(device) => answer(&question, &device),
        Err(error) => Problem::from(error).answer(),
    }
}

/// Opens the simulated device if this program was built for it, else the CPU.
fn device() -> candle_core::Result<Device> {
    if candle_core::utils::cuda_is_available() { Device::new_cuda(0) } else { Ok(Device::Cpu) }
}

/// Answers one question on a device. Memory that was already allocated on the device does not
/// count.
pub fn answer(question: &Question, device: &Device) -> Answer {
    let stage = Cell::new(FailureStage::Loading);
    let measured = quietly(|| {
        std::panic::catch_unwind(AssertUnwindSafe(|| estimate(question, device, &stage)))
    });
    let problem = match measured {
        Ok(Ok(estimate)) => return Answer::Measured(Box::new(estimate)),
        Ok(Err(problem)) => problem,
        Err(payload) => Problem::panicked(payload.as_ref()),
    };
    problem.or_out_of_memory(device, stage.get()).answer()
}

/// Keeps panics of `work` off the terminal. Some models unwrap an error of the device
/// (`llama::Llama::load`).
fn quietly<R>(work: impl FnOnce() -> R) -> R {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let result = work();
    std::panic::set_hook(hook);
    result
}

fn estimate(
    question: &Question,
    device: &Device,
    stage: &Cell<FailureStage>,
) -> Result<Estimate, Problem> {
    let checked = question::check(question)?;
    measure::check_probes(device)?;
    let measured = if checked.reads_routing() && !device.is_cpu() {
        measure::measure_loading(&checked, device)
    } else if question.train {
        training::measure(&checked, device, stage)
    } else {
        measure::measure(&checked, device, stage)
    };
    let mut estimate = measured.map_err(|problem| match checked.kernel_overflow() {
        Some(why) => problem.caused_by_batch(&why, checked.largest_countable_batch()),
        None => problem,
    })?;
    measure::check_no_lost_events()?;
    if let Some(why) = checked.kernel_overflow() {
        estimate
            .notes
            .push(format!("on a GPU the results are wrong but the memory is correct: {why}"));
    }
    Ok(estimate)
}

/// Runs a model whose weights have the values that `elements` returns, for tests that compare the
/// values of devices. `next` gets the output for the prompt, and for each generated token, and
/// returns the token that follows.
///
/// # Errors
///
/// The message of an error of the model or of the question.
pub fn generate(
    question: &Question,
    elements: Elements,
    prompt: &[u32],
    device: &Device,
    mut next: impl FnMut(&Tensor) -> candle_core::Result<u32>,
) -> Result<(), String> {
    let mut run = || -> Result<(), Problem> {
        let checked = question::check(question)?;
        let mut model = measure::load_filled(&checked, elements, device)?;
        let ids = Tensor::new(prompt, device)?.unsqueeze(0)?;
        let mut token = next(&model.prompt(&ids)?)?;
        for number in 0..checked.generate {
            let ids = Tensor::new(&[[token]], device)?;
            token = next(&model.step(&ids, prompt.len() + number)?)?;
        }
        Ok(())
    };
    run().map_err(message)
}

/// Measures what a model keeps if it reads prompts of these lengths, each from the first position.
///
/// # Errors
///
/// The message of an error of the model or of the question, also if candle cannot clear the model.
/// A refused prompt is not an error.
pub fn requests(
    question: &Question,
    lengths: &[usize],
    between: Between,
    device: &Device,
) -> Result<Requests, String> {
    requests::measure(question, lengths, between, device).map_err(message)
}

/// Refuses each device allocation of loading a model, and of a prompt, in turn, and measures the
/// bytes that stay. `device` must be a GPU or the simulated device.
///
/// # Errors
///
/// The message of an error of the model or of the question without a refusal.
pub fn faults(question: &Question, device: &Device) -> Result<Faults, String> {
    quietly(|| faults::measure(question, device)).map_err(message)
}

/// Measures the memory of the host while a model is loaded to `device`, from safetensors or from
/// the GGUF file of the question. `device` must not be the CPU, whose weights are in that memory.
///
/// # Errors
///
/// The message of an error of the model or of the question.
pub fn host_peaks(question: &Question, device: &Device) -> Result<HostPeaks, String> {
    host_peaks::measure(question, device).map_err(message)
}

fn message(problem: Problem) -> String {
    match problem.answer() {
        Answer::Measured(_) => String::new(),
        Answer::Refused(refusal) => refusal.message,
    }
}
