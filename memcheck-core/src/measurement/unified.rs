//! The memory of a machine on which host and device share one memory.

use serde::{Deserialize, Serialize};

use crate::size::Size;
use crate::space::Space;

/// The one memory of host and device over one run of a test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unified {
    /// The device.
    pub space: Space,
    /// The name of its card, as the driver reports it.
    pub card: String,
    /// Bytes of the memory, regardless of `fits`.
    pub capacity: u64,
    /// Highest number of live bytes of all spaces together.
    pub peak_allocated: u64,
}

impl Unified {
    /// The figure for a line, such as `host and device 40.0 MiB of 119.7 GiB`.
    pub fn shown(&self) -> String {
        format!("host and device {} of {}", Size(self.peak_allocated), Size(self.capacity))
    }
}
