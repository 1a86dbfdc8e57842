//! The devices of a test, as candle's.

use std::sync::{OnceLock, PoisonError};

use candle_core::Device;
use memcheck_core::quiet;
use memcheck_ledger as ledger;

use super::Trial;
use crate::{canary, device};

/// All devices of the machine, once the body has asked for them.
#[derive(Debug, Default)]
pub(super) struct OpenDevices(OnceLock<Vec<Device>>);

impl Trial {
    /// The device on which the test runs. The memory of this device is judged.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// All devices of the machine by ordinal, including the test's own. If the body allocates on
    /// another device, the memory of that device is judged too.
    ///
    /// # Errors
    /// If a device cannot be opened.
    pub fn devices(&self) -> candle_core::Result<&[Device]> {
        let _quiet = quiet::enter();
        // Locked until the end, so that only one of two threads that call this opens the devices.
        let mut canaries = self.canaries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(devices) = self.devices.0.get() {
            return Ok(devices);
        }
        let devices = device::all(&self.device)?;
        let own = device::space(&self.device);
        for other in devices.iter().filter(|other| device::space(other) != own) {
            let space = device::space(other);
            // Lifted, because the body may be in `Trial::unmeasured`.
            let seen = quiet::lifted(|| {
                let _quiet = quiet::enter();
                canary::on_device(other)
            })?;
            canaries.push((space, seen));
            ledger::reset_unused(space);
        }
        Ok(self.devices.0.get_or_init(|| devices))
    }
}
