//! What the driver, NVML and CUPTI say of a GPU beside the program's own calls:
//! what is held there that no probe sees, and by whom.

use serde::{Deserialize, Serialize};

use crate::size::both;
use crate::space::Space;

/// Figures that a simulated device can only estimate, by their names.
pub const ESTIMATES: [&str; 3] = ["reserved", "peak_reserved", "device_used"];

/// What others count and hold, in one run of a test on a GPU.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Driver {
    /// Whether the driver is a simulated one: then [`ESTIMATES`] are estimates.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub simulated: bool,
    /// Which GPU it is; of a real driver only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Gpu>,
    /// What is held beyond the driver's pool; only of a run with attribution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untracked: Option<Untracked>,
    /// Processes of others on the devices that refused memory.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<Occupant>,
}

/// A GPU, as its driver and NVML call it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gpu {
    /// The name of the card.
    pub name: String,
    /// `GPU-…`, or of a slice `MIG-…`; where NVML answers.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub uuid: Option<String>,
}

/// A process that holds memory of a device, by NVML.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Occupant {
    /// The device.
    pub space: Space,
    /// Its id; that of the host, in a container.
    pub pid: u32,
    /// Its name, where NVML knows it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    /// What it holds, where NVML knows it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bytes: Option<u64>,
    /// Whether it may be the test's own process: in a container ids do not tell.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub maybe_own: bool,
}

impl Occupant {
    /// `process 4711 (python) holds 64,424,509,440 B (60.0 GiB) of cuda:0`.
    pub fn shown(&self) -> String {
        let Self { space, pid, name, bytes, maybe_own } = self;
        let name = name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
        let bytes = bytes.map_or_else(|| "memory".to_owned(), both);
        let own = if *maybe_own { ", and may be this test's own" } else { "" };
        format!("process {pid}{name} holds {bytes} of {space}{own}")
    }
}

/// What the process holds on a GPU beyond the driver's pool and beyond what the
/// program asked for, when the body has returned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Untracked {
    /// The device.
    pub space: Space,
    /// All of it: what NVML says without the pool and without blocks of the
    /// program outside of the pool. `None` where NVML does not answer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bytes: Option<u64>,
    /// What CUPTI saw of it, the largest first.
    pub items: Vec<Item>,
    /// What is in none of them: context, code, and the driver's own.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rest: Option<u64>,
    /// Why it is not itemised.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
}

/// What one library holds for itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// The library, `libcublas.so.13`, or what is known in its place.
    pub holder: String,
    /// Bytes.
    pub bytes: u64,
    /// Blocks.
    pub blocks: u64,
}

/// A block of device memory that CUPTI saw allocated and not released.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Bytes.
    pub bytes: u64,
    /// Whether it is part of a pool: then it is part of what that has reserved.
    pub pooled: bool,
    /// Whether a probe saw it: then it is the program's.
    pub tracked: bool,
    /// Whether it is a variable of a module, loaded with its code.
    pub fixed: bool,
    /// Who asked for it, as a path or a name.
    pub source: Option<String>,
}

impl Untracked {
    /// Puts what NVML says the process holds to those who hold it. `reserved` is
    /// what the pool holds, `blocks` is what CUPTI saw, or why it saw nothing.
    pub fn of(
        space: Space,
        device_used: Option<u64>,
        reserved: u64,
        blocks: Result<&[Block], String>,
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
        let itemised: u64 = items.iter().map(|item| item.bytes).sum();
        // Two instruments at two moments: what one sees, the other may not yet.
        let rest = bytes.map(|bytes| bytes.saturating_sub(itemised));
        Self { space, bytes, items, rest, reason }
    }
}

/// Who holds a block.
fn holder(block: &Block) -> String {
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

    fn block(bytes: u64, source: Option<&str>) -> Block {
        let source = source.map(str::to_owned);
        Block { bytes, pooled: false, tracked: false, fixed: false, source }
    }

    #[test]
    fn items_and_rest_add_up_to_what_is_beyond_the_pool() {
        let blocks = [
            block(30, Some("/usr/lib/libcublas.so.13")),
            block(2, Some("libcublas.so.13")),
            block(7, None),
            Block { fixed: true, ..block(5, Some("app")) },
            // The program's own: in the pool, and beside it.
            Block { pooled: true, tracked: true, ..block(1_000, None) },
            Block { tracked: true, ..block(100, None) },
            // A library's, but in the pool: part of what that has reserved.
            Block { pooled: true, ..block(10, Some("libcublas.so.13")) },
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
        // 2,000 without the pool's 1,500 and the program's 100 beside it.
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
    fn a_process_is_named_as_far_as_it_is_known() {
        let known = Occupant {
            space: GPU,
            pid: 4711,
            name: Some("python".to_owned()),
            bytes: Some(60 << 30),
            maybe_own: false,
        };
        let said = "process 4711 (python) holds 64,424,509,440 B (60.0 GiB) of cuda:0";
        assert_eq!(known.shown(), said);
        let unknown = Occupant { name: None, bytes: None, maybe_own: true, ..known };
        let said = "process 4711 holds memory of cuda:0, and may be this test's own";
        assert_eq!(unknown.shown(), said);
    }
}
