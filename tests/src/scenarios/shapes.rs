//! What looks like growth and is none: memory that is uneven because the
//! inputs are. A profile remarks on it, and on the even twin on nothing.

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
