//! Selects the number of iterations beyond the measured ones that are needed to judge the growth of
//! a test.
//!
//! The figures of a run are those of its measured iterations. The further iterations only extend
//! the histories of live blocks, which decide when the evidence is sufficient.

mod extension;
mod growth;
mod kept;
mod pace;
mod resident;
mod sites;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use memcheck_core::growth::lifetimes::{Budget, Decision, History, Living, step, step_level};
use memcheck_core::judgement::verdict::gist;
use memcheck_core::limits::Limits;
use memcheck_core::measurement::record::{Followed, growth_limit};
use memcheck_core::measurement::soak::{Soaked, milliseconds};
use memcheck_core::space::Space;
use memcheck_core::wire::protocol::{Reach, SoakTime};
use memcheck_ledger::block::Origin;
use memcheck_ledger::{self as ledger, Census, Changes, events};

use crate::clock::Clock;
use crate::judged;

use self::extension::{Extension, StopReason};
use self::kept::Kept;
use self::resident::Resident;

/// The most iterations of a soak, warm-up included. The ledger cannot tell later births apart.
const MOST_SOAKED: u32 = Origin::MAX - 1;

/// The births and deaths of blocks over all iterations, and the rules for when to stop.
#[derive(Debug)]
pub(crate) struct Following {
    reach: Reach,
    budget: Budget,
    evidence: Duration,
    /// The least time for which further iterations run.
    min_time: Duration,
    warmup: u32,
    /// The number of measured iterations.
    screen: u32,
    own: Space,
    /// True if the host is judged too in a test on a GPU.
    limits_host: bool,
    /// True if the host may be judged.
    judges_host: bool,
    limits: Limits,
    /// The number of ended iterations at which a soak looks for growth next.
    next_look: u32,
    histories: BTreeMap<Space, History>,
    kept: Kept,
    /// The resident memory, if a limit judges it.
    resident: Option<Resident>,
    /// The bytes of each counter of the program after each iteration.
    counters: BTreeMap<Space, Vec<u64>>,
    /// The time that the iterations have taken.
    clock: Clock,
    /// Live bytes of the host when the first iteration began.
    live_before: u64,
    /// Live blocks at the last census.
    blocks: u64,
    /// Set when the first iteration beyond the measured ones begins.
    extension: Option<Extension>,
}

/// Live bytes of the host.
fn host_live() -> u64 {
    [Space::Host, Space::HostSmall, Space::CHeap]
        .into_iter()
        .map(|space| ledger::snapshot(space).live)
        .sum()
}

impl Following {
    pub(crate) fn new(own: Space, reach: Reach, limits: &Limits) -> Self {
        let (warmup, screen) = (limits.warmup.value, limits.iterations.value);
        // A test with one iteration is a quick look that must not be extended.
        let most = if screen > 1 { limits.max_iterations.value.max(screen) } else { screen };
        let most = match reach {
            Reach::Soak(_) if screen > 1 => MOST_SOAKED,
            _ => most.saturating_add(warmup),
        };
        let c_heap = limits.max_c_growth.value.map(|_| Space::CHeap);
        let judges_host = limits.judges_host() || judged::may_be_host(own);
        let host = [Space::Host, Space::HostSmall];
        let host = host.into_iter().filter(|&space| judges_host && space != own);
        // Small blocks that no iteration leaves behind have a verdict too.
        let small = (own == Space::Host).then_some(Space::HostSmall);
        let judged = std::iter::once(own).chain(small).chain(host).chain(c_heap);
        // Attribution takes memory of its own.
        let judges_resident = limits.max_rss_growth.value.is_some() && !events::is_on();
        Self {
            reach,
            budget: Budget::of(most).of_measured(screen),
            evidence: limits.evidence.value,
            min_time: limits.min_time.value.unwrap_or_default(),
            warmup,
            screen,
            own,
            limits_host: limits.judges_host(),
            judges_host,
            limits: limits.clone(),
            next_look: 0,
            histories: judged.map(|space| (space, History::new(warmup))).collect(),
            kept: Kept::new(limits),
            resident: judges_resident.then(|| Resident::new(most)),
            counters: BTreeMap::new(),
            clock: Clock::start(),
            live_before: 0,
            blocks: 0,
            extension: None,
        }
    }

    /// True if blocks of this space are judged.
    fn judges((own, judges_host): (Space, bool), space: Space) -> bool {
        space == Space::CHeap
            || space.is_of_driver() == own.is_device()
            || judges_host && !space.is_of_driver()
    }

    /// Must be called when the first iteration begins.
    pub(crate) fn start(&mut self) {
        self.clock = self.clock.restart();
        self.live_before = host_live();
    }

    /// The peak of a space in set-up and measured iterations; `None` if none followed them.
    pub(crate) fn measured_peak(&self, space: Space) -> Option<u64> {
        self.extension.as_ref()?.peaks.get(&space).copied()
    }

    /// Takes the census after an iteration.
    pub(crate) fn take_census(&mut self) {
        let before = self.iterations();
        let changes = Changes::take();
        let is_incremental = changes.is_some();
        let all = if is_incremental { Census::default() } else { ledger::census() };
        let Changes { added, removed } = changes.unwrap_or_default();
        let count = |census: &Census| census.values().sum::<u64>();
        // PERF: changes alone, because a full census of many blocks can take longer than an
        // iteration.
        self.blocks = match is_incremental {
            true => (self.blocks + count(&added)).saturating_sub(count(&removed)),
            false => count(&all),
        };
        let own = (self.own, self.judges_host);
        let used = [&added, &all].into_iter().flat_map(Census::keys).map(|kind| kind.space);
        for space in used.filter(|&space| Self::judges(own, space)) {
            // A space that was not used before had no live blocks after any earlier iteration.
            self.histories.entry(space).or_insert_with(|| {
                let mut history = History::new(self.warmup);
                (0..before).for_each(|_| history.add([]));
                history
            });
        }
        // The time is no part of other runs, because no verdict depends on it there.
        let time = self.depends_on_time().then(|| self.clock.real_elapsed());
        for (&space, history) in &mut self.histories {
            time.into_iter().for_each(|time| history.set_time(time));
            let of_space = |census: &Census| -> Vec<Living> {
                let kinds = census.iter().filter(|(kind, _)| kind.space == space);
                kinds.map(|(kind, &count)| kind.living(count)).collect()
            };
            if is_incremental {
                history.advance(of_space(&added), of_space(&removed));
            } else {
                history.add(of_space(&all));
            }
            self.kept.add(space, history);
        }
        self.join_buffers(if is_incremental { &added } else { &all });
    }

    /// True if the test or its run lasts for a time, so that its memory may live for a time too.
    fn depends_on_time(&self) -> bool {
        !self.min_time.is_zero() || matches!(self.reach, Reach::Soak(_))
    }

    /// A buffer that gets longer leaves the small blocks of the host for the larger ones, so that
    /// neither has all of its growth. `came` are the blocks of the last iteration.
    fn join_buffers(&mut self, came: &Census) {
        let Some(mut small) = self.histories.remove(&Space::HostSmall) else { return };
        if let Some(host) = self.histories.get_mut(&Space::Host) {
            let kinds = came.keys().filter(|kind| kind.space == Space::Host);
            let sites: BTreeSet<u32> = kinds.filter_map(|kind| kind.living(1).site).collect();
            sites.into_iter().for_each(|site| host.take_buffer(site, &mut small));
        }
        self.histories.insert(Space::HostSmall, small);
    }

    /// True if the resident memory is judged, also in iterations beyond the measured ones.
    pub(crate) fn judges_resident(&self) -> bool {
        self.resident.is_some()
    }

    /// Adds the resident memory after an iteration, without the memory of the histories.
    pub(crate) fn add_resident(&mut self, bytes: Option<u64>) {
        let Some((resident, bytes)) = self.resident.as_mut().zip(bytes) else { return };
        let own: usize = self.histories.values().map(History::footprint).sum();
        // The histories grow with every iteration, and would look like a leak of the test.
        resident.add(bytes.saturating_sub(own as u64));
    }

    /// Adds the bytes of the program's counters after an iteration. A counter that is new had none.
    pub(crate) fn add_counters(&mut self, bytes: &[(Space, u64)]) {
        let ended = self.iterations() as usize;
        for &(space, bytes) in bytes {
            let series = self.counters.entry(space).or_default();
            series.resize(ended.saturating_sub(1), 0);
            series.push(bytes);
        }
    }

    /// True if a series did not change in the iterations after the warm-up.
    fn is_level(&self, series: &[u64]) -> bool {
        series.get(self.warmup as usize..).unwrap_or_default().windows(2).all(|it| it[0] == it[1])
    }

    /// The histories that decide. The host's is also kept in case that no device is used.
    fn judged(&self) -> impl Iterator<Item = &History> {
        let of_device = judged::own(self.own).is_device();
        let is_judged = move |space: Space| {
            space.has_own_limit() || self.limits_host || space.is_of_driver() == of_device
        };
        let histories = self.histories.iter().filter(move |(space, _)| is_judged(**space));
        histories.map(|(_, history)| history)
    }

    /// The decision about each judged space.
    fn decisions(&self) -> impl Iterator<Item = Decision> {
        let of_blocks = self.judged().map(|history| step(history, &self.budget));
        let resident = self.resident.iter();
        let levels =
            resident.map(Resident::series).chain(self.counters.values().map(Vec::as_slice));
        of_blocks.chain(levels.map(|it| step_level(it, self.warmup, &self.budget)))
    }

    /// The number of iterations that have ended, including the warm-up.
    pub(crate) fn iterations(&self) -> u32 {
        self.histories.values().map(History::iterations).max().unwrap_or(0)
    }

    /// The number of further iterations that are needed; 0 if the evidence is sufficient or no more
    /// iterations are allowed.
    pub(crate) fn further_iterations(&mut self) -> u32 {
        let ended = self.iterations();
        if ended < self.warmup.saturating_add(self.screen) || self.is_stopped() {
            return 0;
        }
        let wanted = match (&self.reach, &self.extension) {
            (Reach::Screen | Reach::Faults, _) => 0,
            (Reach::Horizon, Some(_)) => self.early_iterations(ended),
            (Reach::Horizon, None) => self.iterations_to_the_horizon(ended),
            (Reach::Decision, _) => {
                let left = self.budget.most.saturating_sub(ended);
                let undecided = match self.undecided_iterations() {
                    0 if self.can_be_proved(left, ended) => {
                        // A ring or a cache can be longer than the horizon.
                        self.budget = self.budget.to_the_end();
                        self.undecided_iterations()
                    }
                    undecided => undecided,
                };
                undecided.min(left).max(self.early_iterations(ended))
            }
            (&Reach::Soak(time), _) => self.soak_iterations(time, ended),
        };
        let in_memory = self.iterations_in_memory(ended);
        // A soak has a time of its own.
        let in_time = match self.reach {
            Reach::Soak(_) => u32::MAX,
            _ => self.iterations_in_time(ended),
        };
        let affordable = in_time.min(in_memory);
        let allowed = match self.reach {
            Reach::Decision => wanted.min(affordable),
            Reach::Soak(_) => {
                let left = self.budget.most.saturating_sub(ended);
                wanted.min(affordable).min(left)
            }
            // A part of the iterations up to the horizon proves hardly more than the measured ones.
            // Therefore either all of them must run or none.
            Reach::Screen | Reach::Faults | Reach::Horizon if affordable < wanted => 0,
            Reach::Screen | Reach::Faults | Reach::Horizon => wanted,
        };
        if allowed == 0 {
            self.stop(match wanted {
                0 => StopReason::Done,
                _ if ended >= MOST_SOAKED => StopReason::TooMany,
                _ if in_memory < in_time => StopReason::OutOfMemory,
                _ => StopReason::OutOfTime,
            });
        } else if self.extension.is_none() {
            self.extension = Some(Extension::begin(self.clock.restart()));
        }
        allowed
    }

    /// True if no block was left behind, and there was time for the iterations up to the horizon, but
    /// they were not asked for.
    pub(crate) fn can_go_on(&self) -> bool {
        let ended = self.iterations();
        let wanted = self.iterations_to_the_horizon(ended);
        matches!(self.reach, Reach::Screen)
            && self.screen > 1
            && ended >= self.warmup.saturating_add(self.screen)
            && wanted > 0
            && wanted <= self.iterations_in_time(ended)
    }

    /// The number of further iterations that show late leaks; 0 if blocks were left behind.
    fn iterations_to_the_horizon(&self, ended: u32) -> u32 {
        let flat = self.resident.is_none()
            && self.judged().all(History::is_flat)
            && self.counters.values().all(|series| self.is_level(series));
        let horizon = self.warmup.saturating_add(self.budget.quiet).saturating_add(1);
        if flat { horizon.min(self.budget.most).saturating_sub(ended) } else { 0 }
    }

    /// The greatest number of further iterations that any space needs.
    fn undecided_iterations(&self) -> u32 {
        let more = self.decisions().map(|decision| match decision {
            Decision::More(more) => more,
            _ => 0,
        });
        // Growth that `max_kept` allows is followed until it has passed the limit.
        let is_of_gpu = self.is_of_gpu();
        let beyond = self.histories.iter().map(|(&space, history)| {
            self.kept.iterations_left((space, is_of_gpu), &step(history, &self.budget))
        });
        more.chain(beyond).max().unwrap_or(0)
    }

    /// The most bytes that blocks of the iterations have held after one of them; `None` if the test
    /// does not limit them.
    pub(crate) fn kept(&self, space: Space) -> Option<u64> {
        self.kept.most(space, self.is_of_gpu())
    }

    fn is_of_gpu(&self) -> bool {
        judged::own(self.own).is_device()
    }

    /// The number of iterations until the clock must be read again; 0 if the time is over, or if a
    /// space grows by more than its limit. A test that grows by less is soaked for the whole time,
    /// because a larger leak can begin later.
    fn soak_iterations(&mut self, time: Duration, ended: u32) -> u32 {
        let elapsed = self.clock.real_elapsed();
        if self.screen < 2 || elapsed >= time || self.exceeds_growth(ended) {
            return 0;
        }
        self.iterations_until(time - elapsed, ended)
    }

    /// True if a look shows growth above the limit. A look takes time, so that each comes after a
    /// tenth more iterations.
    fn exceeds_growth(&mut self, ended: u32) -> bool {
        if ended < self.next_look {
            return false;
        }
        self.next_look = ended.saturating_add(ended / 10).saturating_add(1);
        let exceeds = |space: Space, decision: Decision| match decision {
            Decision::Leak(leak) => {
                leak.rate.rounded() > self.max_growth_of(space)
                    && !self.kept.allows(space, self.is_of_gpu())
            }
            _ => false,
        };
        let level = |series: &[u64]| step_level(series, self.warmup, &self.budget);
        self.histories.iter().any(|(&space, history)| exceeds(space, step(history, &self.budget)))
            || self.resident.iter().any(|it| exceeds(Space::Process, level(it.series())))
            || self.counters.iter().any(|(&space, series)| exceeds(space, level(series)))
    }

    /// The limit of the growth of a space. The host's history is also kept where it is not judged.
    fn max_growth_of(&self, space: Space) -> u64 {
        growth_limit(&self.limits, space, self.is_of_gpu()).unwrap_or(u64::MAX)
    }

    /// The time of a soak; `None` if the test is not soaked.
    pub(crate) fn soak_time(&self) -> Option<SoakTime> {
        let Reach::Soak(asked) = self.reach else { return None };
        Some(SoakTime { elapsed: self.clock.real_elapsed().as_secs(), asked: asked.as_secs() })
    }

    pub(crate) fn soaked(&self) -> Option<Soaked> {
        let Reach::Soak(asked) = self.reach else { return None };
        let ended = match &self.extension {
            None => Some("its measured iterations took all of the time, or did not end".to_owned()),
            Some(extension) => extension.reason(),
        };
        let of_extension = self.extension.as_ref().and_then(|extension| {
            let before = extension.clock.started_after(&self.clock);
            Some(before + Duration::try_from_secs_f64(extension.seconds?).ok()?)
        });
        Some(Soaked {
            asked: milliseconds(asked),
            taken: milliseconds(of_extension.unwrap_or_else(|| self.clock.real_elapsed())),
            iterations: self.iterations(),
            ended,
        })
    }

    /// True if the body has failed in an iteration beyond the measured ones. It may not be written for
    /// so many iterations, so this is not an error of the test.
    pub(crate) fn is_extended(&self) -> bool {
        self.extension.is_some()
    }

    /// Ends the iterations beyond the measured ones, because the body returned this error.
    pub(crate) fn handle_failure(&mut self, error: &str) {
        self.stop(StopReason::Failed);
        if let Some(extension) = &mut self.extension {
            extension.error = gist(error).lines().next().unwrap_or_default().to_owned();
        }
    }

    fn is_stopped(&self) -> bool {
        self.extension.as_ref().is_some_and(|extension| extension.stop_reason.is_some())
    }

    fn stop(&mut self, stop_reason: StopReason) {
        if let Some(extension) = &mut self.extension {
            extension.end(stop_reason);
        }
    }

    /// True while iterations beyond the measured ones run.
    pub(crate) fn is_extending(&self) -> bool {
        self.extension.as_ref().is_some_and(|extension| extension.stop_reason.is_none())
    }

    /// How far the test was followed; `None` if only its measured iterations were run.
    pub(crate) fn followed(&self) -> Option<Followed> {
        let extension = self.extension.as_ref()?;
        let decided = self
            .decisions()
            .all(|decision| matches!(decision, Decision::Clean { .. } | Decision::Leak(_)));
        Some(Followed {
            iterations: self.iterations().saturating_sub(self.warmup),
            seconds: extension
                .seconds
                .unwrap_or_else(|| extension.clock.real_elapsed().as_secs_f64()),
            decided,
            // After a panic the live bytes were not compared.
            disturbed: extension.disturbed || extension.stop_reason.is_none(),
            ended: extension.reason(),
        })
    }
}

#[cfg(test)]
mod tests;
