//! Real GPUs, and which test is on which: one test on a GPU at a time.
//!
//! A test sees the GPU that it was given as its first device, and behind it the
//! others that were asked for. So its figures are those of `cuda:0`, whichever
//! GPU it was.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::{Condvar, Mutex, PoisonError};

use memcheck_core::record::Record;
use serde::{Deserialize, Serialize};

/// What CUDA hides all other GPUs by, and orders those that it leaves.
pub(crate) const VISIBLE: &str = "CUDA_VISIBLE_DEVICES";

/// A GPU, or a slice of one in MIG mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Gpu {
    /// Its number among those that are visible: 1 of `cuda:1`.
    pub(crate) index: u16,
    /// What its driver calls it.
    pub(crate) name: String,
    /// Its UUID; unknown where a number names it, which the driver may count
    /// in another order than nvidia-smi.
    pub(crate) uuid: Option<String>,
    /// What [`VISIBLE`] calls it.
    pub(crate) word: String,
    /// Whether it is a slice.
    pub(crate) slice: bool,
}

impl Gpu {
    /// The value of [`VISIBLE`] for a test that is given this one of `all`. Of
    /// slices a process sees one, and no other GPU beside it.
    fn visible(&self, all: &[Self]) -> String {
        let beside = |other: &&Self| !self.slice && !other.slice && other.word != self.word;
        let words = std::iter::once(self).chain(all.iter().filter(beside));
        words.map(|gpu| gpu.word.as_str()).collect::<Vec<_>>().join(",")
    }

    /// What no other GPU is called.
    fn identity(&self) -> &str {
        self.uuid.as_deref().unwrap_or(&self.word)
    }
}

/// Their names, in one line.
pub(crate) fn names(gpus: &[Gpu]) -> String {
    gpus.iter().map(|gpu| gpu.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// The GPUs that tests are on.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    busy: Mutex<BTreeSet<String>>,
    freed: Condvar,
}

impl Pool {
    /// Takes one of these GPUs, and waits until one is free; `None` where there
    /// are none to take.
    pub(crate) fn take<'a>(&'a self, gpus: &'a [Gpu]) -> Option<Slot<'a>> {
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

/// A GPU that a test is on. Free again when this is dropped, however the test ended.
#[derive(Debug)]
pub(crate) struct Slot<'a> {
    pool: &'a Pool,
    gpu: &'a Gpu,
    all: &'a [Gpu],
}

impl Slot<'_> {
    /// Has a process see this GPU first.
    pub(crate) fn show(&self, command: &mut Command) {
        command.env(VISIBLE, self.gpu.visible(self.all));
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        let mut busy = self.pool.busy.lock().unwrap_or_else(PoisonError::into_inner);
        busy.remove(self.gpu.identity());
        self.pool.freed.notify_all();
    }
}

/// Which GPU a test was on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RanOn {
    /// Its number among those that are visible, where we have handed it out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) index: Option<u16>,
    /// What its driver calls it.
    pub(crate) name: String,
    /// Its UUID, where that is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) uuid: Option<String>,
}

impl RanOn {
    /// What we handed out, and what the test process found: that has the say.
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

    /// `cuda:1, NVIDIA H200 (GPU-…)`.
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

    fn gpu(index: u16, word: &str) -> Gpu {
        let slice = word.starts_with("MIG");
        let (name, word) = ("NVIDIA H200".to_owned(), word.to_owned());
        Gpu { index, name, uuid: Some(word.clone()), word, slice }
    }

    fn gpus() -> Vec<Gpu> {
        vec![gpu(0, "GPU-a"), gpu(1, "GPU-b"), gpu(2, "GPU-c")]
    }

    #[test]
    fn a_test_sees_its_gpu_first_and_the_others_behind_it() {
        let all = gpus();
        assert_eq!(all[0].visible(&all), "GPU-a,GPU-b,GPU-c");
        assert_eq!(all[1].visible(&all), "GPU-b,GPU-a,GPU-c");
        assert_eq!(all[1].visible(&all[1..2]), "GPU-b");
        // Beside a slice the driver shows nothing.
        let mixed = [gpu(0, "MIG-1"), gpu(1, "MIG-2"), gpu(2, "GPU-c"), gpu(3, "GPU-d")];
        assert_eq!(mixed[0].visible(&mixed), "MIG-1");
        assert_eq!(mixed[1].visible(&mixed), "MIG-2");
        assert_eq!(mixed[3].visible(&mixed), "GPU-d,GPU-c");
    }

    #[test]
    fn never_are_two_tests_on_one_gpu_and_all_gpus_are_used() {
        let (pool, all) = (Pool::default(), gpus());
        let on: [AtomicUsize; 3] = Default::default();
        let runs: [AtomicUsize; 3] = Default::default();
        // Three tests that wait for each other are on three GPUs; then more of them
        // than there are GPUs.
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
    fn a_gpu_comes_back_however_its_test_ended() {
        let (pool, all) = (Pool::default(), gpus());
        let only = &all[..1];
        fn fails(pool: &Pool, gpus: &[Gpu]) -> Option<()> {
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
        // Whoever waits for it is woken.
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
    fn one_gpu_by_two_words_is_one() {
        let twice = [gpu(0, "GPU-a"), Gpu { word: "0".to_owned(), ..gpu(1, "GPU-a") }];
        let pool = Pool::default();
        let first = pool.take(&twice);
        assert!(first.is_some());
        assert_eq!(pool.busy.lock().unwrap().len(), 1);
        assert!(twice.iter().all(|gpu| pool.busy.lock().unwrap().contains(gpu.identity())));
    }
}
