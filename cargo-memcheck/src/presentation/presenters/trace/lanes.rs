//! The lanes of a memory space in a trace: iterations, spans and operations as slices of threads,
//! and each block as an asynchronous slice from its allocation to its free.

use std::collections::BTreeMap;
use std::ops::Range;

use memcheck_core::judgement::blame;
use memcheck_core::measurement::attribution::{Attribution, Lifetime, Lifetimes, Place};
use memcheck_core::space::Space;
use serde_json::{Value, json};

/// The largest blocks, which keep a trace small enough for a viewer.
const MOST_BLOCKS: usize = 5_000;
const LANES: usize = 3;

/// A slice of a thread. Slices of a thread must be nested, or must not overlap.
#[derive(Debug, PartialEq, Eq)]
struct Slice {
    name: String,
    events: Range<u64>,
}

/// The lanes of `space`, which is the number `index` of its process.
pub(super) fn lanes(
    process: usize,
    (index, space): (usize, Space),
    attribution: &Attribution,
    lifetimes: &Lifetimes,
) -> Vec<Value> {
    let births: Vec<Birth<'_>> =
        lifetimes.blocks.iter().filter_map(|block| Birth::of(attribution, lifetimes, block)).collect();
    let threads = [
        ("iterations", iterations(lifetimes)),
        ("spans", spans(&births)),
        ("operations", operations(&births)),
    ];
    let mut events = Vec::new();
    for (number, (name, slices)) in threads.into_iter().enumerate() {
        let thread = 1 + index * LANES + number;
        events.extend(thread_name(process, thread, &format!("{space}: {name}")));
        events.extend(slices.into_iter().map(|Slice { name, events }| {
            json!({
                "ph": "X", "name": name, "cat": "run", "pid": process, "tid": thread,
                "ts": events.start, "dur": events.end - events.start,
            })
        }));
    }
    events.extend(blocks(process, space, attribution, lifetimes));
    events
}

/// The name of a thread, and its place among the threads of its process.
pub(super) fn thread_name(process: usize, thread: usize, name: &str) -> [Value; 2] {
    [
        json!({
            "ph": "M", "name": "thread_name", "pid": process, "tid": thread, "args": {"name": name},
        }),
        json!({
            "ph": "M", "name": "thread_sort_index", "pid": process, "tid": thread,
            "args": {"sort_index": thread},
        }),
    ]
}

/// An allocation, with the operation and the spans that made it.
struct Birth<'a> {
    at: u64,
    iteration: usize,
    place: &'a Place,
}

impl<'a> Birth<'a> {
    fn of(attribution: &'a Attribution, lifetimes: &Lifetimes, block: &Lifetime) -> Option<Self> {
        let before = |start: &u64| *start < block.born;
        Some(Self {
            at: block.born,
            iteration: lifetimes.iterations.iter().take_while(|start| before(start)).count(),
            place: attribution.places.get(block.place)?,
        })
    }
}

/// The set-up, each iteration, and the time after the last one.
fn iterations(lifetimes: &Lifetimes) -> Vec<Slice> {
    let starts = &lifetimes.iterations;
    let end = lifetimes.events + 1;
    let stop = lifetimes.ended.unwrap_or(end);
    let named = |number: usize| match number {
        0 => "set-up".to_owned(),
        number => format!("iteration {number}"),
    };
    let bounds: Vec<u64> = [0].into_iter().chain(starts.iter().copied()).chain([stop]).collect();
    let mut slices: Vec<Slice> = bounds
        .windows(2)
        .enumerate()
        .map(|(number, pair)| Slice { name: named(number), events: pair[0]..pair[1].max(pair[0]) })
        .collect();
    if stop < end {
        slices.push(Slice { name: "after the iterations".to_owned(), events: stop..end });
    }
    slices.retain(|slice| !slice.events.is_empty());
    slices
}

/// Neighboring allocations of one operation are one slice.
fn operations(births: &[Birth<'_>]) -> Vec<Slice> {
    let of = |birth: &Birth<'_>| birth.place.operation.clone();
    let runs = births.chunk_by(|one, other| of(one) == of(other) && one.iteration == other.iteration);
    runs.filter_map(|run| Some(Slice { name: of(&run[0])?, events: covered(run) })).collect()
}

/// Neighboring allocations in one span are one slice, in which those of its inner spans are nested.
fn spans(births: &[Birth<'_>]) -> Vec<Slice> {
    let mut slices = Vec::new();
    for run in births.chunk_by(|one, other| one.iteration == other.iteration) {
        nested(run, 0, &mut slices);
    }
    slices
}

fn nested(births: &[Birth<'_>], depth: usize, slices: &mut Vec<Slice>) {
    let part = |birth: &Birth<'_>| {
        let scope = &birth.place.scope;
        scope.split('.').filter(|part| !part.is_empty()).nth(depth).map(str::to_owned)
    };
    for run in births.chunk_by(|one, other| part(one) == part(other)) {
        let Some(name) = part(&run[0]) else { continue };
        slices.push(Slice { name, events: covered(run) });
        nested(run, depth + 1, slices);
    }
}

fn covered(run: &[Birth<'_>]) -> Range<u64> {
    run[0].at..run[run.len() - 1].at + 1
}

/// Viewers draw asynchronous slices of one name below one another.
fn blocks(
    process: usize,
    space: Space,
    attribution: &Attribution,
    lifetimes: &Lifetimes,
) -> Vec<Value> {
    let mut largest: Vec<(usize, &Lifetime)> = lifetimes.blocks.iter().enumerate().collect();
    largest.sort_by_key(|(number, block)| (std::cmp::Reverse(block.bytes), *number));
    largest.truncate(MOST_BLOCKS);
    largest.sort_by_key(|(number, _)| *number);
    let mut described: BTreeMap<usize, (String, Value)> = BTreeMap::new();
    let mut events = Vec::new();
    for (number, block) in largest {
        let Some(place) = attribution.places.get(block.place) else { continue };
        let (name, args) = described
            .entry(block.place)
            .or_insert_with(|| (name_of(place), arguments(attribution, block.place)));
        let mut args = args.clone();
        args["bytes"] = block.bytes.into();
        let end = block.died.unwrap_or(lifetimes.events + 1).max(block.born + 1);
        let id = format!("{space} {number}");
        let event = |phase: &str, at: u64| {
            json!({
                "ph": phase, "cat": "blocks", "name": name, "id2": {"local": id}, "pid": process,
                "tid": 0, "ts": at,
            })
        };
        let mut begin = event("b", block.born);
        begin["args"] = args;
        events.extend([begin, event("e", end)]);
    }
    events
}

fn name_of(place: &Place) -> String {
    let operation = place.operation.as_deref().unwrap_or("block");
    match &place.tensor {
        Some(tensor) => format!("{operation} {tensor}"),
        None => operation.to_owned(),
    }
}

fn arguments(attribution: &Attribution, place: usize) -> Value {
    let site = blame::of_place(attribution, place);
    json!({"line": site.place(), "scope": site.scope})
}
