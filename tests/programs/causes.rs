//! Of `functional/causes.rs`: leaks that resemble those of a cause, but lack its evidence.

use std::collections::HashMap;
use std::thread;

use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{DType, Device, DeviceLocation, Result, Tensor, Var};
use candle_nn::{AdamW, Linear, Module, Optimizer, ParamsAdamW, ops};
use memcheck_runtime::{Trial, mem_test};

/// So that the list itself does not grow.
const CAPACITY: usize = 2_048;
const ROWS: usize = 32;
const WIDTH: usize = 64;

/// Keeps the result of each iteration.
fn keep<T>(trial: &Trial, made: impl Fn(&Device) -> Result<T>) -> Result<()> {
    let device = trial.device().clone();
    let mut kept = Vec::with_capacity(CAPACITY);
    trial.iterate(|_| {
        kept.push(made(&device)?);
        Ok(())
    })
}

fn ones(device: &Device, shape: (usize, usize)) -> Result<Tensor> {
    Tensor::ones(shape, DType::F32, device)
}

/// A variable and what `loss` computes from it.
struct Layer(Var);

impl Layer {
    fn new(device: &Device) -> Result<Self> {
        Ok(Self(Var::from_tensor(&ones(device, (WIDTH, WIDTH))?)?))
    }

    fn output(&self) -> Result<Tensor> {
        ones(self.0.device(), (ROWS, WIDTH))?.matmul(&self.0)?.relu()
    }
}

/// The driver refuses the free of a scalar in each iteration, but the layers are in a list.
#[mem_test(device = "cuda", baseline = false, max_growth = "64 B")]
fn layers_beside_refused_frees(trial: &mut Trial) -> Result<()> {
    let device = trial.device().clone();
    let weights = ones(&Device::Cpu, (WIDTH, WIDTH))?;
    let mut kept = Vec::with_capacity(CAPACITY);
    trial.iterate(|_| {
        // The first call returns the error of the last free.
        let scalar = || Tensor::ones((), DType::F32, &device);
        let scalar = scalar().or_else(|_| scalar())?;
        kept.push(QTensor::quantize_onto(&weights, GgmlDType::Q8_0, &device)?);
        thread::spawn(move || drop(scalar)).join().expect("the thread does not panic");
        Ok(())
    })
}

/// A device is opened and dropped in each iteration, but the list is on the device of the test.
#[mem_test(device = "cuda", baseline = false, max_growth = "0 B")]
fn list_beside_reopened_devices(trial: &mut Trial) -> Result<()> {
    keep(trial, |device| {
        let DeviceLocation::Cuda { gpu_id } = device.location() else {
            candle_core::bail!("this is not a GPU");
        };
        let on_new_device = ones(&Device::new_cuda(gpu_id)?, (ROWS, WIDTH))?;
        let kept = ones(device, (ROWS, WIDTH));
        drop(on_new_device);
        kept
    })
}

#[mem_test(baseline = false, max_growth = "0 B")]
fn models_with_their_optimizers(trial: &mut Trial) -> Result<()> {
    keep(trial, |device| {
        let layer = Layer::new(device)?;
        let optimizer = AdamW::new(vec![layer.0.clone()], ParamsAdamW::default())?;
        Ok((layer, optimizer))
    })
}

/// The store is dropped; what is computed from a gradient is not.
#[mem_test(baseline = false, max_growth = "0 B")]
fn norms_of_gradients(trial: &mut Trial) -> Result<()> {
    let layer = Layer::new(trial.device())?;
    keep(trial, |_| {
        let gradients = layer.output()?.sum_all()?.backward()?;
        let gradient = gradients.get(&layer.0).expect("the variable has a gradient");
        gradient.sqr()?.sum(0)?.repeat((ROWS, 1))
    })
}

#[mem_test(baseline = false, max_growth = "0 B")]
fn copies_of_outputs(trial: &mut Trial) -> Result<()> {
    let weights = ones(trial.device(), (WIDTH, WIDTH))?;
    keep(trial, |_| weights.relu()?.copy())
}

#[mem_test(baseline = false, max_growth = "0 B")]
fn detached_outputs(trial: &mut Trial) -> Result<()> {
    let layer = Layer::new(trial.device())?;
    keep(trial, |_| Ok(layer.output()?.detach()))
}

/// A view of all rows but one.
#[mem_test(baseline = false, max_growth = "0 B")]
fn views_of_almost_everything(trial: &mut Trial) -> Result<()> {
    keep(trial, |device| ones(device, (ROWS, WIDTH))?.relu()?.narrow(0, 0, ROWS - 1))
}

/// Outputs of every length, in a list instead of a map.
#[mem_test(baseline = false, max_growth = "0 B", max_iterations = 40)]
fn outputs_of_every_length(trial: &mut Trial) -> Result<()> {
    let device = trial.device().clone();
    let mut kept = Vec::with_capacity(CAPACITY);
    trial.iterate(|i| {
        kept.push(ones(&device, (ROWS + i, WIDTH))?.relu()?);
        Ok(())
    })
}

/// Makes its list longer. The map has the numbers of outputs of each length.
fn count_and_keep(
    output: Tensor,
    counts: &mut HashMap<usize, u32>,
    kept: &mut Vec<Tensor>,
) -> Result<()> {
    *counts.entry(output.dim(0)?).or_insert(0) += 1;
    let doubled = (output * 2.0)?;
    kept.push(doubled); // line: adds to the list
    Ok(())
}

/// Outputs of every length in a list, by a function that counts lengths in a map.
#[mem_test(baseline = false, max_growth = "0 B", max_iterations = 40)]
fn outputs_of_counted_lengths(trial: &mut Trial) -> Result<()> {
    let device = trial.device().clone();
    let (mut counts, mut kept) = (HashMap::new(), Vec::new());
    trial.iterate(|i| count_and_keep(ones(&device, (ROWS + i, WIDTH))?, &mut counts, &mut kept))
}

/// The scalars of another function are in a list, which is not that of the outputs.
fn log(losses: &mut Vec<[u64; 2]>) {
    losses.push([1, 2]);
}

/// Outputs that nothing owns any more.
fn forget(device: &Device) -> Result<()> {
    std::mem::forget(ones(device, (ROWS, WIDTH))?.relu()?);
    Ok(())
}

#[mem_test(baseline = false, max_growth = "64 B")]
fn forgotten_outputs_beside_a_list(trial: &mut Trial) -> Result<()> {
    let device = trial.device().clone();
    let mut losses = Vec::new();
    trial.iterate(|_| {
        log(&mut losses);
        forget(&device)
    })
}

/// The keys of each token, which are never concatenated.
#[mem_test(baseline = false, max_growth = "0 B")]
fn keys_of_each_token(trial: &mut Trial) -> Result<()> {
    keep(trial, |device| Tensor::ones((1, 8, 1, WIDTH), DType::F32, device)?.affine(2.0, 0.0))
}

/// The keys of the tokens of a request at once.
#[mem_test(baseline = false, max_growth = "0 B")]
fn keys_of_each_request(trial: &mut Trial) -> Result<()> {
    keep(trial, |device| Tensor::ones((1, 8, 4, WIDTH), DType::F32, device)?.affine(2.0, 0.0))
}

/// No `Tensor` holds them, but they are made by an operation.
#[mem_test(baseline = false, max_growth = "0 B")]
fn quantized_layers(trial: &mut Trial) -> Result<()> {
    let weights = ones(&Device::Cpu, (WIDTH, WIDTH))?;
    keep(trial, |device| QTensor::quantize_onto(&weights, GgmlDType::Q8_0, device))
}

/// Probabilities of classes, and not of attention.
#[mem_test(baseline = false, max_growth = "0 B")]
fn probabilities_of_classes(trial: &mut Trial) -> Result<()> {
    keep(trial, |device| ops::softmax_last_dim(&ones(device, (ROWS, WIDTH))?))
}

/// A model whose weights are read from the same bytes again and again.
#[mem_test(baseline = false, max_growth = "0 B")]
fn weights_that_are_loaded_again(trial: &mut Trial) -> anyhow::Result<()> {
    let file = crate::folder().join("weights.safetensors");
    trial.unmeasured(|| {
        let weights = HashMap::from([("weight", ones(&Device::Cpu, (ROWS, WIDTH))?)]);
        candle_core::safetensors::save(&weights, &file)
    })?;
    let bytes = std::fs::read(&file)?;
    keep(trial, |device| {
        let mut weights = candle_core::safetensors::load_buffer(&bytes, device)?;
        Ok(Linear::new(weights.remove("weight").expect("it was saved"), None))
    })?;
    Ok(())
}

#[mem_test(baseline = false, max_growth = "0 B")]
fn noise_of_each_step(trial: &mut Trial) -> Result<()> {
    keep(trial, |device| Tensor::randn(0f32, 1f32, (ROWS, WIDTH), device))
}

#[mem_test(baseline = false, max_growth = "0 B")]
fn variables_from_data(trial: &mut Trial) -> Result<()> {
    let data = vec![0.5f32; ROWS * WIDTH];
    keep(trial, |device| Var::from_slice(&data, (ROWS, WIDTH), device))
}

/// A batch of input, whose data are a `Vec` of the program.
#[mem_test(baseline = false, max_growth = "0 B")]
fn batches_from_a_vec(trial: &mut Trial) -> Result<()> {
    keep(trial, |device| Tensor::from_vec(vec![1u32; ROWS * WIDTH], (ROWS, WIDTH), device))
}

/// Random numbers, which a loader sends: they can be noise.
#[mem_test(baseline = false, max_growth = "0 B")]
fn random_batches_of_a_channel(trial: &mut Trial) -> Result<()> {
    let (sender, receiver) = std::sync::mpsc::channel();
    trial.iterate(|_| {
        let batch = Tensor::rand(0f32, 1f32, (ROWS, WIDTH), trial.device())?;
        sender.send(batch).expect("the receiver is live");
        Result::Ok(())
    })?;
    drop(receiver);
    Ok(())
}

/// The program's own optimizer: its state is not one of candle's optimizers.
#[mem_test(baseline = false, max_growth = "0 B")]
fn state_of_an_own_optimizer(trial: &mut Trial) -> Result<()> {
    let layer = Layer::new(trial.device())?;
    let linear = Linear::new(layer.0.as_tensor().clone(), None);
    keep(trial, |device| {
        linear.forward(&ones(device, (ROWS, WIDTH))?)?;
        Tensor::zeros((WIDTH, WIDTH), DType::F32, device)
    })
}
