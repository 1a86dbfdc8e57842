//! The memory spaces that bytes live in.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Where a block lives. Ordered as reports list them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Space {
    /// The process's heap, through the Rust global allocator.
    Host,
    /// Page-locked host memory from the CUDA driver (`cuMemHostAlloc`).
    Pinned,
    /// Managed memory (`cuMemAllocManaged`): one address on host and devices.
    Managed,
    /// Memory of the CUDA device with this ordinal.
    Cuda(u16),
}

impl Space {
    /// Whether bytes of this space are a GPU's.
    pub fn is_device(self) -> bool {
        matches!(self, Self::Cuda(_))
    }
}

impl std::fmt::Display for Space {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Host => f.pad("host"),
            Self::Pinned => f.pad("pinned"),
            Self::Managed => f.pad("managed"),
            Self::Cuda(ordinal) => f.pad(&format!("cuda:{ordinal}")),
        }
    }
}

/// Why a text names no space.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a memory space: host, pinned, managed or cuda:N")]
pub struct SpaceError(String);

impl std::str::FromStr for Space {
    type Err = SpaceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "host" => Ok(Self::Host),
            "pinned" => Ok(Self::Pinned),
            "managed" => Ok(Self::Managed),
            _ => text
                .strip_prefix("cuda:")
                .and_then(|ordinal| ordinal.parse().ok())
                .map(Self::Cuda)
                .ok_or_else(|| SpaceError(text.to_owned())),
        }
    }
}

impl Serialize for Space {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Space {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for space in [Space::Host, Space::Pinned, Space::Managed, Space::Cuda(0), Space::Cuda(11)] {
            assert_eq!(space.to_string().parse(), Ok(space));
        }
        assert!("cuda".parse::<Space>().is_err());
        assert!("cuda:x".parse::<Space>().is_err());
    }
}
