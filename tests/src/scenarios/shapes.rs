//! Programs that look as if they grew, but do not. Their memory is uneven because their inputs or
//! their work are. A profile must remark on the program with uneven inputs, and must not remark on
//! its even twin.

use std::collections::VecDeque;

use candle_core::Tensor;
use memcheck_runtime::Trial;

/// A program on which a profile remarks, and its twin on which it does not. Both are clean.
#[derive(Debug, Clone, Copy)]
pub struct Remarked {
    /// The name of the program and of its memory tests.
    pub name: &'static str,
    /// The cause that the profile remarks on.
    pub cause: &'static str,
    /// The program that looks as if it grew.
    pub uneven: fn(&mut Trial) -> anyhow::Result<()>,
    /// The same program with even inputs.
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

/// A row of the table. The name is that of a module.
macro_rules! remarked {
    ($name:ident, $cause:literal) => {
        Remarked {
            name: stringify!($name),
            cause: $cause,
            uneven: $name::uneven,
            even: $name::even,
        }
    };
}

/// The programs on which a profile remarks.
pub const REMARKED: &[Remarked] = &[
    remarked!(texts_of_every_length, "variable-shapes"),
    remarked!(images_of_every_size, "variable-shapes"),
    remarked!(requests_of_every_batch, "variable-shapes"),
];

/// A healthy program that sometimes needs more memory, and sometimes keeps more.
#[derive(Debug, Clone, Copy)]
pub struct Uneven {
    /// The name of the program and of its memory test.
    pub name: &'static str,
    /// The program.
    pub program: fn(&mut Trial) -> anyhow::Result<()>,
    /// Bytes that are live at the end of iteration `i`, which counts the warm-up.
    pub live: fn(usize) -> u64,
    /// The peak of live bytes in iteration `i`.
    pub peak: fn(usize) -> u64,
}

impl Uneven {
    /// The path of its test in the target `detection`.
    pub fn test(&self) -> String {
        format!("uneven::{}", self.name)
    }
}

/// A row of the table. The name is that of a module.
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

/// The uneven programs.
pub const UNEVEN: &[Uneven] = &[
    uneven!(layers_by_condition),
    uneven!(cache_that_is_trimmed),
    uneven!(last_batch_of_an_epoch),
];

/// The program of this name.
///
/// # Panics
///
/// When no program has this name.
pub fn uneven(name: &str) -> &'static Uneven {
    UNEVEN
        .iter()
        .find(|uneven| uneven.name == name)
        .unwrap_or_else(|| panic!("`{name}` is not a program"))
}

/// The program of this name.
///
/// # Panics
///
/// When no program has this name.
pub fn remarked(name: &str) -> &'static Remarked {
    REMARKED
        .iter()
        .find(|remarked| remarked.name == name)
        .unwrap_or_else(|| panic!("`{name}` is not a program"))
}

/// Hidden states of the last two texts, which are compared.
pub mod texts_of_every_length {
    use super::*;

    /// Tokens of the texts, repeated.
    const LENGTHS: [usize; 7] = [9, 4, 12, 6, 15, 3, 11];
    const LONGEST: usize = 16;
    const WIDTH: usize = 256;
    const COMPARED: usize = 2;

    /// Texts of varying length.
    ///
    /// # Errors
    /// When the device is full.
    pub fn uneven(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |text| LENGTHS[text % LENGTHS.len()])
    }

    /// Texts that are padded to one length.
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

/// The features of the image that is shown, which is convolved at its own size.
pub mod images_of_every_size {
    use super::*;

    /// Width and height of the images, repeated.
    const SIZES: [usize; 5] = [24, 40, 32, 56, 48];
    const LARGEST: usize = 56;
    const CHANNELS: usize = 4;

    /// Images of varying size.
    ///
    /// # Errors
    /// When the device is full.
    pub fn uneven(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |image| SIZES[image % SIZES.len()])
    }

    /// Images that are scaled to one size.
    ///
    /// # Errors
    /// When the device is full.
    pub fn even(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |_| LARGEST)
    }

    fn run(trial: &mut Trial, size: fn(usize) -> usize) -> anyhow::Result<()> {
        let device = trial.device().clone();
        let kernel = zeros!((CHANNELS, 1, 3, 3), &device)?;
        let mut shown = None;
        trial.iterate(|image| {
            let pixels = zeros!((1, 1, size(image), size(image)), &device)?;
            shown = Some(pixels.conv2d(&kernel, 1, 1, 1, 1)?);
            anyhow::Ok(())
        })?;
        drop(shown);
        Ok(())
    }
}

/// The scores of the last batch, which a server keeps until the next batch replaces them. A batch
/// has as many requests as are waiting.
pub mod requests_of_every_batch {
    use super::*;

    /// Requests that are waiting, repeated.
    const WAITING: [usize; 6] = [3, 8, 1, 5, 2, 7];
    const MOST: usize = 8;
    const CLASSES: usize = 512;

    struct Server {
        weight: Tensor,
        last: Option<Tensor>,
    }

    impl Server {
        fn answer(&mut self, requests: &Tensor) -> candle_core::Result<()> {
            self.last = Some(requests.matmul(&self.weight)?);
            Ok(())
        }
    }

    /// Batches of those that wait.
    ///
    /// # Errors
    /// When the device is full.
    pub fn uneven(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |batch| WAITING[batch % WAITING.len()])
    }

    /// Batches that are filled up.
    ///
    /// # Errors
    /// When the device is full.
    pub fn even(trial: &mut Trial) -> anyhow::Result<()> {
        run(trial, |_| MOST)
    }

    fn run(trial: &mut Trial, waiting: fn(usize) -> usize) -> anyhow::Result<()> {
        let device = trial.device().clone();
        let mut server = Server { weight: zeros!((64, CLASSES), &device)?, last: None };
        trial.iterate(|batch| Ok(server.answer(&zeros!((waiting(batch), 64), &device)?)?))
    }
}

/// A feed-forward that only some steps use, as with experts or layer drop.
pub mod layers_by_condition {
    use super::*;

    /// Steps from one that uses the feed-forward to the next.
    const EVERY: usize = 3;
    const ROWS: usize = 16;
    const WIDTH: usize = 64;
    /// The intermediate width, as a multiple of the width.
    const WIDER: usize = 4;
    /// `(ROWS, WIDTH)` of f32.
    const ACTIVATION: u64 = (ROWS * WIDTH * 4) as u64;

    /// The input and two weights.
    pub fn live(_step: usize) -> u64 {
        ACTIVATION + (2 * WIDTH * WIDER * WIDTH * 4) as u64
    }

    /// The old state, the intermediate one and the new one; or the old state only.
    pub fn peak(step: usize) -> u64 {
        let states = if step.is_multiple_of(EVERY) { 1 + WIDER + 1 } else { 1 };
        live(step) + states as u64 * ACTIVATION
    }

    /// Uses the feed-forward in every third step.
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

/// A cache that is concatenated with every token, and cut back to its newest tokens when it is
/// long.
pub mod cache_that_is_trimmed {
    use super::*;

    /// The length at which the cache is cut, and the length after the cut.
    const LONG: usize = 8;
    const SHORT: usize = 2;
    /// Floats of a token, and its bytes.
    const WIDTH: usize = 256;
    const TOKEN: u64 = (WIDTH * 4) as u64;

    /// The length rises by one token from `SHORT` to `LONG`. At `LONG` the cache is cut in the same
    /// iteration.
    fn tokens(appended: usize) -> u64 {
        (SHORT + appended % (LONG - SHORT)) as u64
    }

    /// The cache.
    pub fn live(i: usize) -> u64 {
        tokens(i + 1) * TOKEN
    }

    /// The cache, a token, and their concatenation. The cut itself has fewer live bytes.
    pub fn peak(i: usize) -> u64 {
        2 * (tokens(i) + 1) * TOKEN
    }

    /// Appends and cuts.
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

/// A loader whose epochs are not multiples of its batches, so that every fourth batch is half as
/// long.
pub mod last_batch_of_an_epoch {
    use super::*;

    const BATCH: usize = 8;
    /// Floats of a sample.
    const WIDTH: usize = 512;
    /// Batches in an epoch, including the short one.
    const EPOCH: usize = 4;

    fn samples(batch: usize) -> usize {
        if batch % EPOCH == EPOCH - 1 { BATCH / 2 } else { BATCH }
    }

    /// The batch that was loaded last.
    pub fn live(i: usize) -> u64 {
        (samples(i) * WIDTH * 4) as u64
    }

    /// A batch and its activation, or the new batch and the previous one.
    pub fn peak(i: usize) -> u64 {
        let before = if i == 0 { 0 } else { live(i - 1) };
        live(i) + before.max(live(i))
    }

    /// Keeps a batch until the next is loaded.
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
