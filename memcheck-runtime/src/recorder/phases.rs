//! The peak and the growth of each phase of the body (`Trial::phase`).
//!
//! A phase that begins or ends divides the time into parts. The peak of each part is one of every
//! phase that was open in it, so that phases can be nested and can overlap on several threads. The
//! ledger notes for each block the phase that had begun last.

use std::collections::BTreeMap;

use memcheck_core::measurement::phase::PhaseFigures;
use memcheck_core::space::Space;
use memcheck_ledger::block::MOST_PHASES;
use memcheck_ledger::{self as ledger, block};
use rustc_hash::FxHashMap;

/// The phases that have ended, and those that are open.
#[derive(Debug, Default)]
pub(super) struct Phases {
    /// The number of each phase in the ledger.
    numbers: BTreeMap<String, u8>,
    /// The peak of each phase that has ended.
    ended: BTreeMap<String, BTreeMap<Space, Peak>>,
    /// By the order in which they began.
    open: BTreeMap<u64, OpenPhase>,
    begun: u64,
    /// Live bytes by the phase of their birth, before the measured iterations and after them.
    before: FxHashMap<(Space, u8), u64>,
    after: FxHashMap<(Space, u8), u64>,
    /// True in iterations beyond the measured ones, which change no figure.
    is_paused: bool,
}

#[derive(Debug, Default, Clone, Copy)]
struct Peak {
    bytes: u64,
    /// Live bytes when the run of the phase with this peak began.
    start: u64,
}

#[derive(Debug)]
struct OpenPhase {
    name: String,
    number: u8,
    /// The spaces that are in use.
    spaces: BTreeMap<Space, Peak>,
}

impl Phases {
    /// Begins a phase, and returns its place in the order; `None` if it is not measured.
    ///
    /// # Panics
    /// If the body has more phases than the ledger distinguishes.
    pub(super) fn begin(&mut self, name: &str) -> Option<u64> {
        self.end_part();
        if self.is_paused {
            return None;
        }
        let next = u8::try_from(self.numbers.len() + 1).unwrap_or(u8::MAX);
        let number = *self.numbers.entry(name.to_owned()).or_insert(next);
        assert!(number <= MOST_PHASES, "a body can have at most {MOST_PHASES} phases");
        let live = |space| (space, ledger::snapshot(space).live);
        let used = block::spaces().map(live).filter(|(_, live)| *live > 0);
        let spaces = used.map(|(space, live)| (space, Peak { bytes: live, start: live })).collect();
        self.begun += 1;
        self.open.insert(self.begun, OpenPhase { name: name.to_owned(), number, spaces });
        self.set_phase();
        Some(self.begun)
    }

    /// Ends the phase with this place in the order.
    pub(super) fn end(&mut self, begun: u64) {
        self.end_part();
        let Some(OpenPhase { name, spaces, .. }) = self.open.remove(&begun) else { return };
        self.set_phase();
        let peaks = self.ended.entry(name).or_default();
        for (space, peak) in spaces {
            let highest = peaks.entry(space).or_default();
            if peak.bytes > highest.bytes {
                *highest = peak;
            }
        }
    }

    /// New blocks belong to the open phase that began last.
    fn set_phase(&self) {
        ledger::set_phase(self.open.values().next_back().map_or(0, |phase| phase.number));
    }

    /// Pauses the figures of all phases, or goes on with them.
    pub(super) fn pause(&mut self, is_paused: bool) {
        self.end_part();
        self.is_paused = is_paused;
    }

    /// Must be called before the first measured iteration.
    pub(super) fn begin_measured(&mut self) {
        if self.begun > 0 {
            self.before = ledger::live_by_phase();
        }
    }

    /// Must be called after the last measured iteration.
    pub(super) fn end_measured(&mut self) {
        if self.begun > 0 {
            self.after = ledger::live_by_phase();
        }
    }

    /// Adds the peak since the last part to every open phase.
    fn end_part(&mut self) {
        for space in block::spaces() {
            let bytes = ledger::take_phase_peak(space);
            if bytes == 0 || self.is_paused {
                continue;
            }
            for phase in self.open.values_mut() {
                let peak = phase.spaces.entry(space).or_default();
                peak.bytes = peak.bytes.max(bytes);
            }
        }
    }

    /// The figures of every phase in a space, after this number of measured iterations.
    pub(super) fn figures(&self, space: Space, measured: usize) -> BTreeMap<String, PhaseFigures> {
        let of = |(name, peaks): (&String, &BTreeMap<Space, Peak>)| {
            let Peak { bytes, start } = peaks.get(&space).copied().unwrap_or_default();
            let number = self.numbers.get(name).copied().unwrap_or(0);
            let live =
                |all: &FxHashMap<(Space, u8), u64>| all.get(&(space, number)).copied().unwrap_or(0);
            let left = live(&self.after).saturating_sub(live(&self.before));
            let growth = left.checked_div(measured as u64).unwrap_or(0);
            (name.clone(), PhaseFigures { peak_allocated: bytes, growth, live_at_start: start })
        };
        self.ended.iter().map(of).collect()
    }
}
