//! The values are those of candle's own tests of both versions.

use candle_core::{D, DType, Device, Result, Tensor};
use memcheck_runtime::{Trial, mem_test};

fn inputs(device: &Device, width: usize, scale: f64) -> Result<[Tensor; 3]> {
    let x = Tensor::arange(0u32, 6 * width as u32, device)?.to_dtype(DType::F16)?;
    let x = x.reshape((1, 3, 2, width))?.transpose(1, 2)?;
    Ok([(&x / (30. * scale))?, (&x / (40. * scale))?, (&x / (50. * scale))?])
}

fn rounded(x: Tensor) -> Vec<f32> {
    let all = x.transpose(1, 2).unwrap().flatten_all().unwrap();
    let all: Vec<f32> = all.to_dtype(DType::F32).unwrap().to_vec1().unwrap();
    all.iter().map(|x| (x * 1e4).round() / 1e4).collect()
}

#[mem_test(baseline = false, max_growth = "0 B")]
fn version_2_computes(trial: &mut Trial) -> Result<()> {
    let [q, k, v] = inputs(trial.device(), 8, 1.)?;
    trial.iterate(|_| {
        let all = rounded(candle_flash_attn::flash_attn(&q, &k, &v, 0.5, false)?);
        assert_eq!(all[..8], [0.0837, 0.1038, 0.1238, 0.1438, 0.1637, 0.1837, 0.2037, 0.2238]);
        assert_eq!(all[40..], [0.7622, 0.7822, 0.8022, 0.8223, 0.8423, 0.8623, 0.8823, 0.9023]);
        Ok(())
    })
}

#[mem_test(baseline = false, max_growth = "0 B")]
fn version_3_computes(trial: &mut Trial) -> Result<()> {
    let [q, k, v] = inputs(trial.device(), 64, 10.)?;
    trial.iterate(|_| {
        let all = rounded(candle_flash_attn_v3::flash_attn(&q, &k, &v, 0.5, false, false)?);
        assert_eq!(all[..4], [0.0808, 0.0828, 0.0848, 0.0869]);
        assert_eq!(all[380..], [0.7598, 0.7617, 0.7637, 0.7656]);
        Ok(())
    })
}

const SHAPE: (usize, usize, usize, usize) = (2, 512, 4, 64);

#[mem_test(baseline = false, max_growth = "0 B")]
fn flash(trial: &mut Trial) -> Result<()> {
    let x = Tensor::zeros(SHAPE, DType::F16, trial.device())?;
    trial.iterate(|_| candle_flash_attn::flash_attn(&x, &x, &x, 0.125, true).map(drop))
}

#[mem_test(baseline = false, max_growth = "0 B")]
fn plain(trial: &mut Trial) -> Result<()> {
    let x = Tensor::zeros(SHAPE, DType::F16, trial.device())?.transpose(1, 2)?.contiguous()?;
    trial.iterate(|_| {
        let scores = x.matmul(&x.transpose(D::Minus1, D::Minus2)?)?;
        scores.matmul(&x).map(drop)
    })
}

#[mem_test(baseline = false, max_growth = "0 B")]
fn keeps_its_outputs(trial: &mut Trial) -> Result<()> {
    let x = Tensor::zeros(SHAPE, DType::F16, trial.device())?;
    let mut kept = Vec::new();
    trial.iterate(|_| {
        kept.push(candle_flash_attn::flash_attn(&x, &x, &x, 0.125, true)?);
        Ok(())
    })
}
