//! The lanes of a memory space in a trace: iterations, spans and operations as slices of threads,
//! and each block as an asynchronous slice from its allocation to its free.

use std::collections::BTreeMap;
use std::ops::Range;

use memcheck_core::measurement::attribution::{Attribution, Lifetime, Lifetimes, Place};
use memcheck_core::space::Space;
use serde_json::{Value, json};

/// The largest blocks, which keep a trace small enough for a viewer.
const MOST_BLOCKS: usize = 5_000;
/// Deeper spans are not drawn.
const DEEPEST: usize = 64;
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
    let births: Vec<Birth<'_>> = lifetimes
        .blocks
        .iter()
        .filter_map(|block| Birth::of(attribution, lifetimes, block))
        .collect();
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
                "ts": events.start, "dur": events.end.saturating_sub(events.start),
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
        Some(Self {
            at: block.born,
            iteration: lifetimes.iterations.partition_point(|start| *start < block.born),
            place: attribution.places.get(block.place)?,
        })
    }
}

/// The set-up, each iteration, and the time after the last one.
fn iterations(lifetimes: &Lifetimes) -> Vec<Slice> {
    let starts = &lifetimes.iterations;
    let end = lifetimes.events.saturating_add(1);
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
    let runs =
        births.chunk_by(|one, other| of(one) == of(other) && one.iteration == other.iteration);
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
    if depth == DEEPEST {
        return;
    }
    for run in births.chunk_by(|one, other| part(one) == part(other)) {
        let Some(name) = part(&run[0]) else { continue };
        slices.push(Slice { name, events: covered(run) });
        nested(run, depth + 1, slices);
    }
}

fn covered(run: &[Birth<'_>]) -> Range<u64> {
    run[0].at..run[run.len() - 1].at.saturating_add(1)
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
            .or_insert_with(|| (name_of(place), arguments(attribution, place)));
        let mut args = args.clone();
        args["bytes"] = block.bytes.into();
        let last = block.died.unwrap_or(lifetimes.events.saturating_add(1));
        let end = last.max(block.born.saturating_add(1));
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

fn arguments(attribution: &Attribution, place: &Place) -> Value {
    let line = attribution.stack_of(place).user().and_then(|frame| frame.place());
    json!({"line": line, "scope": place.scope})
}

#[cfg(test)]
mod tests {
    use memcheck_core::measurement::attribution::Lifetimes;

    use super::*;

    fn place(operation: &str, scope: &str) -> Place {
        Place {
            space: Space::Host,
            stack: 0,
            scope: scope.to_owned(),
            operation: Some(operation.to_owned()),
            tensor: None,
            calls: 1,
            bytes: 8,
            last_calls: 1,
            last_bytes: 8,
            last: 1,
        }
    }

    fn attribution() -> Attribution {
        let places = vec![
            place("zeros", ""),
            place("matmul", "model.layer.0"),
            place("add", "model.layer.0"),
            place("add", "model.layer.1"),
        ];
        Attribution { places, ..Attribution::default() }
    }

    /// A weight, then two iterations of three operations.
    fn lifetimes() -> Lifetimes {
        let life = |place, born, died| Lifetime { place, born, died, bytes: 8 };
        let blocks = vec![
            life(0, 1, None),
            life(1, 2, Some(4)),
            life(2, 3, Some(6)),
            life(3, 5, Some(7)),
            life(1, 8, Some(10)),
            life(2, 9, Some(12)),
            life(3, 11, Some(13)),
        ];
        let (iterations, ended) = (vec![1, 7], Some(13));
        Lifetimes { events: 13, iterations, ended, blocks, ..Lifetimes::default() }
    }

    fn of_lane(name: &str) -> Vec<(String, u64, u64)> {
        let events = lanes(2, (0, Space::Host), &attribution(), &lifetimes());
        let thread = events.iter().find(|event| event["args"]["name"] == name).unwrap();
        let slices = events.iter().filter(|it| it["ph"] == "X" && it["tid"] == thread["tid"]);
        let slice = |it: &Value| {
            let number = |key: &str| it[key].as_u64().unwrap();
            (it["name"].as_str().unwrap().to_owned(), number("ts"), number("dur"))
        };
        slices.map(slice).collect()
    }

    fn slices(list: &[(&str, u64, u64)]) -> Vec<(String, u64, u64)> {
        list.iter().map(|&(name, at, length)| (name.to_owned(), at, length)).collect()
    }

    #[test]
    fn iterations_and_operations_are_slices() {
        assert_eq!(
            of_lane("host: iterations"),
            slices(&[
                ("set-up", 0, 1),
                ("iteration 1", 1, 6),
                ("iteration 2", 7, 6),
                ("after the iterations", 13, 1),
            ])
        );
        assert_eq!(
            of_lane("host: operations"),
            slices(&[
                ("zeros", 1, 1),
                ("matmul", 2, 1),
                ("add", 3, 3),
                ("matmul", 8, 1),
                ("add", 9, 3),
            ])
        );
    }

    #[test]
    fn spans_are_nested_slices_within_an_iteration() {
        let one = |at: u64| [("model", at, 4), ("layer", at, 4), ("0", at, 2), ("1", at + 3, 1)];
        assert_eq!(of_lane("host: spans"), slices(&[one(2), one(8)].concat()));
    }

    #[test]
    fn each_block_begins_and_ends() {
        let events = lanes(2, (0, Space::Host), &attribution(), &lifetimes());
        let of = |phase: &str| -> Vec<&Value> {
            events.iter().filter(|event| event["ph"] == phase).collect()
        };
        let (begins, ends) = (of("b"), of("e"));
        assert_eq!((begins.len(), ends.len()), (7, 7));
        for (begin, end) in begins.iter().zip(&ends) {
            assert_eq!((&begin["id2"], &begin["name"]), (&end["id2"], &end["name"]));
            assert!(begin["ts"].as_u64() < end["ts"].as_u64(), "{begin} {end}");
        }
        // A block that is never freed lasts until the end.
        assert_eq!((&begins[0]["ts"], &ends[0]["ts"]), (&1.into(), &14.into()));
        assert_eq!(begins[1]["args"]["bytes"], 8);
    }

    #[test]
    fn a_hostile_record_gives_a_trace() {
        let scope = vec!["a"; 10_000].join(".");
        let attribution = Attribution { places: vec![place("x", &scope)], ..attribution() };
        let life = |place, born| Lifetime { place, born, died: Some(0), bytes: 1 };
        let blocks = vec![life(0, u64::MAX), life(9, 3), life(0, 0)];
        let iterations = vec![9, 1];
        let lifetimes = Lifetimes { events: u64::MAX, iterations, blocks, ..Lifetimes::default() };
        let events = lanes(1, (0, Space::Host), &attribution, &lifetimes);
        let drawn = events.iter().filter(|event| event["ph"] == "X" && event["name"] == "a");
        // Two blocks, of different iterations.
        assert_eq!(drawn.count(), 2 * DEEPEST);
    }
}
