//! Compares the simulated device, and real devices, with recordings.
//!
//! Each workload starts and ends without a tensor on the device. Every allocation call in between
//! must equal the recordings in `tests/recordings`, for every recorded device. The figures of the
//! tests also have baselines, which simulated and real devices share.
//!
//! ```console
//! cargo memcheck run -p memcheck-tests --test fidelity --device sim
//! FIDELITY_RECORDINGS=write cargo memcheck run -p memcheck-tests --test fidelity --device cuda
//! ```

use candle_core::{DType, Device};
use memcheck_runtime::__private::{InstalledCard, card_of, record};
use memcheck_runtime::{Trial, mem_test};
use memcheck_tests::bert::Bert;
use memcheck_tests::llama::Llama;
use memcheck_tests::recordings::{self, Maker};
use memcheck_tests::t5::T5;
use memcheck_tests::training::Trainer;
use memcheck_tests::whisper::Whisper;
use memcheck_tests::{models, operations, pool};

/// The device that makes a recording in this run.
fn maker(device: &Device) -> anyhow::Result<Maker> {
    let InstalledCard { name, driver } =
        card_of(device)?.ok_or_else(|| anyhow::anyhow!("the device is not a GPU"))?;
    let card = format!("card: {name}");
    Ok(match driver {
        None => Maker { device: "sim".to_owned(), facts: vec![card, "simulated".to_owned()] },
        Some(version) => Maker {
            device: name.to_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "-"),
            facts: vec![card, format!("driver: CUDA {}.{}", version / 1000, version % 1000 / 10)],
        },
    })
}

/// Runs a workload as the whole body of a test and compares the calls of its first run, because
/// only the first run includes the calls that a device makes once.
fn compare(
    trial: &mut Trial,
    name: &str,
    workload: impl Fn(&Device) -> candle_core::Result<()>,
) -> anyhow::Result<()> {
    let device = trial.device().clone();
    let mut first = None;
    trial.iterate(|_| {
        let (result, calls) = record(|| workload(&device));
        first.get_or_insert(calls);
        result
    })?;
    let name: Vec<&str> =
        std::iter::once(name).chain(trial.cases().map(|(_, value)| value)).collect();
    let calls: Vec<String> = first.iter().flatten().map(ToString::to_string).collect();
    recordings::check(&recordings::folder(), &name.join("."), calls, &maker(&device)?)
}

#[mem_test(
    device = "cuda",
    cases(
        model = [
            gemma, gemma2, gemma3, mistral, olmo, phi3, qwen2, qwen3, stable_lm, starcoder2
        ],
        dtype = [f32, f16, bf16]
    )
)]
fn generation(trial: &mut Trial) -> anyhow::Result<()> {
    let (model, dtype): (String, DType) = (trial.case("model")?, trial.case("dtype")?);
    compare(trial, "generation", |device| models::generate(&model, dtype, device))
}

/// candle mixes half and single precision in these models, and fails on it.
#[mem_test(device = "cuda", cases(model = [mixtral, phi]))]
fn generation_in_f32(trial: &mut Trial) -> anyhow::Result<()> {
    let model: String = trial.case("model")?;
    compare(trial, "generation", |device| models::generate(&model, DType::F32, device))
}

#[mem_test(
    device = "cuda",
    cases(
        operation = [
            matmul, batched_matmul, conv1d, conv2d, conv_transpose2d, pool_and_upsample,
            norms_and_softmax, reductions, indexing, broadcast_and_where, casts, concatenation
        ],
        dtype = [f32, f16, bf16]
    )
)]
fn operation(trial: &mut Trial) -> anyhow::Result<()> {
    let (operation, dtype): (String, DType) = (trial.case("operation")?, trial.case("dtype")?);
    compare(trial, "operation", |device| operations::run(&operation, dtype, device))
}

#[mem_test(device = "cuda", cases(operation = [random, host_and_back]))]
fn operation_of_one_type(trial: &mut Trial) -> anyhow::Result<()> {
    let operation: String = trial.case("operation")?;
    compare(trial, "operation", |device| operations::run(&operation, DType::F32, device))
}

/// candle keeps two workspaces for the device, of `16 MiB + (4 m + 128) 144` bytes for m = 32 rows,
/// and of `4 m 144` bytes for the m = 8 rows of the smaller kernel.
#[mem_test(device = "cuda", max_retained = "16818688 B")]
fn quantized(trial: &mut Trial) -> anyhow::Result<()> {
    compare(trial, "quantized", |device| operations::run("quantized", DType::F32, device))?;
    let kept = (16 << 20) + (4 * 32 + 128) * 144 + 4 * 8 * 144;
    assert_eq!(trial.usage().allocated, kept);
    Ok(())
}

#[mem_test(device = "cuda", cases(dtype = [f16, bf16]))]
fn experts(trial: &mut Trial) -> anyhow::Result<()> {
    let dtype: DType = trial.case("dtype")?;
    compare(trial, "experts", |device| operations::run("experts", dtype, device))
}

#[mem_test(device = "cuda", cases(dtype = [f32, f16, bf16]))]
fn llama(trial: &mut Trial) -> anyhow::Result<()> {
    let dtype: DType = trial.case("dtype")?;
    compare(trial, "llama", |device| {
        let llama = Llama::tiny(device, dtype)?;
        llama.prefill_and_decode(&llama.prompt(2, 16)?, 2).map(drop)
    })
}

#[mem_test(device = "cuda")]
fn bert(trial: &mut Trial) -> anyhow::Result<()> {
    compare(trial, "bert", |device| {
        let bert = Bert::tiny(device)?;
        bert.forward(&bert.inputs(2, 16)?).map(drop)
    })
}

#[mem_test(device = "cuda")]
fn t5(trial: &mut Trial) -> anyhow::Result<()> {
    compare(trial, "t5", |device| {
        let mut t5 = T5::tiny(device)?;
        let source = t5.source(2, 8)?;
        t5.generate(&source, 2).map(drop)
    })
}

#[mem_test(device = "cuda")]
fn whisper(trial: &mut Trial) -> anyhow::Result<()> {
    compare(trial, "whisper", |device| {
        let mut whisper = Whisper::tiny(device)?;
        let inputs = whisper.inputs(1)?;
        whisper.transcribe(&inputs, 2).map(drop)
    })
}

#[mem_test(device = "cuda")]
fn training(trial: &mut Trial) -> anyhow::Result<()> {
    compare(trial, "training", |device| {
        let mut trainer = Trainer::new(device)?;
        trainer.step()?;
        trainer.step().map(drop)
    })
}

/// Moves a tensor between the stream of the test and a second stream.
#[mem_test(device = "cuda")]
fn two_streams(trial: &mut Trial) -> anyhow::Result<()> {
    compare(trial, "two_streams", |device| {
        let other = Device::new_cuda_with_stream(0)?;
        let here = candle_core::Tensor::zeros((64, 64), DType::F32, device)?;
        let there = here.to_device(&other)?;
        there.matmul(&there)?.to_device(device).map(drop)
    })
}

/// Compares what the driver's pool reserves before and after each of 1,160 allocations and frees.
#[mem_test(device = "cuda")]
fn reserved_by_the_pool(trial: &mut Trial) -> anyhow::Result<()> {
    let device = trial.device().clone();
    let reserved = || {
        let reserved = memcheck_runtime::usage(&device).reserved;
        reserved.ok_or_else(|| candle_core::Error::Msg("the device has no pool".to_owned()))
    };
    let readings = pool::readings(&device, reserved)?;
    recordings::check(&recordings::folder(), "pool", readings, &maker(&device)?)
}
