//! Refuses each device allocation of loading a model, and of a prompt, in turn, as a device without
//! memory does, and measures the bytes that stay.

use candle_core::Device;
use memcheck_core::wire::estimate::Question;
use memcheck_runtime::{__private as phases, usage};

use crate::measure::{Loaded, ids};
use crate::problem::Problem;
use crate::question::{self, CheckedQuestion};

/// The refusals of one phase, each in a new model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Refusals {
    /// The device allocations of the phase. Each was refused once.
    pub refused: u64,
    /// The refusals that made the model panic instead of returning an error.
    pub panics: u64,
    /// The refusals after which bytes stayed.
    pub leaving: u64,
    /// The most bytes that stayed after one of them.
    pub most_left: u64,
}

impl Refusals {
    fn add(&mut self, panicked: bool, left: u64) {
        self.refused += 1;
        self.panics += u64::from(panicked);
        self.leaving += u64::from(left > 0);
        self.most_left = self.most_left.max(left);
    }
}

/// The bytes that stay after refused allocations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Faults {
    /// Those of loading, when what was loaded is dropped.
    pub loading: Refusals,
    /// Those of a prompt, which the model keeps in addition to its weights and tables.
    pub prompt: Refusals,
    /// The most of those bytes that the model still keeps when it was cleared; `None` if candle
    /// cannot clear it.
    pub most_after_clearing: Option<u64>,
    /// The most of those bytes that are live when the model is dropped.
    pub most_after_dropping: u64,
}

pub(crate) fn measure(question: &Question, device: &Device) -> Result<Faults, Problem> {
    let checked = question::check(question)?;
    // Without a refusal first: the device creates handles of its libraries late, and a model can
    // fail anyway.
    run(&checked, device)?;
    let mut faults = Faults { loading: refuse_loading(&checked, device), ..Faults::default() };
    refuse_prompt(&checked, device, &mut faults)?;
    Ok(faults)
}

fn run(checked: &CheckedQuestion, device: &Device) -> Result<(), Problem> {
    let mut loaded = Loaded::load(checked, false, device)?;
    loaded.model.prompt(&ids(checked, device)?)?;
    Ok(())
}

fn refuse_loading(checked: &CheckedQuestion, device: &Device) -> Refusals {
    let mut refusals = Refusals::default();
    let before = usage(device).allocated;
    for number in 1.. {
        let load = || Loaded::load(checked, false, device).map(drop).is_err();
        let (result, was_refused) = phases::refusing(number, load);
        if !was_refused {
            break;
        }
        let left = usage(device).allocated.saturating_sub(before);
        refusals.add(result.is_err(), left);
    }
    refusals
}

/// A new model for each refusal, because candle cannot clear every model.
fn refuse_prompt(
    checked: &CheckedQuestion,
    device: &Device,
    faults: &mut Faults,
) -> Result<(), Problem> {
    for number in 1.. {
        let mut loaded = Loaded::load(checked, false, device)?;
        let before = loaded.before();
        let (held, _) = loaded.usage(device);
        let kept = |loaded: &Loaded| loaded.usage(device).0.saturating_sub(held);
        let prompt = || ids(checked, device).and_then(|ids| loaded.model.prompt(&ids).map(drop));
        let (result, was_refused) = phases::refusing(number, prompt);
        if !was_refused {
            break;
        }
        faults.prompt.add(result.is_err(), kept(&loaded));
        if loaded.model.clear()? {
            let most = faults.most_after_clearing.get_or_insert(0);
            *most = (*most).max(kept(&loaded));
        }
        drop(loaded);
        let left = usage(device).allocated.saturating_sub(before);
        faults.most_after_dropping = faults.most_after_dropping.max(left);
    }
    Ok(())
}
