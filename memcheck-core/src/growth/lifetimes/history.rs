//! The births, deaths and levels of all kinds of blocks in one memory space, in bounded memory: a
//! full series merges neighbors, so that an entry stands for an *epoch* of 2, 4, 8 … iterations.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use memcheck_limits::living::Living;

use super::kind::{FEW_BIRTHS, Kind, add_from};

/// The most entries of a series. It must be even, because entries are merged in pairs.
pub(super) const MOST_ENTRIES: usize = 1_024;

/// The most kinds that have series of their own. Further kinds share one [`Kind`].
pub(super) const MOST_KINDS: usize = 4_096;

/// The births, deaths and levels of one memory space after some iterations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    warmup: u32,
    iterations: u32,
    /// Iterations per entry of a series, a power of two.
    epoch: u32,
    /// Microseconds at the end of each entry; empty if the run has no clock.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    clock: Vec<u64>,
    /// Sorted by call site and size.
    pub(super) kinds: Vec<Kind>,
    /// The sum of the kinds that have no series of their own, because there are too many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) shared: Option<Kind>,
}

impl History {
    /// An empty history, for a run with `warmup` iterations before the measured ones.
    pub fn new(warmup: u32) -> Self {
        Self { warmup, iterations: 0, epoch: 1, clock: Vec::new(), kinds: Vec::new(), shared: None }
    }

    /// Iterations that have ended, warm-up included.
    pub fn iterations(&self) -> u32 {
        self.iterations
    }

    /// Iterations before the measured ones.
    pub fn warmup(&self) -> u32 {
        self.warmup
    }

    /// Iterations per entry, of [`History::live_bytes`] and of births: 1 up to 1,024 iterations.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Sets the time since the first iteration began, at the end of the one that is added next. With it,
    /// memory that lives for a time is judged by this time, whatever number of iterations it lasts. Every
    /// iteration must have its time, or none.
    pub fn set_time(&mut self, time: Duration) {
        let time = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.clock.resize(self.entry() + 1, time);
        self.clock.last_mut().into_iter().for_each(|last| *last = time);
    }

    /// The number of entries whose ends are at most this many microseconds before that of the last one.
    pub(super) fn entries_within(&self, time: u64) -> usize {
        let is_within = |&entry: &usize| time_since(&self.clock, entry) <= time;
        (0..self.clock.len()).rev().take_while(is_within).count()
    }

    /// The time of the whole run, in microseconds; 0 if it has no clock.
    pub(super) fn time(&self) -> u64 {
        time_since(&self.clock, 0)
    }

    /// Adds the census of all live blocks, set-up included, at the end of the next iteration. Items
    /// of one kind and birth are added up; a birth after this iteration counts as in it.
    pub fn add(&mut self, census: impl IntoIterator<Item = Living>) {
        let census: Vec<Living> = census.into_iter().filter(|living| living.count > 0).collect();
        for living in &census {
            self.ensure_kind(living);
        }
        let now = self.entry();
        let mut followed = vec![Census::default(); self.kinds.len() + 1];
        for living in &census {
            let place = self.position(living.site, living.size).unwrap_or(self.kinds.len());
            followed[place].count(living, self.epoch, now);
        }
        let time_since = |entry| time_since(&self.clock, entry);
        for (kind, census) in self.kinds.iter_mut().chain(&mut self.shared).zip(&followed) {
            kind.replace((&census.left, &census.bytes), census.set_up, now, &time_since);
        }
        self.end_iteration();
    }

    /// Adds the next iteration as changes: `came` have become live, `gone` have died. The result is
    /// that of [`History::add`], but the cost does not depend on the number of live blocks.
    pub fn advance(
        &mut self,
        came: impl IntoIterator<Item = Living>,
        gone: impl IntoIterator<Item = Living>,
    ) {
        let now = self.entry();
        for living in came.into_iter().filter(|living| living.count > 0) {
            self.ensure_kind(&living);
            let entry = living.born.map(|born| entry_of(born, self.epoch, now));
            let kind = self.kind_of(&living);
            kind.born(entry, living.count, living.size, now);
        }
        for living in gone.into_iter().filter(|living| living.count > 0) {
            self.ensure_kind(&living);
            let entry = living.born.map(|born| entry_of(born, self.epoch, now));
            let time = entry.map_or(0, |entry| time_since(&self.clock, entry));
            let kind = self.kind_of(&living);
            kind.died(entry, living.count, living.size, now);
            kind.lived(time, now);
        }
        self.end_iteration();
    }

    /// Takes the blocks of a call site from the history of another space, if they are one buffer: at
    /// most one of them was live at any time. Both histories must have the same iterations.
    pub fn take_buffer(&mut self, site: u32, other: &mut Self) {
        let is_of_site = |kind: &Kind| kind.site == Some(site);
        // PERF: most call sites have no small blocks.
        let first = other.kinds.partition_point(|kind| kind.site < Some(site));
        if !other.kinds.get(first).is_some_and(is_of_site) {
            return;
        }
        let mut live = vec![0u64; other.entries() + 1];
        let own = self.kinds.iter().filter(|kind| is_of_site(kind));
        for kind in own.chain(other.kinds.iter().filter(|kind| is_of_site(kind))) {
            add_from(&kind.blocks.live, kind.from, 1, 0, &mut live);
        }
        if self.shared.is_some() || live.iter().any(|&live| live > 1) {
            return;
        }
        self.kinds.extend(other.kinds.extract_if(.., |kind| is_of_site(kind)));
        self.kinds.sort_by_key(Kind::key);
    }

    /// True if no measured block is live and no kind's count has changed since the warm-up. Only a
    /// leak with rare events can still show.
    pub fn is_flat(&self) -> bool {
        let (start, end) = (self.start(), self.entries());
        self.kinds.iter().chain(&self.shared).all(|kind| kind.is_flat(start, end))
    }

    /// Live bytes at the end of each measured iteration or, beyond 1,024, of each epoch.
    pub fn live_bytes(&self) -> Vec<u64> {
        let mut series = vec![0; self.entries().saturating_sub(self.start())];
        for kind in self.kinds.iter().chain(&self.shared) {
            kind.add_live(&mut series, self.start());
        }
        series
    }

    /// Live bytes of the blocks that iterations have allocated.
    pub fn kept_bytes(&self) -> u64 {
        self.kinds.iter().chain(&self.shared).map(Kind::kept_bytes).sum()
    }

    /// The call sites that have series of their own, without repetition.
    pub fn sites(&self) -> Vec<u32> {
        let mut sites: Vec<u32> = self.kinds.iter().filter_map(|kind| kind.site).collect();
        sites.dedup();
        sites
    }

    /// Gives call site `site` the number `number(site)`. Two sites must not get the same number.
    pub fn renumber(&mut self, number: impl Fn(u32) -> u32) {
        self.kinds.iter_mut().for_each(|kind| kind.site = kind.site.map(&number));
        self.kinds.sort_by_key(Kind::key);
    }

    /// Memory that the history itself takes, in bytes.
    pub fn footprint(&self) -> usize {
        let kinds: usize = self.kinds.iter().chain(&self.shared).map(Kind::footprint).sum();
        size_of::<Self>() + kinds
    }

    /// Number of entries whose epoch has ended, including those of the warm-up.
    pub(super) fn entries(&self) -> usize {
        (self.iterations / self.epoch) as usize
    }

    /// The first entry without warm-up iterations.
    pub fn start(&self) -> usize {
        self.warmup.div_ceil(self.epoch) as usize
    }

    fn entry(&self) -> usize {
        self.entries()
    }

    fn position(&self, site: Option<u32>, size: u64) -> Option<usize> {
        self.kinds.binary_search_by_key(&(site, size), Kind::key).ok()
    }

    /// The kind that the blocks belong to. [`History::ensure_kind`] must have been called for them.
    fn kind_of(&mut self, living: &Living) -> &mut Kind {
        match self.position(living.site, living.size) {
            Some(place) => &mut self.kinds[place],
            None => self.shared.get_or_insert_with(|| Kind::shared(0)),
        }
    }

    fn ensure_kind(&mut self, living: &Living) {
        let key = (living.site, living.size);
        let Err(place) = self.kinds.binary_search_by_key(&key, Kind::key) else { return };
        // The shared kind forgets which kinds it has, but must count their deaths: none leaves it.
        if self.shared.is_some() {
            return;
        }
        if self.kinds.len() < MOST_KINDS {
            self.kinds.insert(place, Kind::new(living.site, living.size, self.entry()));
            return;
        }
        let mut shared = Kind::shared(self.entry());
        self.kinds.retain(|kind| {
            let few = kind.birth_entries() < FEW_BIRTHS;
            if few {
                shared.fold(kind);
            }
            !few
        });
        self.shared = Some(shared);
    }

    fn end_iteration(&mut self) {
        let now = self.entry();
        for kind in self.kinds.iter_mut().chain(&mut self.shared) {
            kind.end(now);
        }
        self.iterations = self.iterations.saturating_add(1);
        let is_full = self.iterations as usize == MOST_ENTRIES * self.epoch as usize;
        if is_full && let Some(epoch) = self.epoch.checked_mul(2) {
            self.epoch = epoch;
            self.clock = self.clock.chunks(2).map(|pair| pair[pair.len() - 1]).collect();
            for kind in self.kinds.iter_mut().chain(&mut self.shared) {
                kind.merge();
            }
        }
    }
}

/// Microseconds from the end of an entry to the end of the last one.
fn time_since(clock: &[u64], entry: usize) -> u64 {
    clock.last().zip(clock.get(entry)).map_or(0, |(last, end)| last.saturating_sub(*end))
}

fn entry_of(born: u32, epoch: u32, now: usize) -> usize {
    ((born / epoch) as usize).min(now)
}

#[derive(Debug, Default, Clone)]
struct Census {
    left: Vec<u64>,
    bytes: Vec<u64>,
    set_up: (u64, u64),
}

impl Census {
    fn count(&mut self, living: &Living, epoch: u32, now: usize) {
        let bytes = living.count.saturating_mul(living.size);
        let Some(born) = living.born else {
            self.set_up.0 = self.set_up.0.saturating_add(living.count);
            self.set_up.1 = self.set_up.1.saturating_add(bytes);
            return;
        };
        let entry = entry_of(born, epoch, now);
        if self.left.len() <= entry {
            self.left.resize(entry + 1, 0);
            self.bytes.resize(entry + 1, 0);
        }
        self.left[entry] = self.left[entry].saturating_add(living.count);
        self.bytes[entry] = self.bytes[entry].saturating_add(bytes);
    }
}
