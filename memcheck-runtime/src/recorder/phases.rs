//! The peak and the growth of each phase of the body (`Trial::phase`).
//!
//! A phase that begins or ends divides the time into parts. The peak of each part is one of every
//! phase that was open in it, so that phases can be nested and can overlap on several threads.

use std::collections::BTreeMap;

use memcheck_core::measurement::phase::PhaseFigures;
use memcheck_core::space::Space;
use memcheck_ledger::{self as ledger, block};

/// The phases that have ended, and those that are open.
#[derive(Debug, Default)]
pub(super) struct Phases {
    ended: BTreeMap<String, BTreeMap<Space, Sum>>,
    open: BTreeMap<u64, OpenPhase>,
    /// The number of phases that have begun.
    begun: u64,
    /// True in iterations beyond the measured ones, which change no figure.
    is_paused: bool,
}

/// A phase in one space, over all of its calls.
#[derive(Debug, Default)]
struct Sum {
    peak: u64,
    /// Live bytes at the start of the call with the peak.
    start: u64,
    /// The change of live bytes in measured iterations.
    change: i128,
}

#[derive(Debug)]
struct OpenPhase {
    name: String,
    /// True if it has begun in a measured iteration.
    is_measured: bool,
    /// Live bytes at its start and highest live bytes, of each space that is in use.
    spaces: BTreeMap<Space, (u64, u64)>,
}

impl Phases {
    /// Begins a phase, and returns its number; `None` if it is not measured.
    pub(super) fn begin(&mut self, name: &str, is_measured: bool) -> Option<u64> {
        self.end_part();
        if self.is_paused {
            return None;
        }
        let live = |space| (space, ledger::snapshot(space).live);
        let used = block::spaces().map(live).filter(|(_, live)| *live > 0);
        let spaces = used.map(|(space, live)| (space, (live, live))).collect();
        self.begun += 1;
        self.open.insert(self.begun, OpenPhase { name: name.to_owned(), is_measured, spaces });
        Some(self.begun)
    }

    /// Ends the phase with this number.
    pub(super) fn end(&mut self, number: u64) {
        self.end_part();
        let Some(OpenPhase { name, is_measured, spaces }) = self.open.remove(&number) else {
            return;
        };
        let sums = self.ended.entry(name).or_default();
        for (space, (start, peak)) in spaces {
            let sum = sums.entry(space).or_default();
            if peak > sum.peak {
                (sum.peak, sum.start) = (peak, start);
            }
            if is_measured {
                sum.change += i128::from(ledger::snapshot(space).live) - i128::from(start);
            }
        }
    }

    /// Pauses the figures of all phases, or goes on with them.
    pub(super) fn pause(&mut self, is_paused: bool) {
        self.end_part();
        self.is_paused = is_paused;
    }

    /// Adds the peak since the last part to every open phase.
    fn end_part(&mut self) {
        for space in block::spaces() {
            let peak = ledger::take_phase_peak(space);
            if peak == 0 || self.is_paused {
                continue;
            }
            for phase in self.open.values_mut() {
                let (_, highest) = phase.spaces.entry(space).or_default();
                *highest = peak.max(*highest);
            }
        }
    }

    /// The figures of every phase in a space, after this number of measured iterations.
    pub(super) fn figures(&self, space: Space, measured: usize) -> BTreeMap<String, PhaseFigures> {
        let of = |(name, spaces): (&String, &BTreeMap<Space, Sum>)| {
            let figures = spaces.get(&space).map_or_else(PhaseFigures::default, |sum| {
                let change = u64::try_from(sum.change).unwrap_or(0);
                PhaseFigures {
                    peak_allocated: sum.peak,
                    growth: change.checked_div(measured as u64).unwrap_or(0),
                    live_at_start: sum.start,
                }
            });
            (name.clone(), figures)
        };
        self.ended.iter().map(of).collect()
    }
}
