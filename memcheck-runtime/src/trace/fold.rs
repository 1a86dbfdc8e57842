//! Folds events into the data for a report.
//!
//! The holders of the memory at the peak are known without a copy at every new peak. Each holder
//! stores its live bytes and, lazily, its live bytes at the latest peak. A new peak only increments
//! a number, the epoch. A holder with an older epoch saves its live bytes before it changes.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;

use memcheck_core::space::Space;
use memcheck_core::wire::protocol::MOST_LIVE_STACKS;
use memcheck_ledger::block::{Block, Origin};
use memcheck_ledger::events::Event;
use rustc_hash::FxHashMap;

use super::{LifetimeRecorder, LiveSite, Log, Timeline};

/// A place in the program together with the space and shape of its allocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) space: Space,
    pub(crate) context: u32,
    pub(crate) shape: u16,
}

/// The allocations of a place over the whole body, and in the last iteration in which it allocated.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Total {
    pub(crate) calls: u64,
    pub(crate) bytes: u64,
    /// Allocations in the last iteration in which the place allocated.
    pub(crate) last_calls: u64,
    pub(crate) last_bytes: u64,
    /// The number of that iteration; 0 is outside of iterations.
    pub(crate) iteration: u32,
}

/// The memory that a place held at the peak, by age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) key: Key,
    /// The iteration of birth, which is exact for the set-up (0) and for the latest iteration in
    /// which the place allocated. For all earlier iterations together it is 1.
    pub(crate) birth: u32,
    pub(crate) bytes: u64,
    pub(crate) count: u64,
}

/// An allocation that was refused, and the memory that was live at that moment.
#[derive(Debug)]
pub(crate) struct RefusedEvent {
    pub(crate) block: Block,
    pub(crate) live: Vec<Held>,
}

/// The result of all events so far.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    pub(crate) events: u64,
    /// In the order of their first events.
    places: Vec<TracedPlace>,
    indices: FxHashMap<Key, usize>,
    /// The place of the last event. PERF: many events in a row often have the same place.
    last: Option<(Key, usize)>,
    pub(crate) spaces: FxHashMap<Space, SpaceTrace>,
    /// The last refusal of each space.
    pub(crate) refused: FxHashMap<Space, RefusedEvent>,
    /// A log of single events, if the run needs one.
    pub(crate) log: Option<Log>,
    iteration: u32,
    /// The number of iterations that have begun.
    begun: u32,
}

/// The allocations of a place, and its live blocks: those of the set-up and those of iterations.
#[derive(Debug)]
struct TracedPlace {
    key: Key,
    total: Total,
    of_set_up: Holder,
    of_iterations: Holder,
}

impl TracedPlace {
    fn new(key: Key) -> Self {
        let (of_set_up, of_iterations) = Default::default();
        Self { key, total: Total::default(), of_set_up, of_iterations }
    }

    fn holder(&mut self, birth: u32) -> &mut Holder {
        // Apart, so that blocks of the set-up keep their age however many iterations follow.
        if birth == 0 { &mut self.of_set_up } else { &mut self.of_iterations }
    }
}

#[derive(Debug)]
pub(crate) struct SpaceTrace {
    live: i64,
    pub(crate) peak: u64,
    /// The iteration of the peak; 0 is the set-up.
    pub(crate) peak_iteration: u32,
    epoch: u64,
    /// The number of the event that reached the peak.
    pub(crate) peak_event: u64,
    pub(crate) timeline: Timeline,
    pub(crate) lifetimes: LifetimeRecorder,
}

impl SpaceTrace {
    /// The trace of a space whose first event follows after `begun` iterations.
    fn new(begun: u32) -> Self {
        Self {
            live: 0,
            peak: 0,
            peak_iteration: 0,
            epoch: 0,
            peak_event: 0,
            timeline: Timeline::default(),
            lifetimes: LifetimeRecorder::new(begun),
        }
    }

    fn live(&self) -> u64 {
        u64::try_from(self.live).unwrap_or(0)
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Amount {
    bytes: i64,
    count: i64,
}

impl Amount {
    fn add(&mut self, bytes: i64, count: i64) {
        self.bytes += bytes;
        self.count += count;
    }
}

/// Blocks of a place by age. The number of ages is fixed, so that a leak in each of 100,000
/// iterations takes no more memory than one in ten.
#[derive(Debug, Clone, Copy, Default)]
struct ByAge {
    /// Blocks of the latest iteration in which the place allocated.
    latest: Amount,
    /// The number of that iteration.
    birth: u32,
    earlier: Amount,
}

impl ByAge {
    fn add(&mut self, birth: u32, bytes: i64, count: i64) {
        if birth > self.birth {
            self.earlier.add(self.latest.bytes, self.latest.count);
            self.latest = Amount::default();
            self.birth = birth;
        }
        let of_age = if birth == self.birth { &mut self.latest } else { &mut self.earlier };
        of_age.add(bytes, count);
    }

    /// Each age with the birth that stands for it.
    fn ages(self) -> [(u32, Amount); 2] {
        [(self.birth, self.latest), (self.birth.min(1), self.earlier)]
    }
}

#[derive(Debug, Default)]
struct Holder {
    live: ByAge,
    at_peak: ByAge,
    epoch: u64,
    /// The epoch just before the latest block was added. It shows whether that block was live at
    /// the latest peak.
    before_latest: u64,
    /// The iteration in which the latest block was counted; 0 is outside of iterations.
    latest: u32,
}

impl Holder {
    /// Saves the live amount as that at the peak of `epoch`. Must be called before each change.
    fn save(&mut self, epoch: u64) {
        if self.epoch != epoch {
            self.at_peak = self.live;
            self.epoch = epoch;
        }
    }
}

fn space(spaces: &mut FxHashMap<Space, SpaceTrace>, space: Space, begun: u32) -> &mut SpaceTrace {
    spaces.entry(space).or_insert_with(|| SpaceTrace::new(begun))
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

impl Trace {
    /// An empty trace. If `log` is given, the events of its space are also stored in it.
    pub(super) fn new(log: Option<Log>) -> Self {
        Self { log, ..Self::default() }
    }

    pub(super) fn take(&mut self, event: Event) {
        self.events += 1;
        if let Some(log) = &mut self.log {
            log.take(event);
        }
        self.fold(event);
    }

    fn fold(&mut self, event: Event) {
        match event {
            Event::Allocated(block) => {
                self.count(&block, self.iteration);
                self.add_block(&block);
            }
            // Not counted, because the program has not allocated it a second time.
            Event::Kept(block) => self.add_block(&block),
            Event::Freed(block) => {
                let place = self.index_of(key(&block));
                let space = space(&mut self.spaces, block.space, self.begun);
                let holder = self.places[place].holder(block.origin.birth);
                holder.save(space.epoch);
                holder.live.add(block.origin.birth, -signed(block.size), -1);
                space.live -= signed(block.size);
                let live = space.live();
                space.timeline.push(live);
                space.lifetimes.freed(key(&block), &block, live);
            }
            Event::Refused(block) => {
                let live = self.held(block.space, |holder| holder.live);
                self.refused.insert(block.space, RefusedEvent { block, live });
            }
            Event::Shaped(block, shape) => self.set_shape(&block, shape),
            Event::Iteration(iteration) => self.begin_or_end(iteration),
            Event::End => {}
        }
    }

    fn index_of(&mut self, key: Key) -> usize {
        if let Some((last, index)) = self.last
            && last == key
        {
            return index;
        }
        let index = *self.indices.entry(key).or_insert_with(|| {
            self.places.push(TracedPlace::new(key));
            self.places.len() - 1
        });
        self.last = Some((key, index));
        index
    }

    fn begin_or_end(&mut self, iteration: u32) {
        self.iteration = iteration;
        for space in self.spaces.values_mut() {
            match iteration {
                0 => space.lifetimes.end_iteration(),
                _ => space.lifetimes.begin_iteration(),
            }
        }
        self.begun += u32::from(iteration != 0);
    }

    fn count(&mut self, block: &Block, iteration: u32) {
        let place = self.index_of(key(block));
        let total = &mut self.places[place].total;
        total.calls += 1;
        total.bytes += block.size;
        // An allocation between or after the iterations does not count as one of an iteration.
        if iteration == 0 && total.iteration != 0 {
            return;
        }
        if total.iteration != iteration {
            (total.last_calls, total.last_bytes) = (0, 0);
            total.iteration = iteration;
        }
        total.last_calls += 1;
        total.last_bytes += block.size;
    }

    fn add_block(&mut self, block: &Block) {
        let place = self.index_of(key(block));
        let space = space(&mut self.spaces, block.space, self.begun);
        let holder = self.places[place].holder(block.origin.birth);
        holder.save(space.epoch);
        holder.before_latest = space.epoch;
        holder.latest = self.iteration;
        holder.live.add(block.origin.birth, signed(block.size), 1);
        space.live += signed(block.size);
        let live = space.live();
        space.timeline.push(live);
        space.lifetimes.allocated(key(block), block, live);
        if live > space.peak {
            space.peak = live;
            // `lifetimes` has counted this event already.
            space.peak_event = space.lifetimes.events;
            space.peak_iteration = block.origin.birth;
            space.epoch += 1;
        }
    }

    /// Moves the latest block of a place from "shape unknown" to its shape.
    fn set_shape(&mut self, block: &Block, shape: u16) {
        let (from, to) = (key(block), Key { shape, ..key(block) });
        let (unshaped, shaped) = (self.index_of(from), self.index_of(to));
        let space = space(&mut self.spaces, block.space, self.begun);
        space.lifetimes.shaped(from, to, block);
        let epoch = space.epoch;
        let birth = block.origin.birth;
        let size = signed(block.size);
        let holder = self.places[unshaped].holder(birth);
        holder.save(epoch);
        let at_peak = holder.before_latest < epoch;
        // The block's iteration may have ended, or the next one may have begun.
        let iteration = holder.latest;
        holder.live.add(birth, -size, -1);
        if at_peak {
            holder.at_peak.add(birth, -size, -1);
        }
        let holder = self.places[shaped].holder(birth);
        holder.save(epoch);
        holder.live.add(birth, size, 1);
        if at_peak {
            holder.at_peak.add(birth, size, 1);
        }
        let total = &mut self.places[unshaped].total;
        total.calls = total.calls.saturating_sub(1);
        total.bytes = total.bytes.saturating_sub(block.size);
        let in_last = total.iteration == iteration && total.last_calls > 0;
        if in_last {
            total.last_calls -= 1;
            total.last_bytes = total.last_bytes.saturating_sub(block.size);
        }
        let shaped = Block { origin: Origin { shape, ..block.origin }, ..*block };
        self.count(&shaped, iteration);
    }

    /// The allocations of each place.
    pub(crate) fn totals(&self) -> impl Iterator<Item = (Key, &Total)> {
        self.places.iter().map(|place| (place.key, &place.total))
    }

    /// The holders of the memory of `space` at its peak. Their bytes add up to the peak.
    pub(crate) fn peak(&self, space: Space) -> Vec<Held> {
        let Some(epoch) = self.spaces.get(&space).map(|space| space.epoch) else {
            return Vec::new();
        };
        self.held(space, |holder| if holder.epoch == epoch { holder.at_peak } else { holder.live })
    }

    /// The call sites of each space that hold most live memory, the largest first, at most `most` of
    /// a space. Those of the host are left out if a device has some.
    pub(super) fn largest(&self, most: usize) -> Vec<LiveSite> {
        let mut live: FxHashMap<(Space, u32), Amount> = FxHashMap::default();
        for place in &self.places {
            let amount = live.entry((place.key.space, place.key.context)).or_default();
            for (_, of_age) in [&place.of_set_up, &place.of_iterations]
                .into_iter()
                .flat_map(|holder| holder.live.ages())
            {
                amount.add(of_age.bytes, of_age.count);
            }
        }
        let site = |((space, context), amount): ((Space, u32), Amount)| {
            let bytes = u64::try_from(amount.bytes).ok().filter(|&bytes| bytes > 0)?;
            Some(LiveSite { space, context, bytes, count: u64::try_from(amount.count).ok()? })
        };
        let mut sites: Vec<LiveSite> = live.into_iter().filter_map(site).collect();
        if sites.iter().any(|site| site.space.is_of_driver()) {
            sites.retain(|site| site.space.is_of_driver());
        }
        // The map gives equal sites in any order.
        sites.sort_by_key(|site| (Reverse(site.bytes), site.space, site.context));
        let mut of_space: FxHashMap<Space, usize> = FxHashMap::default();
        sites.retain(|site| {
            let count = of_space.entry(site.space).or_default();
            *count += 1;
            *count <= most
        });
        sites.truncate(MOST_LIVE_STACKS);
        sites
    }

    /// The holders of `space` with the amounts that `by_age` selects.
    fn held(&self, space: Space, by_age: impl Fn(&Holder) -> ByAge) -> Vec<Held> {
        let places = self.places.iter().filter(|place| place.key.space == space);
        places
            .flat_map(|place| [&place.of_set_up, &place.of_iterations].map(|of| (place.key, of)))
            .flat_map(|(key, holder)| by_age(holder).ages().map(|age| (key, age)))
            .filter_map(|(key, (birth, Amount { bytes, count }))| {
                let bytes = u64::try_from(bytes).ok().filter(|&bytes| bytes > 0)?;
                Some(Held { key, birth, bytes, count: u64::try_from(count).unwrap_or(0) })
            })
            .collect()
    }
}

fn key(block: &Block) -> Key {
    Key { space: block.space, context: block.origin.context, shape: block.origin.shape }
}
