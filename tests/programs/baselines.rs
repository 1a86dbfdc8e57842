//! Of `functional/baselines.rs`: tests with baselines, of which the functional test changes the
//! figures.

use candle_core::{DType, Device, Result, Tensor};
use memcheck_runtime::{Trial, mem_test};

/// One block of 400,000 bytes.
#[mem_test(max_growth = "0 B")]
fn clean(device: &Device) -> Result<()> {
    Tensor::zeros(100_000, DType::F32, device)?;
    Ok(())
}

/// Variables change the shape of one of its tensors.
#[mem_test(max_growth = "0 B")]
fn random_rows(trial: &mut Trial) -> Result<()> {
    let rows = |name| std::env::var(name).map_or(128, |rows| rows.parse().expect("a number"));
    let device = trial.device().clone();
    let weights = Tensor::ones((rows("WEIGHTS"), 1024), DType::F32, &device)?; // line: weights
    trial.iterate(|_| {
        let h = Tensor::randn(0f32, 1f32, (rows("ROWS"), 1024), &device)?; // line: randn
        let relu = h.relu()?;
        (relu.sum_all()? + weights.sum_all()?).map(drop)
    })
}

/// The names of their baselines are equal.
#[expect(non_snake_case, reason = "the name of a test has `__` in the place of `::`")]
mod twins {
    use super::*;

    mod a {
        use super::*;

        #[mem_test]
        fn b() {}
    }

    #[mem_test]
    fn a__b() {}
}

/// It leaks in every second run. A file, which the functional test names, has a letter for each run.
#[mem_test(max_growth = "0 B")]
fn unsteady(trial: &mut Trial) -> anyhow::Result<()> {
    let file = std::env::var_os("RUNS_OF_UNSTEADY").expect("the functional test sets it");
    let runs = std::fs::read_to_string(&file).unwrap_or_default();
    std::fs::write(file, format!("{runs}."))?;
    let mut kept = Vec::with_capacity(64);
    trial.iterate(|_| {
        if runs.len() == 1 || runs.len() > 9 {
            kept.push(vec![0_u8; 4096]);
        }
        anyhow::Ok(())
    })
}
