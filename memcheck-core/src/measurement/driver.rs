//! The figures of driver, NVML and CUPTI for a GPU, with memory that the probes do not see.

use serde::{Deserialize, Serialize};

use crate::size::{both, exact};
use crate::space::Space;

/// The names of the figures that a simulated device can only estimate.
const ESTIMATES: [&str; 3] = ["reserved", "peak_reserved", "device_used"];

/// The names of the figures that contain workspaces of cuDNN and cuBLASLt.
const OF_WORKSPACES: [&str; 2] = ["peak_allocated", "allocated_total"];

/// The observations of the driver, NVML and CUPTI in one run of a test on a GPU.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Driver {
    /// True if the driver is simulated. Then some figures are [estimates](Self::estimates).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub simulated: bool,
    /// The GPU; `None` with a simulated driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Gpu>,
    /// Memory outside of the driver's pool; only in a run with attribution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untracked: Option<Untracked>,
    /// Other processes on the devices that refused an allocation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<Occupant>,
    /// The workspaces that the program allocated on a simulated device, by library.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workspaces: Vec<Workspaces>,
}

impl Driver {
    /// Returns the names of the figures that are estimates.
    pub fn estimates(&self) -> Vec<&'static str> {
        let reserved = ESTIMATES.iter().filter(|_| self.simulated);
        let allocated = OF_WORKSPACES.iter().filter(|_| !self.workspaces.is_empty());
        reserved.chain(allocated).copied().collect()
    }
}

/// Workspaces whose sizes a simulated library has estimated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workspaces {
    /// The library, such as `cuDNN`.
    pub library: String,
    /// Their number.
    pub count: u64,
    /// The bytes of the largest.
    pub largest: u64,
}

impl Workspaces {
    /// `workspaces of cuDNN: 12, the largest of 576 B (576 B)`.
    pub fn shown(&self) -> String {
        let Self { library, count, largest } = self;
        format!("workspaces of {library}: {}, the largest of {}", exact(*count), both(*largest))
    }
}

/// A GPU, with the names that its driver and NVML use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gpu {
    /// The name of the card.
    pub name: String,
    /// `GPU-…`, or `MIG-…` for a slice; `None` if NVML does not answer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub uuid: Option<String>,
}

/// A process that holds memory of a device, as reported by NVML.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Occupant {
    /// The device.
    pub space: Space,
    /// The process id. In a container it is the id on the host.
    pub pid: u32,
    /// The name of the process, if NVML knows it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    /// The bytes that it holds, if NVML knows them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bytes: Option<u64>,
    /// True if it may be the test's own process. In a container the ids cannot be compared.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub maybe_own: bool,
}

impl Occupant {
    /// `process 4711 (python) holds 64,424,509,440 B (60.0 GiB) of cuda:0`.
    pub fn shown(&self) -> String {
        let Self { space, pid, name, bytes, maybe_own } = self;
        let name = name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
        let bytes = bytes.map_or_else(|| "memory".to_owned(), both);
        let own = if *maybe_own { ", and may be the test itself" } else { "" };
        format!("process {pid}{name} holds {bytes} of {space}{own}")
    }
}

/// Memory of the process on a GPU after the body, without the pool and the program's blocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Untracked {
    /// The device.
    pub space: Space,
    /// NVML's figure without the pool and the program's other blocks; `None` if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bytes: Option<u64>,
    /// The parts that CUPTI saw, the largest first.
    pub items: Vec<Item>,
    /// The part that is in no item: context, code, and the driver's own memory.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rest: Option<u64>,
    /// The reason why it is not itemized.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
}

/// The memory that one library holds for itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// The library, such as `libcublas.so.13`, or a description if the library is not known.
    pub holder: String,
    /// Bytes.
    pub bytes: u64,
    /// Blocks.
    pub blocks: u64,
}

/// A block of device memory whose allocation CUPTI saw, and that is not released.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CuptiBlock {
    /// Bytes.
    pub bytes: u64,
    /// True if it is part of a pool. Then the reserved bytes of the pool include it.
    pub pooled: bool,
    /// True if a probe saw it. Then it belongs to the program.
    pub tracked: bool,
    /// True if it is a variable of a module, loaded with the module's code.
    pub fixed: bool,
    /// The library that requested it, as a path or a name.
    pub source: Option<String>,
}

impl Untracked {
    /// Splits NVML's figure. `reserved` is the pool, `blocks` what CUPTI saw, or why nothing.
    pub fn of(
        space: Space,
        device_used: Option<u64>,
        reserved: u64,
        blocks: Result<&[CuptiBlock], String>,
    ) -> Self {
        let (blocks, reason) = match blocks {
            Ok(blocks) => (blocks, None),
            Err(reason) => (&[][..], Some(reason)),
        };
        let outside = || blocks.iter().filter(|block| !block.pooled);
        let own: u64 = outside().filter(|block| block.tracked).map(|block| block.bytes).sum();
        let mut items: Vec<Item> = Vec::new();
        for block in outside().filter(|block| !block.tracked) {
            let holder = holder(block);
            match items.iter_mut().find(|item| item.holder == holder) {
                Some(item) => {
                    (item.bytes, item.blocks) = (item.bytes + block.bytes, item.blocks + 1)
                }
                None => items.push(Item { holder, bytes: block.bytes, blocks: 1 }),
            }
        }
        items.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.holder.cmp(&b.holder)));
        let bytes = device_used.map(|used| used.saturating_sub(reserved + own));
        let itemized: u64 = items.iter().map(|item| item.bytes).sum();
        // Saturating, because NVML and CUPTI are read at different moments and can disagree.
        let rest = bytes.map(|bytes| bytes.saturating_sub(itemized));
        Self { space, bytes, items, rest, reason }
    }
}

fn holder(block: &CuptiBlock) -> String {
    match &block.source {
        _ if block.fixed => "variables of modules".to_owned(),
        Some(path) => path.rsplit('/').next().unwrap_or(path).to_owned(),
        None => "a library that CUPTI does not name".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GPU: Space = Space::Cuda(0);

    fn block(bytes: u64, source: Option<&str>) -> CuptiBlock {
        let source = source.map(str::to_owned);
        CuptiBlock { bytes, pooled: false, tracked: false, fixed: false, source }
    }

    #[test]
    fn items_and_rest_add_up_to_the_memory_outside_the_pool() {
        let blocks = [
            block(30, Some("/usr/lib/libcublas.so.13")),
            block(2, Some("libcublas.so.13")),
            block(7, None),
            CuptiBlock { fixed: true, ..block(5, Some("app")) },
            CuptiBlock { pooled: true, tracked: true, ..block(1_000, None) },
            CuptiBlock { tracked: true, ..block(100, None) },
            CuptiBlock { pooled: true, ..block(10, Some("libcublas.so.13")) },
        ];
        let found = Untracked::of(GPU, Some(2_000), 1_500, Ok(&blocks));
        let item = |holder: &str, bytes, blocks| Item { holder: holder.to_owned(), bytes, blocks };
        assert_eq!(
            found.items,
            [
                item("libcublas.so.13", 32, 2),
                item("a library that CUPTI does not name", 7, 1),
                item("variables of modules", 5, 1),
            ]
        );
        // 2,000 minus the pool's 1,500 and minus the program's 100 outside of the pool.
        assert_eq!((found.bytes, found.rest), (Some(400), Some(400 - 32 - 7 - 5)));
        assert_eq!(found.reason, None);
    }

    #[test]
    fn without_cupti_all_of_it_is_the_rest_and_without_nvml_there_is_none() {
        let reason = || Err("libcupti.so was not found".to_owned());
        let found = Untracked::of(GPU, Some(2_000), 1_500, reason());
        assert_eq!((found.bytes, found.rest, found.items.len()), (Some(500), Some(500), 0));
        assert_eq!(found.reason.as_deref(), Some("libcupti.so was not found"));
        let found = Untracked::of(GPU, None, 1_500, Ok(&[block(3, None)]));
        assert_eq!((found.bytes, found.rest, found.items[0].bytes), (None, None, 3));
    }

    #[test]
    fn a_process_is_described_by_its_known_properties() {
        let known = Occupant {
            space: GPU,
            pid: 4711,
            name: Some("python".to_owned()),
            bytes: Some(60 << 30),
            maybe_own: false,
        };
        let text = "process 4711 (python) holds 64,424,509,440 B (60.0 GiB) of cuda:0";
        assert_eq!(known.shown(), text);
        let unknown = Occupant { name: None, bytes: None, maybe_own: true, ..known };
        let text = "process 4711 holds memory of cuda:0, and may be the test itself";
        assert_eq!(unknown.shown(), text);
    }
}
