//! Cached memory given back before and after a stretch of work.

use candle_core::Device;

use crate::usage::{Usage, log_usage, release_cached, usage};

/// Gives cached memory back to the device when it is made and when it goes.
///
/// What [`release_cached`] does at both ends, with a line of [`log_usage`] at
/// each: `cleanup before` and `cleanup after`. Make it first: values that are
/// declared behind it are dropped before it, and are part of what it gives back.
///
/// ```
/// use candle_core::{DType, Device, Tensor};
/// use memcheck_runtime::Cleanup;
///
/// # fn main() -> candle_core::Result<()> {
/// # let device = Device::Cpu;
/// for _epoch in 0..3 {
///     let _cleanup = Cleanup::new(&device);
///     let batch = Tensor::zeros((8, 128), DType::F32, &device)?;
///     batch.sqr()?;
/// }
/// # Ok(())
/// # }
/// ```
///
/// It is made and dropped whatever the driver says: a refusal is a `tracing`
/// event of level WARN and target `memcheck`. [`Cleanup::end`] returns it.
#[derive(Debug)]
#[must_use = "cached memory is given back again when the guard is dropped"]
pub struct Cleanup {
    device: Device,
    has_ended: bool,
}

impl Cleanup {
    /// Gives what `device` caches back, and does so again when it is dropped.
    pub fn new(device: &Device) -> Self {
        warn(give_back("cleanup before", device));
        Self { device: device.clone(), has_ended: false }
    }

    /// Ends it here, and says what is in use then.
    ///
    /// # Errors
    /// When the driver refuses.
    pub fn end(mut self) -> candle_core::Result<Usage> {
        self.has_ended = true;
        give_back("cleanup after", &self.device)?;
        Ok(usage(&self.device))
    }
}

impl Drop for Cleanup {
    fn drop(&mut self) {
        if !self.has_ended {
            warn(give_back("cleanup after", &self.device));
        }
    }
}

fn give_back(label: &str, device: &Device) -> candle_core::Result<()> {
    release_cached(device)?;
    log_usage(label, device);
    Ok(())
}

/// A guard has nobody to return an error to.
fn warn(done: candle_core::Result<()>) {
    if let Err(error) = done {
        tracing::warn!(target: "memcheck", "cached memory is not given back: {error}");
    }
}
