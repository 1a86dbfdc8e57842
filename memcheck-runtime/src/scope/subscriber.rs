//! The subscriber that memcheck installs in a program that has none.
//!
//! It stores no data about a span except the span's id, which contains the place in the source, the
//! scope in which the span was created, and the thread. Spans therefore need no memory, and
//! entering one takes no lock. Events are disabled, because evaluating their values would allocate
//! as part of the workload.

use std::cell::Cell;
use std::sync::atomic::{
    AtomicPtr, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{LazyLock, PoisonError, RwLock};

use memcheck_core::quiet;
use memcheck_ledger::intern::mix;
use rustc_hash::FxHashMap;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};
use tracing_core::span::Current;

use super::{MAX_DEPTH, SpanMark, current, number};

/// Places in the source at which spans are created, starting at 1. Places from [`MARKED`] on also
/// have a mark, such as the index of a layer. If all places are used, further spans do not change
/// the scope.
static PLACES: [AtomicPtr<Metadata<'static>>; MAX_PLACES] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; MAX_PLACES];
/// The mark of each place, by its number.
static MARKS: [AtomicU32; MAX_PLACES] = [const { AtomicU32::new(0) }; MAX_PLACES];
/// The numbers of places with a mark.
static MARKED_PLACES: LazyLock<RwLock<FxHashMap<(usize, SpanMark), usize>>> =
    LazyLock::new(RwLock::default);
const MARKED: usize = MAX_PLACES / 2;
const MAX_PLACES: usize = 1 << PLACE_BITS;
const PLACE_BITS: u32 = 12;
const SCOPE_BITS: u32 = 27;
const THREAD_BITS: u32 = 24;
/// Set in every id, because an id must not be zero.
const NON_ZERO: u64 = 1 << 63;

static THREADS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static THREAD: u64 = THREADS.fetch_add(1, Relaxed) & ((1 << THREAD_BITS) - 1);
    /// Scopes that the thread has recently entered: outer scope and place; number.
    static RECENT: [Cell<((u32, u64), u32)>; 256] =
        const { [const { Cell::new(((0, 0), 0)) }; 256] };
    /// The spans that the thread is in, by depth.
    static INSIDE: [Cell<u64>; MAX_DEPTH] = const { [const { Cell::new(0) }; MAX_DEPTH] };
}

/// The number of a place; 0 if there are too many.
fn place(metadata: &'static Metadata<'static>) -> u64 {
    let this = std::ptr::from_ref(metadata).cast_mut();
    let null = std::ptr::null_mut();
    let matches_place = |place: &AtomicPtr<_>| match place.load(Acquire) {
        known if known == null => match place.compare_exchange(null, this, Release, Acquire) {
            Ok(_) => true,
            Err(other) => other == this,
        },
        known => known == this,
    };
    let found = PLACES[..MARKED].iter().skip(1).position(matches_place);
    found.map_or(0, |position| position as u64 + 1)
}

/// The number of a place with a mark; 0 if there are too many.
fn marked_place(metadata: &'static Metadata<'static>, mark: SpanMark) -> u64 {
    let this = std::ptr::from_ref(metadata).cast_mut();
    let key = (this.addr(), mark);
    let known = MARKED_PLACES.read().unwrap_or_else(PoisonError::into_inner).get(&key).copied();
    if let Some(known) = known {
        return known as u64;
    }
    let mut places = MARKED_PLACES.write().unwrap_or_else(PoisonError::into_inner);
    let next = MARKED + places.len();
    let place = *places.entry(key).or_insert(next);
    let (Some(mark_of), Some(metadata_of)) = (MARKS.get(place), PLACES.get(place)) else {
        places.remove(&key);
        return 0;
    };
    // The place must be stored last, so that a thread that finds the place also finds its mark.
    mark_of.store(mark.number(), Relaxed);
    metadata_of.store(this, Release);
    place as u64
}

/// The origin of a span, as its id contains it.
#[derive(Debug, Clone, Copy)]
struct PackedOrigin {
    place: u64,
    scope: u32,
    thread: u64,
}

impl PackedOrigin {
    fn id(self) -> Id {
        let scope = u64::from(self.scope) & ((1 << SCOPE_BITS) - 1);
        let place = self.place << (SCOPE_BITS + THREAD_BITS);
        Id::from_u64(NON_ZERO | place | scope << THREAD_BITS | self.thread)
    }

    fn from_id(id: u64) -> Self {
        Self {
            place: (id & !NON_ZERO) >> (SCOPE_BITS + THREAD_BITS),
            scope: (id >> THREAD_BITS) as u32 & ((1 << SCOPE_BITS) - 1),
            thread: id & ((1 << THREAD_BITS) - 1),
        }
    }

    fn metadata(self) -> Option<&'static Metadata<'static>> {
        let metadata = PLACES.get(usize::try_from(self.place).ok()?)?.load(Acquire);
        // SAFETY: the pointer is null or was made from a `'static` reference.
        unsafe { metadata.as_ref() }
    }

    /// The number of the span's scope inside another.
    fn inside(self, outer: u32) -> u32 {
        let key = (outer, self.place);
        let hash = mix(outer.into(), self.place) >> 32;
        // PERF: takes no lock for a scope that this thread has recently entered.
        RECENT.with(|recent| {
            let known = &recent[hash as usize % recent.len()];
            if known.get().0 == key {
                return known.get().1;
            }
            let _quiet = quiet::enter();
            let mark = MARKS.get(self.place as usize).map_or(0, |mark| mark.load(Relaxed));
            let mark = SpanMark::from_number(mark);
            let number =
                self.metadata().map_or(outer, |metadata| number(outer, metadata.name(), mark));
            known.set((key, number));
            number
        })
    }
}

/// A subscriber that tracks scopes only.
#[derive(Debug)]
pub(super) struct Spans;

impl Subscriber for Spans {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if metadata.is_span() { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span()
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let thread = THREAD.try_with(|thread| *thread).unwrap_or(0);
        let place = match SpanMark::of(span) {
            SpanMark::None => place(span.metadata()),
            mark => {
                let _quiet = quiet::enter();
                marked_place(span.metadata(), mark)
            }
        };
        PackedOrigin { place, scope: current(), thread }.id()
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, id: &Id) {
        let origin = PackedOrigin::from_id(id.into_u64());
        let elsewhere = || {
            let here = THREAD.try_with(|thread| *thread).unwrap_or(origin.thread);
            (origin.thread != here).then_some(origin.scope)
        };
        let depth = super::enter(elsewhere, |outer| origin.inside(outer));
        INSIDE.with(|inside| {
            if let Some(inside) = inside.get(depth) {
                inside.set(id.into_u64());
            }
        });
    }

    fn exit(&self, _: &Id) {
        super::exit();
    }

    fn current_span(&self) -> Current {
        let last = super::depth().checked_sub(1);
        let inside = last.and_then(|last| INSIDE.with(|all| all.get(last).map(Cell::get)));
        let metadata = inside.and_then(|id| PackedOrigin::from_id(id).metadata());
        match (inside, metadata) {
            (Some(id), Some(metadata)) => Current::new(Id::from_u64(id), metadata),
            _ => Current::none(),
        }
    }
}
