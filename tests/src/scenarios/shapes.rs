//! What looks like growth and is none: memory that is uneven because the
//! inputs are, or what is done with them. A profile remarks on the first, and on
//! the even twin on nothing.

use std::collections::VecDeque;

use candle_core::Tensor;
use memcheck_runtime::Trial;

use super::Cause;

/// A program that is remarked on, and its twin that is not. Both are clean.
#[derive(Debug, Clone, Copy)]
pub struct Remarked {
    /// Its name, and that of its memory tests.
    pub name: &'static str,
    /// What is remarked.
    pub cause: Cause,
    /// The program that looks as if it grew.
    pub uneven: fn(&mut Trial) -> anyhow::Result<()>,
    /// The same program without that.
    pub even: fn(&mut Trial) -> anyhow::Result<()>,
}

impl Remarked {
    /// The path of its uneven test in the target `detection`.
    pub fn uneven_test(&self) -> String {
        format!("uneven::{}", self.name)
    }

    /// The path of its even test in the target `detection`.
    pub fn even_test(&self) -> String {
        format!("even::{}", self.name)
    }
}

/// See the module.
pub const REMARKED: &[Remarked] = &[Remarked {
    name: "texts_of_every_length",
    cause: Cause::VariableShapes,
    uneven: texts_of_every_length::uneven,
    even: texts_of_every_length::even,
}];

/// A healthy program that needs more memory at times, and keeps more at times.
#[derive(Debug, Clone, Copy)]
pub struct Uneven {
    /// Its name, and that of its memory test.
    pub name: &'static str,
    /// The program.
    pub program: fn(&mut Trial) -> anyhow::Result<()>,
    /// Bytes that are live when iteration `i` is over, warm-up counted in.
    pub live: fn(usize) -> u64,
    /// The most that are live in iteration `i`.
    pub peak: fn(usize) -> u64,
}

impl Uneven {
    /// The path of its test in the target `detection`.
    pub fn test(&self) -> String {
        format!("uneven::{}", self.name)
    }
}

/// A row of the table: the name is that of a module.
macro_rules! uneven {
    ($name:ident) => {
        Uneven {
            name: stringify!($name),
            program: $name::program,
            live: $name::live,
            peak: $name::peak,
        }
    };
}

/// See [`Uneven`].
pub const UNEVEN: &[Uneven] = &[
    uneven!(layers_by_condition),
    uneven!(cache_that_is_trimmed),
    uneven!(last_batch_of_an_epoch),
];

/// The one of this name.
///
/// # Panics
///
/// When there is none.
pub fn uneven(name: &str) -> &'static Uneven {
    UNEVEN.iter().find(|uneven| uneven.name == name).expect("a program of this name")
}

/// The one of this name.
///
/// # Panics
///
/// When there is none.
pub fn remarked(name: &str) -> &'static Remarked {
    REMARKED.iter().find(|remarked| remarked.name == name).expect("a program of this name")
}

/// Hidden states of the last two texts, which are compared.
pub mod texts_of_every_length {
    use super::*;

    /// Tokens of the texts, over and over.
    const LENGTHS: [usize; 7] = [9, 4, 12, 6, 15, 3, 11];
    const LONGEST: usize = 16;
    const WIDTH: usize = 256;
    const COMPARED: usize = 2;

    /// As long as the texts are.
    ///
    /// # Errors
    /// When the device is full.
    pub fn uneven(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |text| LENGTHS[text % LENGTHS.len()])
    }

    /// Padded to one length.
    ///
    /// # Errors
    /// When the device is full.
    pub fn even(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |_| LONGEST)
    }

    fn run(trial: &mut Trial, length: fn(usize) -> usize) -> anyhow::Result<()> {
        let device = trial.device().clone();
        let mut latest: VecDeque<Tensor> = VecDeque::with_capacity(COMPARED);
        trial.iterate(|text| {
            if latest.len() == COMPARED {
                latest.pop_front();
            }
            latest.push_back(zeros!((length(text), WIDTH), &device)?);
            Ok(())
        })
    }
}

/// A feed-forward that some steps go through and others do not, as with experts
/// or layer drop.
pub mod layers_by_condition {
    use super::*;

    /// Steps from one that goes through it to the next.
    const EVERY: usize = 3;
    const ROWS: usize = 16;
    const WIDTH: usize = 64;
    /// The width in between, in widths.
    const WIDER: usize = 4;
    /// `(ROWS, WIDTH)` of f32.
    const ACTIVATION: u64 = (ROWS * WIDTH * 4) as u64;

    /// The input and two weights.
    pub fn live(_step: usize) -> u64 {
        ACTIVATION + (2 * WIDTH * WIDER * WIDTH * 4) as u64
    }

    /// The state before, the one in between and the new one; or the state alone.
    pub fn peak(step: usize) -> u64 {
        let states = if step.is_multiple_of(EVERY) { 1 + WIDER + 1 } else { 1 };
        live(step) + states as u64 * ACTIVATION
    }

    /// Goes through it in every third step.
    ///
    /// # Errors
    /// When the device is full.
    pub fn program(trial: &mut Trial) -> anyhow::Result<()> {
        let device = trial.device().clone();
        let input = zeros!((ROWS, WIDTH), &device)?;
        let up = zeros!((WIDTH, WIDER * WIDTH), &device)?;
        let down = zeros!((WIDER * WIDTH, WIDTH), &device)?;
        trial.iterate(|step| {
            let state = input.relu()?;
            if step.is_multiple_of(EVERY) {
                state.matmul(&up)?.matmul(&down)?;
            }
            Ok(())
        })
    }
}

/// A cache that is concatenated with every token, and cut back to its newest
/// tokens when it is long.
pub mod cache_that_is_trimmed {
    use super::*;

    /// Tokens at which it is cut back, and tokens that stay.
    const LONG: usize = 8;
    const SHORT: usize = 2;
    /// Floats of a token, and its bytes.
    const WIDTH: usize = 256;
    const TOKEN: u64 = (WIDTH * 4) as u64;

    /// One token more each time, from `SHORT` to `LONG`, which is cut at once.
    fn tokens(appended: usize) -> u64 {
        (SHORT + appended % (LONG - SHORT)) as u64
    }

    /// The cache.
    pub fn live(i: usize) -> u64 {
        tokens(i + 1) * TOKEN
    }

    /// The cache, a token, and both in one: more than when it is cut.
    pub fn peak(i: usize) -> u64 {
        2 * (tokens(i) + 1) * TOKEN
    }

    /// Appends, and trims.
    ///
    /// # Errors
    /// When the device is full.
    pub fn program(trial: &mut Trial) -> anyhow::Result<()> {
        let device = trial.device().clone();
        let mut cache = zeros!((SHORT, WIDTH), &device)?;
        trial.iterate(|_| {
            let token = zeros!((1, WIDTH), &device)?;
            cache = Tensor::cat(&[&cache, &token], 0)?;
            if cache.dim(0)? == LONG {
                cache = cache.narrow(0, LONG - SHORT, SHORT)?.force_contiguous()?;
            }
            Ok(())
        })
    }
}

/// A loader whose epochs are no multiple of its batches: every fourth batch is
/// half as long.
pub mod last_batch_of_an_epoch {
    use super::*;

    const BATCH: usize = 8;
    /// Floats of a sample.
    const WIDTH: usize = 512;
    /// Batches in an epoch, the short one counted in.
    const EPOCH: usize = 4;

    fn samples(batch: usize) -> usize {
        if batch % EPOCH == EPOCH - 1 { BATCH / 2 } else { BATCH }
    }

    /// The batch that was loaded last.
    pub fn live(i: usize) -> u64 {
        (samples(i) * WIDTH * 4) as u64
    }

    /// A batch and its activation, or the new batch and the one before.
    pub fn peak(i: usize) -> u64 {
        let before = if i == 0 { 0 } else { live(i - 1) };
        live(i) + before.max(live(i))
    }

    /// Keeps a batch until the next is there.
    ///
    /// # Errors
    /// When the device is full.
    pub fn program(trial: &mut Trial) -> anyhow::Result<()> {
        let device = trial.device().clone();
        let mut batch = None;
        trial.iterate(|i| {
            let next = zeros!((samples(i), WIDTH), &device)?;
            batch.insert(next).relu()?;
            Ok(())
        })
    }
}
