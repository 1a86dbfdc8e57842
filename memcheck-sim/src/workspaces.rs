//! Workspaces that a program allocates with a size that the simulator has estimated, so that every
//! output can mark the figures that contain them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The workspaces of one library whose sizes are estimates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Workspaces {
    /// The library.
    pub library: &'static str,
    /// Their number, those of 0 bytes not included.
    pub count: u64,
    /// The largest of them, in bytes.
    pub largest: u64,
}

/// Returns the workspaces that the program allocated by an estimate, by library.
pub fn workspaces() -> Vec<Workspaces> {
    [&CUDNN, &CUBLASLT].into_iter().filter_map(Estimates::shown).collect()
}

/// Those of cuDNN, which a program requests one by one.
pub(crate) static CUDNN: Estimates = Estimates::of("cuDNN");
/// Those of cuBLASLt, which returns a size that most programs do not use.
pub(crate) static CUBLASLT: Estimates = Estimates::of("cuBLASLt");

pub(crate) struct Estimates {
    library: &'static str,
    count: AtomicU64,
    largest: AtomicU64,
    /// Each size that was returned, sorted.
    sizes: Mutex<Vec<u64>>,
}

impl Estimates {
    const fn of(library: &'static str) -> Self {
        let (count, largest) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { library, count, largest, sizes: Mutex::new(Vec::new()) }
    }

    /// Counts a workspace that the program allocates with this size.
    pub(crate) fn count(&self, bytes: u64) {
        if bytes > 0 {
            self.count.fetch_add(1, Ordering::Relaxed);
            self.largest.fetch_max(bytes, Ordering::Relaxed);
        }
    }

    /// Notes a size that was returned to the program.
    pub(crate) fn estimated(&self, bytes: u64) {
        let mut sizes = self.sizes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(at) = sizes.binary_search(&bytes) {
            sizes.insert(at, bytes);
        }
    }

    /// Counts a workspace of this size if an estimate had it. Another size is the program's choice.
    pub(crate) fn allocated(&self, bytes: u64) {
        let sizes = self.sizes.lock().unwrap_or_else(PoisonError::into_inner);
        if sizes.binary_search(&bytes).is_ok() {
            self.count(bytes);
        }
    }

    fn shown(&self) -> Option<Workspaces> {
        let count = self.count.load(Ordering::Relaxed);
        let largest = self.largest.load(Ordering::Relaxed);
        (count > 0).then_some(Workspaces { library: self.library, count, largest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_workspaces_of_an_estimated_size_are_counted() {
        let estimates = Estimates::of("a library");
        assert_eq!(estimates.shown(), None);
        estimates.estimated(4096);
        estimates.estimated(512);
        estimates.estimated(0);
        [4095, 0].into_iter().for_each(|bytes| estimates.allocated(bytes));
        assert_eq!(estimates.shown(), None);
        [512, 4096, 512].into_iter().for_each(|bytes| estimates.allocated(bytes));
        let shown = estimates.shown().unwrap();
        assert_eq!((shown.library, shown.count, shown.largest), ("a library", 3, 4096));
    }
}
