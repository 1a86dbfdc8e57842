//! Tensors that are kept at times and in sizes that are hard to judge: in some iterations only, in
//! increasing numbers, or in sizes that never repeat.

use candle_core::Tensor;
use memcheck_runtime::Trial;

use super::{Family, HISTORY, Scenario, scenario};

const SOURCE: &str = include_str!("rhythms.rs");

/// The scenarios of this module.
pub const SCENARIOS: &[Scenario] = &[
    scenario!(SOURCE, every_third_time, "tensor-kept", Periodic),
    scenario!(SOURCE, more_every_time, "tensor-kept", Growing),
    scenario!(SOURCE, larger_every_time, "tensor-kept", Growing),
    scenario!(SOURCE, no_two_sizes_alike, "tensor-kept", Growing),
    scenario!(SOURCE, beside_a_ring_of_its_size, "tensor-kept", Steady),
];

/// Floats of 1 KiB, the smallest block that the host counts.
const KIB: usize = 256;
/// Iterations before the measured ones.
const WARMUP: usize = 2;

/// An error path that is taken every third time.
pub mod every_third_time {
    use super::*;

    /// A third of 3 KiB.
    pub fn bytes(_leg: Family) -> u64 {
        (KIB * 4) as u64
    }

    /// Keeps the failed inputs for a retry.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |_| ())
    }

    /// Keeps a failed input until the next one fails.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, Vec::clear)
    }

    fn run(trial: &mut Trial, before: fn(&mut Vec<Tensor>)) -> anyhow::Result<()> {
        let device = trial.device().clone();
        let mut failed = Vec::with_capacity(HISTORY);
        trial.iterate(|request| {
            // leaks: every_third_time
            let input = zeros!(3 * KIB, &device)?;
            if request % 3 == 0 {
                before(&mut failed);
                failed.push(input);
            }
            Ok(())
        })
    }
}

/// Every iteration keeps one tensor more than the last.
pub mod more_every_time {
    use super::*;

    /// `i + 1` KiB in iteration i, summed over the measured iterations, 2 to 11.
    pub fn bytes(_leg: Family) -> u64 {
        (2..=11).map(|i| (i + 1) << 10).sum::<u64>()
    }

    /// Keeps a beam for each token so far.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |_| ())
    }

    /// Drops the beams with the token.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, Vec::clear)
    }

    fn run(trial: &mut Trial, after: fn(&mut Vec<Tensor>)) -> anyhow::Result<()> {
        let device = trial.device().clone();
        let mut beams = Vec::with_capacity(2 * HISTORY);
        trial.iterate(|token| {
            for _ in 0..=token {
                // leaks: more_every_time
                beams.push(zeros!(KIB, &device)?);
            }
            after(&mut beams);
            Ok(())
        })
    }
}

/// Every iteration keeps one tensor, each larger than the last.
pub mod larger_every_time {
    use super::*;

    /// `i + 1` KiB in iteration i, summed over the measured iterations, 2 to 11.
    pub fn bytes(_leg: Family) -> u64 {
        (2..=11).map(|i| (i + 1) << 10).sum::<u64>()
    }

    /// Keeps the scores of every length.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        let device = trial.device().clone();
        let mut scores = Vec::with_capacity(HISTORY);
        trial.iterate(|position| {
            // leaks: larger_every_time
            scores.push(zeros!((position + 1) * KIB, &device)?);
            Ok(())
        })
    }

    /// Drops the scores in the same iteration.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        let device = trial.device().clone();
        trial.iterate(|position| {
            zeros!((position + 1) * KIB, &device)?;
            Ok(())
        })
    }
}

/// Requests of varying length, some of which are kept.
pub mod no_two_sizes_alike {
    use super::*;

    /// KiB that are kept in the first iterations, including two of warm-up. Later iterations have
    /// the same rhythm and other sizes, no two alike.
    const KEPT: [usize; WARMUP + 12] = [5, 6, 11, 8, 0, 14, 9, 0, 13, 10, 0, 12, 0, 7];

    /// The sum over the measured iterations: 84 KiB.
    pub fn bytes(_leg: Family) -> u64 {
        (KEPT[WARMUP..].iter().sum::<usize>() << 10) as u64
    }

    /// Keeps every such request.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |_| ())
    }

    /// Keeps the last one.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, Vec::clear)
    }

    fn run(trial: &mut Trial, before: fn(&mut Vec<Tensor>)) -> anyhow::Result<()> {
        let device = trial.device().clone();
        let mut kept = Vec::with_capacity(HISTORY);
        trial.iterate(|request| {
            before(&mut kept);
            let kib = match KEPT[request % KEPT.len()] {
                0 => 0,
                kib => kib + 16 * (request / KEPT.len()),
            };
            if kib > 0 {
                // leaks: no_two_sizes_alike
                kept.push(zeros!(kib * KIB, &device)?);
            }
            Ok(())
        })
    }
}

/// A leak, and a ring that replaces tensors of the same size.
pub mod beside_a_ring_of_its_size {
    use super::*;

    /// Tensors in the ring.
    const RING: usize = 3;

    /// The one tensor that is not in the ring.
    pub fn bytes(_leg: Family) -> u64 {
        (KIB * 4) as u64
    }

    /// Keeps one tensor in the ring and one for ever.
    ///
    /// # Errors
    /// When the device is full.
    pub fn leaky(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |_| ())
    }

    /// Keeps one tensor in the ring.
    ///
    /// # Errors
    /// When the device is full.
    pub fn fixed(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, Vec::clear)
    }

    fn run(trial: &mut Trial, after: fn(&mut Vec<Tensor>)) -> anyhow::Result<()> {
        let device = trial.device().clone();
        let mut ring: [Option<Tensor>; RING] = Default::default();
        let mut list = Vec::with_capacity(HISTORY);
        trial.iterate(|i| {
            ring[i % RING] = Some(zeros!(KIB, &device)?);
            // leaks: beside_a_ring_of_its_size
            list.push(zeros!(KIB, &device)?);
            after(&mut list);
            Ok(())
        })
    }
}
