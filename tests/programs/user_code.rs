//! Of `functional/user_code.rs`. Blocks are 1,024 elements of f32, or `batch` times as many: 4,096 B
//! and multiples of it.

use candle_core::{DType, Device, Result, Tensor};
use memcheck_runtime::{Audit, LargestBatch, Trial, log_usage, mem_test};
use tracing_subscriber::prelude::*;

#[mem_test(max_growth = "0 B", iterations = 3, warmup = 1, baseline = false)]
fn inside(trial: &mut Trial) -> Result<()> {
    let device = trial.device();
    trial.iterate(|index| {
        let block = Tensor::zeros(1024, DType::F32, device)?;
        assert_eq!(trial.usage().allocated, 4096);
        trial.mark(format!("iteration {index}"));
        assert_eq!(trial.devices()?.len(), 1);
        drop(block);
        assert_eq!(trial.usage().peak_allocated, 4096);
        trial.reset_peak();
        assert_eq!(trial.usage().peak_allocated, 0);
        Result::Ok(())
    })?;
    trial.mark("after");
    Ok(())
}

#[mem_test(iterations = 2, baseline = false)]
#[should_panic(expected = "called twice")]
fn inside_once_more(trial: &mut Trial) {
    trial.iterate(|_| trial.iterate(|_| ()));
}

/// A trial is shared with threads.
#[mem_test(iterations = 2, baseline = false)]
fn on_threads(trial: &mut Trial) {
    trial.iterate(|_| {
        std::thread::scope(|scope| scope.spawn(|| trial.mark("aside")).join()).unwrap();
    });
}

macro_rules! grows {
    ($name:ident, $growth:literal, $iterations:expr, $batches:expr, $power:expr, $trial:ty) => {
        #[mem_test(
                                                            max_growth = $growth,
                                                            iterations = $iterations,
                                                            baseline = false,
                                                            cases(batch = $batches),
                                                            scaling(peak_allocated <= "batch")
                                                        )]
        fn $name(trial: $trial) -> Result<()> {
            let batch = trial.case::<usize>("batch")?.pow($power);
            let device = trial.device();
            trial.iterate(|_| Tensor::zeros(1024 * batch, DType::F32, device).map(drop))
        }
    };
}
grows!(by_batch, "0 B", 2, [1, 8], 1, &mut Trial);
grows!(by_its_square, "0 B", 2, [1, 8], 2, &mut Trial);

#[mem_test(baseline = false)]
#[should_panic(expected = "on purpose")]
fn never_returns() -> ! {
    panic!("on purpose")
}

#[mem_test(baseline = false)]
#[should_panic(expected = "on purpose")]
#[expect(clippy::needless_lifetimes, reason = "the attribute must accept it")]
fn never_returns_on<'a>(_device: &'a Device) -> ! {
    panic!("on purpose")
}

#[mem_test(baseline = false)]
#[should_panic(expected = "on purpose")]
fn never_returns_from(trial: &mut Trial) -> ! {
    trial.mark("before");
    panic!("on purpose")
}

#[mem_test(baseline = false)]
fn texts_and_ranges_of_any_kind(device: &Device) -> Result<()> {
    let label = String::from("label");
    log_usage(&label, device);
    log_usage(label, device);
    let mut audit = Audit::every(2_usize).alert_above(String::from("1 GiB"));
    audit.step(device)?;
    let search = LargestBatch::new(1..9).limit(String::from("1 GiB"));
    assert_eq!(search.find(device, |batch| Tensor::zeros(batch, DType::F32, device))?, 8);
    Ok(())
}

fn leaks(trial: &Trial) -> Result<()> {
    let mut kept = Vec::with_capacity(16);
    trial.iterate(|_| {
        let _span = tracing::info_span!("step").entered();
        kept.push(Tensor::zeros(1024, DType::F32, trial.device())?);
        Result::Ok(())
    })
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn own_subscriber(trial: &mut Trial) -> Result<()> {
    tracing_subscriber::registry().init();
    leaks(trial)
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn own_subscriber_late(trial: &mut Trial) -> Result<()> {
    let _first = Tensor::zeros(1024, DType::F32, trial.device())?;
    tracing::subscriber::set_global_default(
        tracing_subscriber::registry().with(memcheck_runtime::Scopes),
    )
    .map_err(candle_core::Error::wrap)?;
    leaks(trial)
}

#[mem_test(max_growth = "0 B", baseline = false)]
fn no_subscriber(trial: &mut Trial) -> Result<()> {
    leaks(trial)
}

#[mem_test(max_growth = "0 B", iterations = 1, baseline = false)]
fn one_iteration(trial: &mut Trial) -> Result<()> {
    leaks(trial)
}
