//! The growth of each space over all iterations of a run, which ended in time or early.

use std::collections::BTreeMap;

use memcheck_core::growth::lifetimes::{Budget, History, step, step_level};
use memcheck_core::growth::survivors::{self, Grown, Growth};
use memcheck_core::space::Space;
use memcheck_core::wire::protocol::Reach;

use super::extension::StopReason;
use super::{Following, sites};
use crate::executable::Executable;

impl Following {
    /// The growth of each judged space over all iterations so far.
    pub(crate) fn growth(&mut self) -> BTreeMap<Space, Grown> {
        let (executable, ended) = (Executable::find(), self.iterations());
        let content = |site| sites::content(&executable, site);
        // Taken out, because `growth_of` reads the rest of this value.
        let mut histories = std::mem::take(&mut self.histories);
        let judge = |history: &History| self.growth_of(history, ended);
        let is_of_gpu = self.is_of_gpu();
        let is_last =
            matches!(self.reach, Reach::Decision | Reach::Soak(_)) || ended >= self.budget.most;
        let of = (ended.saturating_sub(self.warmup), is_last);
        let mut growth: BTreeMap<Space, Grown> = histories
            .iter_mut()
            .map(|(&space, history)| (space, sites::in_order(history, content, judge)))
            .map(|(space, grown)| (space, self.kept.judge((space, is_of_gpu), grown, of)))
            .collect();
        self.histories = histories;
        let resident = self.resident.iter().map(|it| (Space::Process, it.series()));
        let counters = self.counters.iter().map(|(&space, series)| (space, series.as_slice()));
        let levels = resident.chain(counters);
        growth.extend(levels.map(|(space, series)| (space, self.growth_of_level(series))));
        growth
    }

    /// The growth of a space without blocks.
    fn growth_of_level(&self, series: &[u64]) -> Grown {
        if self.screen < 2 {
            return Grown::default();
        }
        let read =
            |budget: &Budget| survivors::read_level(&step_level(series, self.warmup, budget));
        let grown = read(&self.budget);
        match (grown.growth, &self.reach) {
            // The run ended early.
            (Growth::Unknown, Reach::Decision) => read(&self.ended_budget()),
            // Another run could not decide more. With a limit of resident memory, this one has not
            // gone on to the horizon.
            (Growth::Unknown, _) if self.resident.is_none() && self.is_level(series) => {
                let iterations = self.iterations().saturating_sub(self.warmup);
                Grown { growth: Growth::Quiet { iterations }, ..grown }
            }
            _ => grown,
        }
    }

    fn growth_of(&self, history: &History, ended: u32) -> Grown {
        if self.screen < 2 {
            // One iteration cannot show growth.
            return Grown::default();
        }
        let read = |budget: &Budget| {
            survivors::read(history, &step(history, budget), self.screen as usize)
        };
        let grown = read(&self.budget);
        if grown.growth != Growth::Unknown {
            return self.or_rising(grown, history);
        }
        match self.reach {
            // The run ended early, because of an error of the body or for lack of time. The budget
            // is then reduced to the iterations that have ended, so that they alone are judged.
            Reach::Decision | Reach::Soak(_) => {
                let grown = read(&self.ended_budget());
                let is_exact = matches!(grown.growth, Growth::Found { exact: true, .. });
                let failed = self.extension.as_ref().is_none_or(|extension| {
                    matches!(extension.stop_reason, None | Some(StopReason::Failed))
                });
                // A few iterations can prove an exact leak only.
                let grown = if failed && !is_exact { grown.undecided(ended) } else { grown };
                self.or_rising(grown, history)
            }
            // Another run could not decide more.
            _ if history.is_flat() => {
                let iterations = ended.saturating_sub(self.warmup);
                Grown { growth: Growth::Quiet { iterations }, ..grown }
            }
            // Another run must decide.
            _ => grown,
        }
    }

    /// The budget of a run that has ended early.
    fn ended_budget(&self) -> Budget {
        Budget::of(self.iterations()).of_measured(self.screen)
    }

    /// What rises in every iteration must not pass because the run ended.
    fn or_rising(&self, grown: Grown, history: &History) -> Grown {
        let is_open = matches!(grown.growth, Growth::Undecided { .. });
        let rising = is_open.then(|| survivors::read_rising(history, self.screen as usize));
        rising.flatten().unwrap_or(grown)
    }
}
