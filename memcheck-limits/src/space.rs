//! The memory spaces that blocks live in.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use crate::characters::is_word;
use crate::serialize_as_text;

/// The number of GPUs that the ledger of a test process counts apart.
pub const COUNTED_GPUS: usize = 32;

/// The memory space of a block. The order is that of reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Space {
    /// Blocks of at least 1 KiB in the heap of the process, from the Rust global allocator.
    Host,
    /// Smaller blocks of the same heap.
    HostSmall,
    /// Blocks that code in other languages takes from the heap of the process (`malloc` and its
    /// relatives).
    CHeap,
    /// The whole memory of the process, as the system reports it.
    Process,
    /// Memory of the CUDA device with this ordinal.
    Cuda(u16),
    /// Page-locked host memory that was allocated for the device with this ordinal
    /// (`cuMemHostAlloc`).
    Pinned(u16),
    /// Managed memory that was allocated for the device with this ordinal (`cuMemAllocManaged`). It
    /// has one address on the host and on all devices.
    Managed(u16),
    /// Memory that CUDA graphs hold on the device with this ordinal (allocations on a stream that is
    /// being captured). The graph keeps it after the program has freed it.
    Graph(u16),
    /// A pool of the program, which counts its own bytes (`Trial::counter`), by the name of its
    /// counter.
    Counter(&'static str),
}

/// The names of counters. A space is `Copy`, so that names are never freed. They are few: those of
/// the tests of one program, or of one file of results.
static COUNTERS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

impl Space {
    /// The space of the counter `name`; `None` unless the name is a word.
    pub fn counter(name: &str) -> Option<Self> {
        if !is_word(name) {
            return None;
        }
        let mut known = COUNTERS.lock().unwrap_or_else(PoisonError::into_inner);
        let name = match known.get(name) {
            Some(name) => name,
            None => {
                let name: &'static str = Box::leak(name.into());
                known.insert(name);
                name
            }
        };
        Some(Self::Counter(name))
    }

    /// False for a space of which only a number of bytes is known: the process and counters.
    pub fn has_blocks(self) -> bool {
        !matches!(self, Self::Process | Self::Counter(_))
    }

    /// True for the memory of a GPU.
    pub fn is_device(self) -> bool {
        matches!(self, Self::Cuda(_))
    }

    /// True for a space that only limits of growth apply to: the C heap, the process and counters.
    /// It is not in a baseline, because versions of libraries and of the system change its figures.
    pub fn has_own_limit(self) -> bool {
        matches!(self, Self::CHeap | Self::Process | Self::Counter(_))
    }

    /// True for memory that a CUDA driver allocates: the memory of a GPU and of its graphs, and host
    /// memory that is pinned or managed for one.
    pub fn is_of_driver(self) -> bool {
        matches!(self, Self::Cuda(_) | Self::Pinned(_) | Self::Managed(_) | Self::Graph(_))
    }
}

impl std::fmt::Display for Space {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Host => f.pad("host"),
            Self::HostSmall => f.pad("host/small"),
            Self::CHeap => f.pad("c-heap"),
            Self::Process => f.pad("process"),
            Self::Cuda(ordinal) => f.pad(&format!("cuda:{ordinal}")),
            Self::Pinned(ordinal) => f.pad(&format!("cuda:{ordinal}/pinned")),
            Self::Managed(ordinal) => f.pad(&format!("cuda:{ordinal}/managed")),
            Self::Graph(ordinal) => f.pad(&format!("cuda:{ordinal}/graph")),
            Self::Counter(name) => f.pad(&format!("counter/{name}")),
        }
    }
}

/// The error of a text that does not name a space.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a memory space: expected host, host/small, c-heap, process, cuda:N, \
     cuda:N/pinned, cuda:N/managed, cuda:N/graph or counter/NAME"
)]
pub struct SpaceError(String);

impl std::str::FromStr for Space {
    type Err = SpaceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(name) = text.strip_prefix("counter/") {
            return Self::counter(name).ok_or_else(|| SpaceError(text.to_owned()));
        }
        let parse_device_space = || {
            let (ordinal, kind) =
                text.strip_prefix("cuda:").map(|device| match device.split_once('/') {
                    Some((ordinal, kind)) => (ordinal, Some(kind)),
                    None => (device, None),
                })?;
            let ordinal = ordinal.parse().ok()?;
            match kind {
                None => Some(Self::Cuda(ordinal)),
                Some("pinned") => Some(Self::Pinned(ordinal)),
                Some("managed") => Some(Self::Managed(ordinal)),
                Some("graph") => Some(Self::Graph(ordinal)),
                Some(_) => None,
            }
        };
        match text {
            "host" => Ok(Self::Host),
            "host/small" => Ok(Self::HostSmall),
            "c-heap" => Ok(Self::CHeap),
            "process" => Ok(Self::Process),
            _ => parse_device_space().ok_or_else(|| SpaceError(text.to_owned())),
        }
    }
}

serialize_as_text!(Space);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        let devices = [0, 11].into_iter().flat_map(|ordinal| {
            [Space::Cuda, Space::Pinned, Space::Managed, Space::Graph].map(|space| space(ordinal))
        });
        let of_process = [Space::Host, Space::HostSmall, Space::CHeap, Space::Process];
        let counters = ["pool", "kv-cache.1"].map(|name| Space::counter(name).unwrap());
        for space in of_process.into_iter().chain(devices).chain(counters) {
            assert_eq!(space.to_string().parse(), Ok(space));
        }
        for text in [
            "cuda",
            "cuda:x",
            "cuda:0/other",
            "cuda:/pinned",
            "host/",
            "pinned",
            "counter/",
            "counter/a b",
        ] {
            assert_eq!(text.parse::<Space>(), Err(SpaceError(text.to_owned())));
        }
    }
}
