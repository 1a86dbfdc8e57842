//! Steps that do not survive a refused allocation. They are in a file of their own, because an
//! `unwrap` in the file of a test counts as an error that the test returns.

use std::time::Duration;

use candle_core::{DType, Device, Result, Tensor};

/// A macro, so that the line of an allocation is the one that calls candle.
#[collapse_debuginfo(yes)]
macro_rules! zeros {
    ($elements:expr, $device:expr) => {
        Tensor::zeros($elements, DType::F32, $device)
    };
}

/// Forgets its first tensor if the second is refused.
pub(crate) struct KeptOnError;

impl KeptOnError {
    pub(crate) fn step(device: &Device) -> Result<()> {
        let first = zeros!(1024, device)?;
        match zeros!(2048, device) {
            Ok(_) => Ok(()),
            Err(error) => {
                std::mem::forget(first);
                Err(error)
            }
        }
    }
}

pub(crate) fn unwrapped(device: &Device) -> Result<()> {
    zeros!(1024, device)?;
    zeros!(2048, device).unwrap();
    Ok(())
}

pub(crate) fn endless(device: &Device) -> Result<()> {
    let refused = zeros!(1024, device).is_err();
    if refused {
        std::thread::sleep(Duration::from_secs(600));
    }
    Ok(())
}

pub(crate) fn aborting(device: &Device) -> Result<()> {
    zeros!(1024, device)?;
    if zeros!(2048, device).is_err() {
        std::process::abort();
    }
    Ok(())
}

/// Grows by 1 KiB each time its second allocation is refused.
#[derive(Debug, Default)]
pub(crate) struct StateFirst {
    failed: usize,
}

impl StateFirst {
    pub(crate) fn step(&mut self, device: &Device) -> Result<()> {
        let _first = zeros!(1024 + 256 * self.failed, device)?;
        self.failed += 1;
        let _second = zeros!(2048, device)?;
        self.failed -= 1;
        Ok(())
    }
}
