//! The devices of a machine and the spaces of their memory.
//!
//! With the feature `candle` a device is candle's. Without it, it is the number of a GPU, and the
//! driver is called directly. Both files define the same items.

#[cfg(not(feature = "candle"))]
mod by_number;
#[cfg(feature = "candle")]
mod of_candle;

#[cfg(not(feature = "candle"))]
pub use by_number::*;
#[cfg(feature = "candle")]
pub use of_candle::*;

use memcheck_core::space::Space;

/// The result of a call of a device.
pub(crate) type Result<T> = std::result::Result<T, Error>;

/// The space of the device's memory.
pub(crate) fn space(device: &Device) -> Space {
    ordinal(device).map_or(Space::Host, Space::Cuda)
}
