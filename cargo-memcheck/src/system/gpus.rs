//! Real GPUs, and their assignment to tests, one at a time. A test sees its GPU as the first
//! device, and the other requested GPUs behind it. Its figures are therefore those of `cuda:0`,
//! whichever GPU it was assigned.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::{Condvar, Mutex, PoisonError};

use memcheck_core::measurement::record::Record;
use serde::{Deserialize, Serialize};

/// CUDA hides GPUs with it, and orders the visible ones.
pub(crate) const VISIBLE: &str = "CUDA_VISIBLE_DEVICES";

/// Or a slice of one in MIG mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RealGpu {
    /// Number among the visible GPUs: 1 for `cuda:1`.
    pub(crate) index: u16,
    pub(crate) name: String,
    /// `None` if the GPU is named by a number, because the driver may count in another order than
    /// nvidia-smi.
    pub(crate) uuid: Option<String>,
    /// The GPU's name in a value of [`VISIBLE`].
    pub(crate) word: String,
    pub(crate) slice: bool,
}

impl RealGpu {
    /// A process that sees a MIG slice can see no other GPU.
    fn visible(&self, all: &[Self]) -> String {
        let is_other = |other: &&Self| !self.slice && !other.slice && other.word != self.word;
        let words = std::iter::once(self).chain(all.iter().filter(is_other));
        words.map(|gpu| gpu.word.as_str()).collect::<Vec<_>>().join(",")
    }

    fn identity(&self) -> &str {
        self.uuid.as_deref().unwrap_or(&self.word)
    }
}

pub(crate) fn names(gpus: &[RealGpu]) -> String {
    gpus.iter().map(|gpu| gpu.name.as_str()).collect::<Vec<_>>().join(", ")
}

#[derive(Debug, Default)]
pub(crate) struct GpuPool {
    busy: Mutex<BTreeSet<String>>,
    freed: Condvar,
}

impl GpuPool {
    /// Waits until one is free. `None` if `gpus` is empty.
    pub(crate) fn take<'a>(&'a self, gpus: &'a [RealGpu]) -> Option<Slot<'a>> {
        if gpus.is_empty() {
            return None;
        }
        let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(gpu) = gpus.iter().find(|gpu| !busy.contains(gpu.identity())) {
                busy.insert(gpu.identity().to_owned());
                return Some(Slot { pool: self, gpu, all: gpus });
            }
            busy = self.freed.wait(busy).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Dropping the slot frees the GPU, so that it is free however the test ends.
#[derive(Debug)]
pub(crate) struct Slot<'a> {
    pool: &'a GpuPool,
    gpu: &'a RealGpu,
    all: &'a [RealGpu],
}

impl Slot<'_> {
    pub(crate) fn show(&self, command: &mut Command) {
        command.env(VISIBLE, self.gpu.visible(self.all));
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        let mut busy = self.pool.busy.lock().unwrap_or_else(PoisonError::into_inner);
        busy.remove(self.gpu.identity());
        // All, because waiting tests can want different GPUs.
        self.pool.freed.notify_all();
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RanOn {
    /// Among the visible GPUs. `None` if a launcher assigned the GPU.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) index: Option<u16>,
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) uuid: Option<String>,
}

impl RanOn {
    /// What the test process reported takes precedence.
    pub(crate) fn of(slot: Option<&Slot<'_>>, record: Option<&Record>) -> Option<Self> {
        let given = slot.map(|slot| slot.gpu);
        let index = given.map(|gpu| gpu.index);
        match record.and_then(|record| record.driver.gpu.clone()) {
            Some(found) => {
                let uuid = found.uuid.or_else(|| given.and_then(|gpu| gpu.uuid.clone()));
                Some(Self { index, name: found.name, uuid })
            }
            None => given.map(|gpu| Self { index, name: gpu.name.clone(), uuid: gpu.uuid.clone() }),
        }
    }

    pub(crate) fn shown(&self) -> String {
        let Self { index, name, uuid } = self;
        let index = index.map(|index| format!("cuda:{index}, ")).unwrap_or_default();
        let uuid = uuid.as_ref().map(|uuid| format!(" ({uuid})")).unwrap_or_default();
        format!("{index}{name}{uuid}")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    fn gpu(index: u16, word: &str) -> RealGpu {
        let slice = word.starts_with("MIG");
        let (name, word) = ("NVIDIA H200".to_owned(), word.to_owned());
        RealGpu { index, name, uuid: Some(word.clone()), word, slice }
    }

    fn gpus() -> Vec<RealGpu> {
        vec![gpu(0, "GPU-a"), gpu(1, "GPU-b"), gpu(2, "GPU-c")]
    }

    #[test]
    fn a_test_sees_its_gpu_first_and_the_others_behind_it() {
        let all = gpus();
        assert_eq!(all[0].visible(&all), "GPU-a,GPU-b,GPU-c");
        assert_eq!(all[1].visible(&all), "GPU-b,GPU-a,GPU-c");
        assert_eq!(all[1].visible(&all[1..2]), "GPU-b");
        // A process that sees a slice sees no other GPU.
        let mixed = [gpu(0, "MIG-1"), gpu(1, "MIG-2"), gpu(2, "GPU-c"), gpu(3, "GPU-d")];
        assert_eq!(mixed[0].visible(&mixed), "MIG-1");
        assert_eq!(mixed[1].visible(&mixed), "MIG-2");
        assert_eq!(mixed[3].visible(&mixed), "GPU-d,GPU-c");
    }

    #[test]
    fn never_are_two_tests_on_one_gpu_and_all_gpus_are_used() {
        let (pool, all) = (GpuPool::default(), gpus());
        let on: [AtomicUsize; 3] = Default::default();
        let runs: [AtomicUsize; 3] = Default::default();
        // First, three tests that wait for each other must be on three GPUs. Then there are more
        // tests than GPUs.
        let together = std::sync::Barrier::new(3);
        let test = |wait: bool| {
            let slot = pool.take(&all).unwrap();
            let index = usize::from(slot.gpu.index);
            assert_eq!(on[index].fetch_add(1, Ordering::SeqCst), 0, "two on GPU {index}");
            runs[index].fetch_add(1, Ordering::SeqCst);
            if wait {
                together.wait();
            }
            std::thread::sleep(Duration::from_millis(1));
            on[index].fetch_sub(1, Ordering::SeqCst);
        };
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| test(true));
            }
        });
        assert!(runs.iter().all(|runs| runs.load(Ordering::SeqCst) == 1));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..20).for_each(|_| test(false)));
            }
        });
        let all: usize = runs.iter().map(|runs| runs.load(Ordering::SeqCst)).sum();
        assert_eq!(all, 3 + 8 * 20);
    }

    #[test]
    fn a_gpu_returns_to_the_pool_after_its_test_however_it_ended() {
        let (pool, all) = (GpuPool::default(), gpus());
        let only = &all[..1];
        fn fails(pool: &GpuPool, gpus: &[RealGpu]) -> Option<()> {
            let _slot = pool.take(gpus);
            None
        }
        assert!(fails(&pool, only).is_none());
        let panicked = std::thread::scope(|scope| {
            let worker = scope.spawn(|| {
                let _slot = pool.take(only);
                panic!("a bug");
            });
            worker.join().is_err()
        });
        assert!(panicked);
        let slot = pool.take(only).unwrap();
        // A test that waits for the GPU must be woken.
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| pool.take(only).is_some());
            std::thread::sleep(Duration::from_millis(20));
            assert!(!waiting.is_finished());
            drop(slot);
            assert!(waiting.join().unwrap());
        });
        assert!(pool.take(&[]).is_none());
    }

    #[test]
    fn two_names_of_one_gpu_are_one_gpu() {
        let twice = [gpu(0, "GPU-a"), RealGpu { word: "0".to_owned(), ..gpu(1, "GPU-a") }];
        let pool = GpuPool::default();
        let first = pool.take(&twice);
        assert!(first.is_some());
        assert_eq!(pool.busy.lock().unwrap().len(), 1);
        assert!(twice.iter().all(|gpu| pool.busy.lock().unwrap().contains(gpu.identity())));
    }
}
