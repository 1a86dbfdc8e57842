//! The blocks of one group over the iterations, for reports and for the rules that find causes.

use super::History;
use super::kind::{Kind, add_from};

/// One group of blocks, with an entry for each measured iteration, or epoch of a long run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Series {
    /// The call site, if the group has only blocks of one.
    pub site: Option<u32>,
    /// Bytes of one block, if all blocks of the group have the same size.
    pub block: Option<u64>,
    /// Number of live blocks, by the iteration of their birth.
    pub born: Vec<u64>,
    /// Bytes of these blocks.
    pub born_bytes: Vec<u64>,
    /// Number of live blocks at the end of each iteration.
    pub live: Vec<u64>,
    /// Bytes of these blocks.
    pub live_bytes: Vec<u64>,
    /// The greatest age at which a block of the group died, in entries; 0 if none died.
    pub oldest_death: usize,
}

impl History {
    /// One group for each block size, in ascending order of sizes.
    pub fn by_size(&self) -> Vec<Series> {
        let mut kinds: Vec<&Kind> = self.kinds.iter().collect();
        kinds.sort_by_key(|kind| kind.size);
        let groups = kinds.chunk_by(|a, b| a.size == b.size).map(|kinds| self.series(None, kinds));
        groups.chain(self.shared.iter().map(|kind| self.series(None, &[kind]))).collect()
    }

    /// One group for each pair of call site and size, ascending, without blocks of no call site.
    pub fn by_site_and_size(&self) -> Vec<Series> {
        let kinds = self.kinds.iter().filter(|kind| kind.site.is_some());
        kinds.map(|kind| self.series(kind.site, &[kind])).collect()
    }

    /// One group for each call site, in ascending order. Blocks without a call site are left out.
    pub fn by_site(&self) -> Vec<Series> {
        let kinds: Vec<&Kind> = self.kinds.iter().filter(|kind| kind.site.is_some()).collect();
        let sites = kinds.chunk_by(|a, b| a.site == b.site);
        sites.map(|kinds| self.series(kinds[0].site, kinds)).collect()
    }

    fn series(&self, site: Option<u32>, kinds: &[&Kind]) -> Series {
        let start = self.start();
        let none = vec![0; self.entries().saturating_sub(start)];
        let alike = kinds.iter().all(|kind| kind.size == kinds[0].size && kind.bytes.is_none());
        let mut series = Series {
            site,
            block: alike.then_some(kinds[0].size),
            born: none.clone(),
            born_bytes: none.clone(),
            live: none.clone(),
            live_bytes: none,
            oldest_death: kinds.iter().map(|kind| kind.age()).max().unwrap_or(0),
        };
        for kind in kinds {
            let (bytes, factor) = kind.in_bytes();
            add_from(&kind.blocks.left, kind.from, 1, start, &mut series.born);
            add_from(&bytes.left, kind.from, factor, start, &mut series.born_bytes);
            add_from(&kind.blocks.live, kind.from, 1, start, &mut series.live);
            add_from(&bytes.live, kind.from, factor, start, &mut series.live_bytes);
        }
        series
    }
}
