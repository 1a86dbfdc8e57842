//! The events of one space of one test, in the order in which they happened.

use std::collections::{BTreeMap, HashMap};

use memcheck_core::measurement::attribution::{Attribution, Lifetimes, Place};
use memcheck_core::measurement::record::Record;
use memcheck_core::measurement::stack::Frame;
use memcheck_core::space::Space;

use crate::discovery::task::Task;

pub(super) const SNAPSHOT: &str = "snapshot";
/// Addresses begin here, and at a multiple of it for each further device.
const FIRST: u64 = 1 << 44;
/// The alignment of addresses, as in PyTorch's allocator.
const ALIGNMENT: u64 = 512;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Allocated,
    Freed,
    /// With the bytes that the device had left.
    Refused {
        free: u64,
    },
    Snapshot,
}

#[derive(Debug, Clone)]
pub(super) struct TraceEvent {
    pub(super) action: Action,
    pub(super) address: u64,
    pub(super) size: u64,
    /// An index of [`StackList`].
    pub(super) stack: usize,
    pub(super) about: String,
}

/// The distinct call stacks of all devices.
#[derive(Debug, Default)]
pub(super) struct StackList {
    known: HashMap<Vec<Frame>, usize>,
    all: Vec<Vec<Frame>>,
}

impl StackList {
    fn number(&mut self, frames: Vec<Frame>) -> usize {
        *self.known.entry(frames).or_insert_with_key(|frames| {
            self.all.push(frames.clone());
            self.all.len() - 1
        })
    }

    pub(super) fn frames(&self, number: usize) -> &[Frame] {
        &self.all[number]
    }
}

fn note(text: &str) -> Frame {
    Frame { function: text.to_owned(), file: None, line: None }
}

#[derive(Debug)]
pub(super) struct DeviceTrace {
    pub(super) name: String,
    pub(super) events: Vec<TraceEvent>,
}

impl DeviceTrace {
    /// `None` if the space has no blocks.
    pub(super) fn new(
        number: u64,
        task: &Task,
        record: &Record,
        space: Space,
        stacks: &mut StackList,
    ) -> Option<Self> {
        let attribution = record.attribution.as_ref()?;
        let lifetimes = attribution.peaks.get(&space)?.lifetimes.as_ref()?;
        let name = format!("{} {} on {}: {space}", task.binary.id, task.name(), task.leg.name());
        let mut followed = Followed {
            attribution,
            lifetimes,
            stacks,
            events: Vec::new(),
            next: FIRST * (number + 1),
        };
        followed.follow(record, space);
        let mut events = followed.events;
        let test = Frame {
            function: name.clone(),
            file: Some(task.subject.file().display().to_string()),
            line: Some(task.subject.line()),
        };
        let stack = stacks.number(vec![test]);
        let about = String::new();
        events.push(TraceEvent { action: Action::Snapshot, address: 0, size: 0, stack, about });
        Some(Self { name, events })
    }

    /// The allocations of the blocks that are live at the end.
    pub(super) fn live(&self) -> impl Iterator<Item = &TraceEvent> {
        let mut live = BTreeMap::new();
        for event in &self.events {
            match event.action {
                Action::Allocated => drop(live.insert(event.address, event)),
                Action::Freed => drop(live.remove(&event.address)),
                Action::Refused { .. } | Action::Snapshot => {}
            }
        }
        live.into_values()
    }
}

struct Followed<'a> {
    attribution: &'a Attribution,
    lifetimes: &'a Lifetimes,
    stacks: &'a mut StackList,
    events: Vec<TraceEvent>,
    next: u64,
}

/// In the order of events that share a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CounterChange {
    Born(usize),
    Died(usize),
    /// The smaller blocks that the record does not store one by one.
    Rest(usize),
}

impl Followed<'_> {
    fn follow(&mut self, record: &Record, space: Space) {
        let Lifetimes { blocks, stretch, rest, .. } = self.lifetimes;
        let mut changes: Vec<(u64, CounterChange)> = Vec::with_capacity(2 * blocks.len());
        for (number, block) in blocks.iter().enumerate() {
            changes.push((block.born, CounterChange::Born(number)));
            changes.extend(block.died.map(|died| (died, CounterChange::Died(number))));
        }
        let moved = |&number: &usize| number == 0 || rest[number] != rest[number - 1];
        let moves = (0..rest.len()).filter(moved);
        changes.extend(moves.map(|number| (number as u64 * stretch, CounterChange::Rest(number))));
        changes.sort_unstable();
        let mut births: Vec<Option<TraceEvent>> = vec![None; blocks.len()];
        let mut smaller: Option<TraceEvent> = None;
        for (time, change) in changes {
            match change {
                CounterChange::Born(number) => {
                    let block = blocks[number];
                    let born = self.allocated(block.place, block.bytes, time);
                    births[number] = Some(born.clone());
                    self.events.push(born);
                }
                CounterChange::Died(number) => {
                    if let Some(born) = births[number].take() {
                        self.free(born);
                    }
                }
                CounterChange::Rest(number) => {
                    if let Some(earlier) = smaller.take() {
                        self.free(earlier);
                    }
                    if rest[number] > 0 {
                        let block = self.smaller(rest[number]);
                        self.events.push(block.clone());
                        smaller = Some(block);
                    }
                }
            }
        }
        self.refuse(record, space);
    }

    fn address(&mut self, size: u64) -> u64 {
        let address = self.next;
        self.next += size.max(1).next_multiple_of(ALIGNMENT);
        address
    }

    fn allocated(&mut self, place: usize, size: u64, time: u64) -> TraceEvent {
        let place = self.attribution.places.get(place);
        let mut frames = place.map_or_else(Vec::new, |place| {
            self.attribution.stack_of(place).frames.iter().map(shortened).collect()
        });
        if frames.is_empty() {
            frames.push(note("(the record has no call stack of this block)"));
        }
        let stack = self.stacks.number(frames);
        // The first iteration is the number of iterations that began before the event.
        let iteration = self.lifetimes.iterations.partition_point(|&before| before < time);
        let when = match iteration {
            0 => "set-up".to_owned(),
            _ if self.lifetimes.ended.is_some_and(|ended| time > ended) => {
                "after the iterations".to_owned()
            }
            _ => format!("iteration {iteration}"),
        };
        let about = place.map_or_else(|| when.clone(), |place| describe(place, &when));
        let address = self.address(size);
        TraceEvent { action: Action::Allocated, address, size, stack, about }
    }

    fn smaller(&mut self, size: u64) -> TraceEvent {
        let about = format!("{} smaller blocks", self.lifetimes.left_out);
        let stack = self.stacks.number(vec![note("(smaller blocks of many call stacks)")]);
        let address = self.address(size);
        TraceEvent { action: Action::Allocated, address, size, stack, about }
    }

    /// A record has the call stack of an allocation, and not that of a free.
    fn free(&mut self, born: TraceEvent) {
        let marker = note("(freed; the call stack is that of the allocation)");
        let frames = [marker].into_iter().chain(self.stacks.frames(born.stack).iter().cloned());
        let frames = frames.collect();
        let stack = self.stacks.number(frames);
        self.events.push(TraceEvent { action: Action::Freed, stack, ..born });
    }

    /// The record has the live bytes at a refused allocation and no time, so that its place is known
    /// only if it was the last of its space.
    fn refuse(&mut self, record: &Record, space: Space) {
        let Some(measured) = record.spaces.get(&space).and_then(|measured| measured.refused) else {
            return;
        };
        let Some(refused) = self.attribution.refused.get(&space).filter(|_| measured.last) else {
            return;
        };
        let frames = self.attribution.stacks.get(refused.stack);
        let frames =
            frames.map_or_else(Vec::new, |stack| stack.frames.iter().map(shortened).collect());
        let stack = self.stacks.number(frames);
        let fits = record.limits.fits.value.as_ref().map(|fits| fits.bytes());
        let capacity = fits.or_else(|| record.capacities.get(&space).copied()).unwrap_or(0);
        let action = Action::Refused { free: capacity.saturating_sub(measured.live) };
        let about = refused.scope.clone();
        let last = self.events.iter().rposition(|event| event.action == Action::Allocated);
        let event = TraceEvent { action, address: 0, size: refused.requested, stack, about };
        self.events.insert(last.map_or(0, |last| last + 1), event);
    }
}

fn shortened(frame: &Frame) -> Frame {
    let file = frame.short_file().map(str::to_owned);
    Frame { function: frame.full_path(), file, line: frame.line }
}

/// "matmul [512,1024] f32 in model.head, iteration 3".
fn describe(place: &Place, when: &str) -> String {
    let mut parts: Vec<String> = place.operation.iter().cloned().collect();
    parts.extend(place.tensor.as_ref().map(ToString::to_string));
    if !place.scope.is_empty() {
        parts.push(format!("in {}", place.scope));
    }
    match parts.is_empty() {
        true => when.to_owned(),
        false => format!("{}, {when}", parts.join(" ")),
    }
}
