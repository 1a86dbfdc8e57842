//! Training in f16 with a loss scale at which gradients overflow.
//!
//! A step that overflows changes no weight, and halves the scale. The velocities of the optimizer
//! exist only after the first step that does not overflow, so that the memory of the run depends on
//! the gradients.

use candle_core::{DType, Device, Result};

use crate::mixed_precision::{
    LAYERS, LossScaler, ROWS, Trainer, VELOCITY_BYTES, WIDTH, step_peak_bytes,
};

/// The largest power of two at which the first step does not overflow.
pub const LARGEST: f64 = (1_u64 << 23) as f64;
/// Good steps in a row after which the scale is doubled.
pub const INTERVAL: u32 = 2;

/// A trainer with momentum that starts with this scale.
///
/// # Errors
///
/// When the device is full.
pub fn trainer(scale: f64, device: &Device) -> Result<Trainer> {
    let scaler = LossScaler::new(scale, INTERVAL);
    Ok(Trainer::new(DType::F16, scaler, device)?.with_momentum(0.9))
}

/// Live bytes between two steps: weights, input, target, and velocities after an update.
pub fn live_bytes(updates: usize) -> usize {
    let velocities = if updates > 0 { VELOCITY_BYTES } else { 0 };
    4 * LAYERS * WIDTH * WIDTH + (2 + 4) * ROWS * WIDTH + velocities
}

/// The peak of live bytes, in the backward pass. The pass of the first update has no velocities
/// yet.
pub fn peak_bytes(updates: usize) -> usize {
    let velocities = if updates > 1 { VELOCITY_BYTES } else { 0 };
    step_peak_bytes(DType::F16) + velocities
}

/// Bytes that a step keeps if it overflows and keeps its gradients.
pub fn leak_bytes() -> usize {
    VELOCITY_BYTES
}
