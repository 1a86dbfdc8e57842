//! An attribution as a test process measures it: call stacks are addresses, and each is a call
//! site. [`Unresolved::resolve`] names them and joins sites with identical names, because inlining
//! and generic functions compile one line to several addresses. The caller looks up the names.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, hash_map};

use serde::{Deserialize, Serialize};

use super::{Attribution, Holder, HolderKind, Place, Survivors, Tensor};
use crate::measurement::stack::{Frame, FrameMark, Owner, Sources, Stack};
use crate::space::Space;

const NO_LINES: &str = "the binary has no line tables: set `debug = \"line-tables-only\"` in its \
                        profile to see files and lines";

/// An attribution whose call stacks have no names yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Unresolved {
    /// The folders of source files in the executable's line tables.
    pub sources: Sources,
    /// Call stacks, innermost first: addresses relative to the base that the loader chose.
    pub calls: Vec<Vec<u64>>,
    /// All but the names: `stacks` is empty, a site's `stack` is an index of [`Self::calls`], and
    /// kinds are derived from age. Groups without survivors are included, because their live blocks
    /// count if a group with the same name has some.
    pub attribution: Attribution,
}

impl Unresolved {
    /// Adds names. `lookup` must return the frames of a call, inlined calls included.
    pub fn resolve(self, lookup: impl FnMut(u64) -> Vec<Frame>) -> Attribution {
        let Self { sources, calls, attribution } = self;
        let (stacks, stack_of) = stacks(&calls, &sources, lookup);
        let (places, place_of) = places(attribution.places, &stacks, &stack_of);
        let holders = |holders: Vec<Holder>| join_holders(holders, &place_of, &places, &stacks);
        let mut peaks = attribution.peaks;
        for peak in peaks.values_mut() {
            peak.holders = holders(std::mem::take(&mut peak.holders));
            for life in peak.lifetimes.iter_mut().flat_map(|lifetimes| &mut lifetimes.blocks) {
                life.place = place_of[life.place];
            }
        }
        let mut refused = attribution.refused;
        for refused in refused.values_mut() {
            refused.stack = stack_of[refused.stack];
            refused.holders = holders(std::mem::take(&mut refused.holders));
        }
        let mut survivors = attribution.survivors;
        survivors.sort_by(|a, b| {
            let calls = calls[a.stack].cmp(&calls[b.stack]);
            a.space.cmp(&b.space).then(calls).then_with(|| a.scope.cmp(&b.scope))
        });
        let has_lines = stacks.is_empty() || stacks.iter().any(Stack::has_lines);
        Attribution {
            retained: holders(attribution.retained),
            survivors: join_survivors(survivors, &stack_of, &stacks),
            hint: if has_lines { attribution.hint } else { Some(NO_LINES.to_owned()) },
            stacks,
            places,
            peaks,
            refused,
            ..attribution
        }
    }
}

/// The distinct stacks by first occurrence, and for each element of `calls` its stack.
fn stacks(
    calls: &[Vec<u64>],
    sources: &Sources,
    mut lookup: impl FnMut(u64) -> Vec<Frame>,
) -> (Vec<Stack>, Vec<usize>) {
    let mut frames: HashMap<u64, Vec<(Frame, Owner, Option<FrameMark>)>> = HashMap::new();
    let mut known: HashMap<Vec<Frame>, usize> = HashMap::new();
    let mut stacks: Vec<Stack> = Vec::new();
    let stack_of = calls
        .iter()
        .map(|calls| {
            for &call in calls {
                frames.entry(call).or_insert_with(|| {
                    let frames = lookup(call).into_iter().map(|frame| sources.qualify(frame));
                    let classified = |frame: Frame| {
                        let (owner, mark) = (frame.owner(), frame.mark());
                        (frame, owner, mark)
                    };
                    frames.map(classified).collect()
                });
            }
            let all = calls.iter().flat_map(|call| &frames[call]);
            let stack =
                Stack::trimmed_of(all.map(|(frame, owner, mark)| (frame, *owner, *mark)).collect());
            match known.entry(stack.frames.clone()) {
                // Frames that are not shown must not make two call sites of one.
                hash_map::Entry::Occupied(known) => {
                    stacks[*known.get()].join(stack);
                    *known.get()
                }
                hash_map::Entry::Vacant(vacant) => {
                    stacks.push(stack);
                    *vacant.insert(stacks.len() - 1)
                }
            }
        })
        .collect();
    (stacks, stack_of)
}

/// The distinct call sites, sorted, and for each of `unresolved` its call site.
fn places(
    unresolved: Vec<Place>,
    stacks: &[Stack],
    stack_of: &[usize],
) -> (Vec<Place>, Vec<usize>) {
    type Identity = (Space, usize, String, Option<Tensor>);
    let operations: Vec<Option<String>> = stacks.iter().map(Stack::operation).collect();
    let count = unresolved.len();
    let mut joined: BTreeMap<Identity, (Place, Vec<usize>)> = BTreeMap::new();
    for (number, place) in unresolved.into_iter().enumerate() {
        let stack = stack_of[place.stack];
        let identity = (place.space, stack, place.scope.clone(), place.tensor.clone());
        match joined.get_mut(&identity) {
            Some((known, numbers)) => {
                add(known, &place);
                numbers.push(number);
            }
            None => {
                let place = Place { stack, operation: operations[stack].clone(), ..place };
                joined.insert(identity, (place, vec![number]));
            }
        }
    }
    let mut joined: Vec<(Place, Vec<usize>)> = joined.into_values().collect();
    // Sorted by content, because the order of the stacks comes from hash maps of the test process.
    joined.sort_by_cached_key(|(place, _)| {
        (
            place.space,
            std::cmp::Reverse(place.bytes),
            stacks[place.stack].sorted_by(),
            place.scope.clone(),
            place.tensor.clone(),
        )
    });
    let mut place_of = vec![0; count];
    for (number, (_, numbers)) in joined.iter().enumerate() {
        numbers.iter().for_each(|&unresolved| place_of[unresolved] = number);
    }
    (joined.into_iter().map(|(place, _)| place).collect(), place_of)
}

/// The last iteration is the later of the two.
fn add(place: &mut Place, other: &Place) {
    place.calls += other.calls;
    place.bytes += other.bytes;
    if other.last > place.last {
        place.last = other.last;
        (place.last_calls, place.last_bytes) = (0, 0);
    }
    if other.last == place.last {
        place.last_calls += other.last_calls;
        place.last_bytes += other.last_bytes;
    }
}

fn join_holders(
    unresolved: Vec<Holder>,
    place_of: &[usize],
    places: &[Place],
    stacks: &[Stack],
) -> Vec<Holder> {
    let mut joined: BTreeMap<(usize, HolderKind), (u64, u64)> = BTreeMap::new();
    for holder in unresolved {
        let place = place_of[holder.place];
        let kind = holder.kind.on(&stacks[places[place].stack]);
        let sum = joined.entry((place, kind)).or_default();
        sum.0 += holder.bytes;
        sum.1 += holder.count;
    }
    let mut holders: Vec<Holder> = joined
        .into_iter()
        .map(|((place, kind), (bytes, count))| Holder { place, kind, bytes, count })
        .collect();
    holders.sort_by_key(|holder| (std::cmp::Reverse(holder.bytes), holder.place));
    holders
}

/// A group that has no surviving block and does not grow is left out.
fn join_survivors(
    unresolved: Vec<Survivors>,
    stack_of: &[usize],
    stacks: &[Stack],
) -> Vec<Survivors> {
    let mut joined: BTreeMap<(Space, usize, String), Survivors> = BTreeMap::new();
    for survivors in unresolved {
        let survivors = Survivors { stack: stack_of[survivors.stack], ..survivors };
        match joined.entry((survivors.space, survivors.stack, survivors.scope.clone())) {
            Entry::Occupied(mut known) => {
                let known = known.get_mut();
                known.group = std::mem::take(&mut known.group).join(survivors.group);
                known.held.join(survivors.held);
                known.tensors.extend(survivors.tensors);
            }
            Entry::Vacant(vacant) => drop(vacant.insert(survivors)),
        }
    }
    let mut survivors: Vec<Survivors> = joined
        .into_values()
        .filter(|of| of.group.count() > 0 || of.group.reading.grows())
        .collect();
    // Sorted by content, like the places.
    survivors.sort_by_cached_key(|of| (of.space, stacks[of.stack].sorted_by(), of.scope.clone()));
    for Survivors { tensors, .. } in &mut survivors {
        tensors.sort();
        tensors.dedup();
        tensors.sort_by_key(|tensor| std::cmp::Reverse(tensor.elements()));
    }
    survivors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::growth::survivors::{Group, Reading};
    use crate::measurement::attribution::{HeldBy, Lifetime, Lifetimes, Peak};
    use crate::measurement::record::example::GPU;

    /// Addresses 1 and 2 are one line, 3 another, 4 is plumbing and 5 the backward pass.
    fn lookup(call: u64) -> Vec<Frame> {
        let (function, file, line) = match call {
            1 | 2 => ("app::step", "/app/src/step.rs", 7),
            3 => ("app::other", "/app/src/step.rs", 9),
            4 => ("__rust_alloc", "", 0),
            _ => ("candle_core::backprop::backward", "", 0),
        };
        let file = Some(file.to_owned()).filter(|file| !file.is_empty());
        vec![Frame { function: function.to_owned(), line: file.as_ref().map(|_| line), file }]
    }

    fn place(stack: usize, calls: u64, last: u32) -> Place {
        Place {
            space: GPU,
            stack,
            scope: String::new(),
            operation: None,
            tensor: None,
            calls,
            bytes: 10 * calls,
            last_calls: calls,
            last_bytes: 10 * calls,
            last,
        }
    }

    fn holder(place: usize, bytes: u64) -> Holder {
        Holder { place, kind: HolderKind::Kept, bytes, count: 1 }
    }

    fn survivors(stack: usize, births: [u64; 2]) -> Survivors {
        let tensor = |dim| Tensor { shape: vec![dim], dtype: "f32".to_owned() };
        Survivors {
            space: GPU,
            stack,
            scope: String::new(),
            tensors: vec![tensor(2), tensor(births[0] + 3)],
            group: Group {
                block: Some(8),
                births: births.to_vec(),
                live: vec![1, 2],
                ..Group::default()
            },
            held: HeldBy { whole: 1, view_bytes: births[0], ..HeldBy::default() },
        }
    }

    fn resolved(calls: &[&[u64]], attribution: Attribution) -> Attribution {
        let sources = Sources { workspace: "/app".to_owned(), ..Sources::default() };
        let calls = calls.iter().map(|calls| calls.to_vec()).collect();
        Unresolved { sources, calls, attribution }.resolve(lookup)
    }

    #[test]
    fn call_sites_that_resolve_to_the_same_line_become_one_with_one_holder() {
        let blocks = [2, 0].map(|place| Lifetime { place, born: 1, died: None, bytes: 4 });
        let lifetimes = Lifetimes { blocks: blocks.into(), ..Lifetimes::default() };
        let peak = Peak {
            holders: vec![holder(2, 4), holder(0, 5), holder(1, 6)],
            lifetimes: Some(lifetimes),
            ..Peak::default()
        };
        let attribution = Attribution {
            places: vec![place(0, 1, 3), place(1, 2, 3), place(2, 1, 4)],
            peaks: [(GPU, peak)].into(),
            retained: vec![holder(1, 1)],
            ..Attribution::default()
        };
        let found = resolved(&[&[3], &[4, 1], &[2]], attribution);
        let lines: Vec<_> = found.stacks.iter().map(|stack| stack.frames[0].place()).collect();
        assert_eq!(lines, [Some("src/step.rs:9".to_owned()), Some("src/step.rs:7".to_owned())]);
        let [first, second] = found.places.as_slice() else { panic!("{:?}", found.places) };
        assert_eq!((first.stack, first.calls, first.bytes), (1, 3, 30), "the largest first");
        assert_eq!((first.last, first.last_calls, first.last_bytes), (4, 1, 10), "the later one");
        assert_eq!((second.stack, second.calls), (0, 1));
        let held = &found.peaks[&GPU].holders;
        let held: Vec<_> = held.iter().map(|held| (held.place, held.bytes, held.count)).collect();
        assert_eq!(held, [(0, 10, 2), (1, 5, 1)]);
        let lives = &found.peaks[&GPU].lifetimes.as_ref().unwrap().blocks;
        assert_eq!(lives.iter().map(|life| life.place).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(found.retained, [holder(0, 1)]);
        assert_eq!(found.hint, None);
    }

    #[test]
    fn survivors_of_one_line_become_one_group_with_all_their_births() {
        let attribution = Attribution {
            survivors: vec![survivors(0, [1, 1]), survivors(1, [0, 0]), survivors(2, [0, 0])],
            ..Attribution::default()
        };
        let found = resolved(&[&[1], &[2], &[3]], attribution);
        let [survivors] = found.survivors.as_slice() else { panic!("{:?}", found.survivors) };
        let Group { births, live, block, .. } = &survivors.group;
        assert_eq!(
            (births.as_slice(), live.as_slice(), *block),
            (&[1, 1][..], &[2, 4][..], Some(8))
        );
        let dims: Vec<u64> = survivors.tensors.iter().map(|tensor| tensor.shape[0]).collect();
        assert_eq!(dims, [4, 3, 2], "each of them once, the largest first");
        assert_eq!((survivors.held.whole, survivors.held.view_bytes), (2, 1));
    }

    #[test]
    fn the_order_of_the_test_process_does_not_change_survivors() {
        let group = |last| Group {
            births: vec![1, 0],
            reading: Reading { bytes: 8, last, ..Reading::default() },
            ..Group::default()
        };
        // Addresses 1 and 2 are one line. Of two equal groups at rest, one is described.
        let all = [1, 2, 3].map(|last| Survivors { group: group(last), ..survivors(0, [0, 0]) });
        let with_order = |order: [usize; 3]| {
            let survivors = order.iter().enumerate();
            let survivors = survivors.map(|(stack, &of)| Survivors { stack, ..all[of].clone() });
            let attribution =
                Attribution { survivors: survivors.collect(), ..Attribution::default() };
            let calls: [&[u64]; 3] = [&[1], &[2], &[3]];
            let found = resolved(&order.map(|of| calls[of]), attribution);
            let line = |of: &Survivors| found.stacks[of.stack].frames[0].line;
            let found = found.survivors.iter().map(|of| (line(of), of.group.clone()));
            found.collect::<Vec<_>>()
        };
        let usual = with_order([0, 1, 2]);
        assert_eq!(usual.len(), 2);
        for order in [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            assert_eq!(with_order(order), usual, "{order:?}");
        }
    }

    #[test]
    fn the_functions_of_a_stack_decide_more_than_the_age_of_its_bytes() {
        let attribution = Attribution {
            places: vec![place(0, 1, 1)],
            retained: vec![holder(0, 1)],
            ..Attribution::default()
        };
        let found = resolved(&[&[5]], attribution);
        assert_eq!(found.retained[0].kind, HolderKind::Gradients);
        assert_eq!(found.hint.as_deref(), Some(NO_LINES));
    }
}
