//! Of `functional/relations.rs`: tests whose limits relate them to each other. `train::plain` has a
//! peak of 102,400 B, and 0.6 of that are the 61,440 B of the others. `linear` holds 1,024 and `seq`
//! times 64 elements of 4 B. `square`, its twin, holds a score for each pair of positions. `grid`
//! holds `batch` times `seq` times 64 elements.

use candle_core::{DType, Result, Tensor};
use memcheck_runtime::{Trial, mem_test};

fn hold(trial: &mut Trial, bytes: usize) -> Result<()> {
    let device = trial.device().clone();
    trial.iterate(|_| Tensor::zeros(bytes / 4, DType::F32, &device).map(drop))
}

mod train {
    use super::*;

    #[mem_test]
    fn plain(trial: &mut Trial) -> Result<()> {
        hold(trial, 102_400)
    }

    #[mem_test(max_peak = "0.6 x plain")]
    fn checkpointed(trial: &mut Trial) -> Result<()> {
        hold(trial, 61_440)
    }

    #[mem_test(max_peak = "0.599 x train::plain")]
    fn greedy(trial: &mut Trial) -> Result<()> {
        hold(trial, 61_440)
    }
}

#[mem_test(
    cases(seq = [64, 128, 256, 512]),
    scaling(peak_allocated <= "seq", growth <= "1")
)]
fn linear(trial: &mut Trial) -> Result<()> {
    let (seq, device): (usize, _) = (trial.case("seq")?, trial.device().clone());
    trial.iterate(|_| {
        let table = Tensor::zeros(1024, DType::F32, &device)?;
        Tensor::zeros((seq, 64), DType::F32, &device)?;
        drop(table);
        Ok(())
    })
}

#[mem_test(cases(seq = [64, 128, 256, 512]), scaling(peak_allocated <= "seq"))]
fn square(trial: &mut Trial) -> Result<()> {
    let (seq, device): (usize, _) = (trial.case("seq")?, trial.device().clone());
    trial.iterate(|_| Tensor::zeros((seq, seq), DType::F32, &device).map(drop))
}

#[mem_test(
    cases(dtype = [f32, bf16], batch = [1, 2, 4], seq = [64, 128, 256]),
    scaling(peak_allocated <= "batch*seq")
)]
fn grid(trial: &mut Trial) -> Result<()> {
    let (batch, seq): (usize, usize) = (trial.case("batch")?, trial.case("seq")?);
    let (dtype, device): (DType, _) = (trial.case("dtype")?, trial.device().clone());
    trial.iterate(|_| Tensor::zeros((batch, seq, 64), dtype, &device).map(drop))
}

/// Not part of a run of all others.
mod leaks {
    use super::*;

    #[mem_test(cases(seq = [64, 128, 256]), scaling(growth <= "1"))]
    fn leaking(trial: &mut Trial) -> Result<()> {
        let device = trial.device().clone();
        let mut kept = Vec::new();
        trial.iterate(|_| Tensor::zeros(1 << 19, DType::F32, &device).map(|it| kept.push(it)))
    }
}

mod first {
    use super::*;

    #[mem_test]
    fn twin(trial: &mut Trial) -> Result<()> {
        hold(trial, 4096)
    }
}

mod second {
    use super::*;

    #[mem_test]
    fn twin(trial: &mut Trial) -> Result<()> {
        hold(trial, 4096)
    }

    #[mem_test(device = "cuda")]
    fn on_a_gpu(trial: &mut Trial) -> Result<()> {
        hold(trial, 4096)
    }
}
