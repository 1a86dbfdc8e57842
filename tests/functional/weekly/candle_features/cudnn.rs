//! Convolutions through cuDNN.

use candle_core::conv::CudnnFwdAlgo;
use candle_core::{DType, Device, Result, Tensor};
use memcheck_runtime::{Trial, mem_test};

fn inputs(device: &Device) -> Result<(Tensor, Tensor)> {
    let image = Tensor::zeros((2, 3, 32, 32), DType::F32, device)?;
    Ok((image, Tensor::zeros((8, 3, 3, 3), DType::F32, device)?))
}

#[mem_test(baseline = false, max_growth = "0 B")]
fn convolution(trial: &mut Trial) -> Result<()> {
    let (image, filter) = inputs(trial.device())?;
    trial.iterate(|_| image.conv2d(&filter, 1, 1, 1, 1).map(drop))
}

#[mem_test(baseline = false, max_growth = "0 B")]
fn no_convolution(trial: &mut Trial) -> Result<()> {
    let (image, _) = inputs(trial.device())?;
    trial.iterate(|_| image.relu().map(drop))
}

#[mem_test(baseline = false, max_growth = "0 B")]
fn keeps_its_outputs(trial: &mut Trial) -> Result<()> {
    let (image, filter) = inputs(trial.device())?;
    let mut kept = Vec::new();
    trial.iterate(|_| {
        kept.push(image.conv2d(&filter, 1, 1, 1, 1)?);
        Ok(())
    })
}

#[mem_test(baseline = false)]
fn an_algorithm_that_cudnn_does_not_have(trial: &mut Trial) -> Result<()> {
    let (image, filter) = inputs(trial.device())?;
    let direct = Some(CudnnFwdAlgo::Direct);
    trial.iterate(|_| image.conv2d_with_algo(&filter, 1, 1, 1, 1, direct).map(drop))
}

/// The CPU computes the same.
#[mem_test(baseline = false, max_growth = "0 B")]
fn convolutions_are_computed(trial: &mut Trial) -> Result<()> {
    let values = |count: usize| (0..count).map(|i| (i % 7) as f32 - 2.).collect::<Vec<_>>();
    let on = |device: &Device, stride, dilation| -> Result<Vec<f32>> {
        let image = Tensor::from_vec(values(2 * 3 * 30), (2, 3, 5, 6), device)?;
        let filter = Tensor::from_vec(values(4 * 3 * 6), (4, 3, 2, 3), device)?;
        image.conv2d(&filter, 1, stride, dilation, 1)?.flatten_all()?.to_vec1()
    };
    let one_dim = |device: &Device| -> Result<Vec<f32>> {
        let image = Tensor::from_vec(values(24), (1, 3, 8), device)?;
        let filter = Tensor::from_vec(values(18), (2, 3, 3), device)?;
        // The transposed image has strides.
        let image = image.transpose(1, 2)?.contiguous()?.transpose(1, 2)?;
        image.conv1d(&filter, 1, 2, 1, 1)?.flatten_all()?.to_vec1()
    };
    let device = trial.device().clone();
    trial.iterate(|_| {
        for (stride, dilation) in [(1, 1), (2, 1), (1, 2)] {
            assert_eq!(on(&device, stride, dilation)?, on(&Device::Cpu, stride, dilation)?);
        }
        assert_eq!(one_dim(&device)?, one_dim(&Device::Cpu)?);
        Ok(())
    })
}
