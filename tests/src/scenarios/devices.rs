//! Memory of devices that are opened again for each request and kept, and memory whose free the
//! driver refuses.

use std::collections::HashMap;
use std::sync::mpsc;
use std::thread;

use candle_core::quantized::QMatMul;
use candle_core::{DType, Device, DeviceLocation, Module, Result, Tensor};
use candle_nn::{Linear, VarBuilder, linear};
use memcheck_runtime::Trial;

use super::ratchets::{quantized, workspace_bytes};
use super::{Family, HISTORY, Runs, Scenario, scenario};

const SOURCE: &str = include_str!("devices.rs");

/// The scenarios of this module.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(SOURCE, device_of_every_request, "device-recreated", Steady, runs: Runs::OnGpu),
    scenario!(SOURCE, workspace_of_every_device, "device-recreated", Steady, runs: Runs::OnGpu),
    scenario!(SOURCE, device_of_every_model, "device-recreated", Steady, runs: Runs::OnGpu),
    scenario!(SOURCE, dropped_without_a_context, "free-without-context", Steady, runs: Runs::OnGpu),
    scenario!(SOURCE, answers_of_a_worker, "free-without-context", Steady, runs: Runs::OnGpu),
    scenario!(SOURCE, retained device_dropped_late, "free-without-context", runs: Runs::OnGpu),
];

/// Opens the GPU of `device` once more. candle treats it as another device.
fn opened_again(device: &Device) -> Result<Device> {
    match device.location() {
        DeviceLocation::Cuda { gpu_id } => Device::new_cuda(gpu_id),
        _ => Ok(Device::Cpu),
    }
}

/// A request handler that opens a device and loads its weights on it.
pub mod device_of_every_request {
    use super::*;

    const WIDTH: usize = 32;

    /// `width²` of f32.
    pub fn bytes(_leg: Family) -> u64 {
        (WIDTH * WIDTH * 4) as u64
    }

    /// Keeps the device and the weights of every request.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |_| ())
    }

    /// Drops those of the previous request.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, Vec::clear)
    }

    fn run(trial: &mut Trial, before: fn(&mut Vec<(Device, Tensor)>)) -> anyhow::Result<()> {
        let own = trial.device().clone();
        let mut handlers = Vec::with_capacity(HISTORY);
        trial.iterate(|_| {
            before(&mut handlers);
            let device = opened_again(&own)?;
            // leaks: device_of_every_request
            let weights = Tensor::zeros((WIDTH, WIDTH), DType::F32, &device)?;
            handlers.push((device, weights));
            Ok(())
        })
    }
}

/// Devices that are dropped. candle keeps a workspace for quantized products of each for ever.
pub mod workspace_of_every_device {
    use super::*;

    const ROWS: usize = 16;
    const WIDTH: usize = 256;

    /// One workspace.
    pub fn bytes(_leg: Family) -> u64 {
        workspace_bytes(ROWS, WIDTH)
    }

    /// Multiplies on a new device.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, opened_again)
    }

    /// Multiplies on the test's device, which keeps one workspace.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |device| Ok(device.clone()))
    }

    fn run(trial: &mut Trial, chosen: fn(&Device) -> Result<Device>) -> anyhow::Result<()> {
        let own = trial.device().clone();
        trial.iterate(|_| {
            let device = chosen(&own)?;
            let layer = QMatMul::from_qtensor(quantized(WIDTH, &device)?)?;
            let input = Tensor::zeros((ROWS, WIDTH), DType::F32, &device)?;
            // leaks: workspace_of_every_device
            layer.forward(&input)?;
            Ok(())
        })
    }
}

/// A tensor that is dropped on a thread which never used CUDA.
///
/// Dropping does not bind the context to the thread (`Drop for CudaSlice`, cudarc 0.19.10), and
/// candle uses the stream of the thread. The driver therefore refuses the free, and the next call
/// on any thread returns the error.
pub mod dropped_without_a_context {
    use super::*;

    const FLOATS: usize = 512;

    /// One answer.
    pub fn bytes(_leg: Family) -> u64 {
        (FLOATS * 4) as u64
    }

    /// Hands each answer to a thread that sends and drops it.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |_| Ok(()))
    }

    /// The thread synchronizes first, which binds the context.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, Device::synchronize)
    }

    fn run(trial: &mut Trial, before: fn(&Device) -> Result<()>) -> anyhow::Result<()> {
        let device = trial.device().clone();
        trial.iterate(|_| {
            // The server retries, because the first call returns the error of the last free.
            // leaks: dropped_without_a_context
            let answer = zeros!(FLOATS, &device).or_else(|_| zeros!(FLOATS, &device))?;
            let sender = thread::spawn(move || before(answer.device()));
            Ok(sender.join().expect("the thread does not panic")?)
        })
    }
}

/// A device that is dropped last, with its weights, on the thread that waits for the end of the
/// program.
pub mod device_dropped_late {
    use super::*;

    const WIDTH: usize = 32;

    /// The weights, `width²` of f32.
    pub fn bytes(_leg: Family) -> u64 {
        (WIDTH * WIDTH * 4) as u64
    }

    /// Hands device and weights to that thread.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        let (device, weights) = run(trial)?;
        dropped_at_the_end((weights, device));
        Ok(())
    }

    /// Drops the weights on the thread that has the context, and hands over only the device.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        let (device, weights) = run(trial)?;
        drop(weights);
        dropped_at_the_end(device);
        Ok(())
    }

    fn dropped_at_the_end(late: impl Send + 'static) {
        thread::spawn(move || drop(late)).join().expect("the thread does not panic");
    }

    fn run(trial: &mut Trial) -> anyhow::Result<(Device, Tensor)> {
        let device = opened_again(trial.device())?;
        // leaks: device_dropped_late
        let weights = Tensor::zeros((WIDTH, WIDTH), DType::F32, &device)?;
        trial.iterate(|_| weights.relu().map(drop))?;
        Ok((device, weights))
    }
}

/// A registry of models, each of which opens a device of its own.
pub mod device_of_every_model {
    use super::*;

    const WIDTH: usize = 32;

    struct Model {
        layer: Linear,
        device: Device,
    }

    impl Model {
        fn load(own: &Device) -> Result<Self> {
            let device = opened_again(own)?;
            let weights = VarBuilder::zeros(DType::F32, &device);
            // leaks: device_of_every_model
            Ok(Self { layer: linear(WIDTH, WIDTH, weights)?, device })
        }

        fn answer(&self) -> Result<Tensor> {
            let input = Tensor::zeros((1, WIDTH), DType::F32, &self.device)?;
            self.layer.forward(&input)
        }
    }

    /// A weight of `width²` and a bias of `width` f32.
    pub fn bytes(_leg: Family) -> u64 {
        ((WIDTH + 1) * WIDTH * 4) as u64
    }

    /// Registers each version of the model under its own name.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |version| version)
    }

    /// Replaces the model by its new version.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |_| 0)
    }

    fn run(trial: &mut Trial, name: fn(usize) -> usize) -> anyhow::Result<()> {
        let own = trial.device().clone();
        let mut models = HashMap::with_capacity(HISTORY);
        trial.iterate(|version| {
            let model = Model::load(&own)?;
            model.answer()?;
            models.insert(name(version), model);
            Ok(())
        })
    }
}

/// A worker that writes answers to a client, on a thread that never used CUDA.
pub mod answers_of_a_worker {
    use super::*;

    const FLOATS: usize = 512;

    /// One answer.
    pub fn bytes(_leg: Family) -> u64 {
        (FLOATS * 4) as u64
    }

    /// The worker drops each answer when it is written.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |_| None)
    }

    /// The worker hands each answer back to the thread that computed it.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, Some)
    }

    fn run(trial: &mut Trial, written: fn(Tensor) -> Option<Tensor>) -> anyhow::Result<()> {
        let device = trial.device().clone();
        let (answers, received) = mpsc::channel::<Tensor>();
        let (done, returned) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(move || received.iter().try_for_each(|one| done.send(written(one))));
            let result = trial.iterate(|_| {
                // The server retries, because the first call returns the error of the last free.
                // leaks: answers_of_a_worker
                let answer = zeros!(FLOATS, &device).or_else(|_| zeros!(FLOATS, &device))?;
                answers.send(answer)?;
                returned.recv()?;
                anyhow::Ok(())
            });
            drop(answers);
            result
        })
    }
}
