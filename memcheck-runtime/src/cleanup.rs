//! A guard that releases cached memory before and after a section of a program.

use candle_core::Device;

use crate::usage::{Usage, log_usage, release_cached, usage};

/// Releases cached memory of a device when it is created and when it is dropped.
///
/// Both times it calls [`release_cached`] and then [`log_usage`], with the labels `cleanup before`
/// and `cleanup after`. Create the guard first: values that are declared after it are dropped
/// before it, so that it can release their memory too.
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
/// An error of the driver does not prevent its creation or its drop: the guard reports the error as
/// a `tracing` event of level WARN and target `memcheck`. [`Cleanup::end`] returns the error
/// instead.
#[derive(Debug)]
#[must_use = "cached memory is released again when the guard is dropped"]
pub struct Cleanup {
    device: Device,
    has_ended: bool,
}

impl Cleanup {
    /// Releases the cached memory of `device`, and does so again when the guard is dropped.
    pub fn new(device: &Device) -> Self {
        warn_on_error(release("cleanup before", device));
        Self { device: device.clone(), has_ended: false }
    }

    /// Releases the cached memory now instead of at the drop, and returns the usage after that.
    ///
    /// # Errors
    /// If the driver refuses to release the memory.
    pub fn end(mut self) -> candle_core::Result<Usage> {
        self.has_ended = true;
        release("cleanup after", &self.device)?;
        Ok(usage(&self.device))
    }
}

impl Drop for Cleanup {
    fn drop(&mut self) {
        if !self.has_ended {
            warn_on_error(release("cleanup after", &self.device));
        }
    }
}

fn release(label: &str, device: &Device) -> candle_core::Result<()> {
    release_cached(device)?;
    log_usage(label, device);
    Ok(())
}

/// Emits a warning, because a drop cannot return an error.
fn warn_on_error(released: candle_core::Result<()>) {
    if let Err(error) = released {
        tracing::warn!(target: "memcheck", "cached memory was not released: {error}");
    }
}
