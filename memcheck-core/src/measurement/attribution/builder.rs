//! Builds records with attribution for tests.

use super::{Attribution, HeldBy, Holder, HolderKind, Place, Survivors, Tensor};
use crate::growth::survivors::{Group, Pattern, Reading};
use crate::measurement::record::example::{GPU, armed, record};
use crate::measurement::record::{Metrics, Record, SpaceRecord};
use crate::measurement::stack::{Frame, Passage, Stack};
use crate::space::Space;

pub(crate) const ITERATIONS: usize = 10;

/// `births[i]` blocks of one size in iteration `i`, never freed.
pub(crate) fn kept(block: u64, births: [u64; ITERATIONS], reading: Reading) -> Group {
    let until = |end: usize| births[..end].iter().sum::<u64>();
    let live: Vec<u64> = (0..ITERATIONS).map(|at| until(at + 1)).collect();
    Group {
        block: Some(block),
        bytes: births.iter().map(|count| count * block).collect(),
        live_bytes: live.iter().map(|count| count * block).collect(),
        births: births.to_vec(),
        live,
        reading,
        ..Group::default()
    }
}

pub(crate) fn grows(pattern: Pattern, rate: u64) -> Reading {
    Reading { pattern, bytes_per_iteration: rate, period: 1, bytes: rate, last: 0, groups: 1 }
}

/// `last` is the iteration of the last change, counted from 1.
pub(crate) fn rests(pattern: Pattern, bytes: u64, last: u64) -> Reading {
    Reading { pattern, bytes_per_iteration: 0, period: 1, bytes, last, groups: 1 }
}

pub(crate) fn steady(block: u64) -> Group {
    kept(block, [1; ITERATIONS], grows(Pattern::Steady, block))
}

pub(crate) fn once(block: u64, at: usize) -> Group {
    let births = std::array::from_fn(|iteration| u64::from(iteration == at));
    kept(block, births, rests(Pattern::Once, block, at as u64 + 1))
}

/// One block per iteration that is never freed, of `bytes[i]` in iteration `i`.
pub(crate) fn of_sizes(bytes: [u64; ITERATIONS]) -> Group {
    let sum = |end: usize| bytes[..end].iter().sum::<u64>();
    Group {
        block: None,
        bytes: bytes.to_vec(),
        live_bytes: (0..ITERATIONS).map(|at| sum(at + 1)).collect(),
        reading: grows(Pattern::Irregular, sum(ITERATIONS) / ITERATIONS as u64),
        ..steady(1)
    }
}

/// `levels` are the sizes after each iteration; each change reallocates.
pub(crate) fn buffer(levels: [u64; ITERATIONS], reading: Reading) -> Group {
    let newest = (1..ITERATIONS).rev().find(|&at| levels[at] != levels[at - 1]);
    let births: Vec<u64> = (0..ITERATIONS).map(|at| u64::from(Some(at) == newest)).collect();
    Group {
        block: None,
        bytes: births.iter().map(|born| born * levels[ITERATIONS - 1]).collect(),
        births,
        live: vec![1; ITERATIONS],
        live_bytes: levels.to_vec(),
        reading,
        ..Group::default()
    }
}

pub(crate) fn enlarged(more: u64) -> Group {
    let levels = std::array::from_fn(|at| 1_000 + more * at as u64);
    buffer(levels, grows(Pattern::Enlarged, more))
}

/// A run on one GPU. Methods that modify a call site modify the one that was added last.
#[derive(Debug, Default)]
pub(crate) struct Run {
    attribution: Attribution,
    unplaced: Vec<Group>,
    failed_frees: u64,
}

impl Run {
    /// Adds a line that leaves `group` behind, through library `functions`, innermost first.
    pub(crate) fn place(mut self, functions: &[&str], group: Group) -> Self {
        let number = self.attribution.stacks.len();
        let library =
            |function: &&str| Frame { function: (*function).to_owned(), file: None, line: None };
        let line = Frame {
            function: "app::step".to_owned(),
            file: Some("src/step.rs".to_owned()),
            line: Some(number as u32 + 1),
        };
        let frames = functions.iter().map(library).chain([line]).collect();
        let stack = Stack { frames, ..Stack::default() };
        self.attribution.places.push(Place {
            space: GPU,
            stack: number,
            scope: String::new(),
            operation: stack.operation(),
            tensor: None,
            calls: group.count(),
            bytes: group.bytes(),
            last_calls: 1,
            last_bytes: group.bytes.last().copied().unwrap_or(0),
            last: 12,
        });
        self.attribution.stacks.push(stack);
        self.survive(GPU, number, group)
    }

    fn survive(mut self, space: Space, stack: usize, group: Group) -> Self {
        self.attribution.survivors.push(Survivors {
            space,
            stack,
            scope: String::new(),
            tensors: Vec::new(),
            group,
            held: HeldBy::default(),
        });
        self
    }

    fn latest(&mut self) -> (&mut Survivors, &mut Place) {
        let Attribution { survivors, places, .. } = &mut self.attribution;
        (survivors.last_mut().expect("a place"), places.last_mut().expect("a place"))
    }

    pub(crate) fn tensors(mut self, shapes: &[&[u64]]) -> Self {
        let tensor = |shape: &&[u64]| Tensor { shape: shape.to_vec(), dtype: "f32".to_owned() };
        self.latest().0.tensors = shapes.iter().map(tensor).collect();
        self
    }

    pub(crate) fn via(mut self, function: &str, file: &str, line: u32) -> Self {
        let number = self.latest().0.stack;
        let frames = &mut self.attribution.stacks[number].frames;
        let file = Some(format!("/home/u/.cargo/registry/src/index/{file}"));
        let frame = Frame { function: function.to_owned(), file, line: Some(line) };
        frames.insert(frames.len() - 1, frame);
        self
    }

    /// Replaces the place by one for each shape, allocated once, as in a body of so many iterations.
    pub(crate) fn types(mut self, shapes: &[&[u64]]) -> Self {
        let place = self.attribution.places.pop().expect("a place");
        let earlier = (1..=shapes.len() as u32).rev();
        self.attribution.places.extend(shapes.iter().zip(earlier).map(|(shape, earlier)| Place {
            tensor: Some(Tensor { shape: shape.to_vec(), dtype: "f32".to_owned() }),
            calls: 1,
            last: place.last.saturating_sub(earlier - 1),
            ..place.clone()
        }));
        self
    }

    /// The allocations of the last iteration.
    pub(crate) fn calls(mut self, number: u64) -> Self {
        self.latest().1.last_calls = number;
        self
    }

    pub(crate) fn through(mut self, passage: Passage) -> Self {
        let number = self.latest().0.stack;
        self.attribution.stacks[number].through.push(passage);
        self
    }

    /// Adds a call of `function` that adds an entry to a map.
    pub(crate) fn map_of(mut self, function: &str) -> Self {
        let is_program = function.starts_with("app::");
        let file =
            if is_program { "src/step.rs" } else { "/home/u/.cargo/registry/src/i/x-1/src/x.rs" };
        let (function, file) = (function.to_owned(), Some(file.to_owned()));
        let frames = vec![Frame { function, file, line: Some(99) }];
        let through = vec![Passage::Map];
        self.attribution.stacks.push(Stack { frames, through, ..Stack::default() });
        self
    }

    /// Adds a list of the host that `function` makes longer, with a buffer of so many bytes at its end.
    pub(crate) fn list_of(mut self, function: &str, bytes: u64) -> Self {
        let number = self.attribution.stacks.len();
        self = self.map_of(function);
        self.attribution.stacks[number].through = vec![Passage::List];
        let group = buffer([bytes; ITERATIONS], rests(Pattern::Amortized, bytes, 9));
        self.survive(Space::HostSmall, number, group)
    }

    /// Removes the line of the program, as in a thread that a library has started.
    pub(crate) fn without_program(mut self) -> Self {
        let number = self.latest().0.stack;
        self.attribution.stacks[number].frames.pop();
        self
    }

    pub(crate) fn held(mut self, held: HeldBy) -> Self {
        self.latest().0.held = held;
        self
    }

    pub(crate) fn scope(mut self, scope: &str) -> Self {
        let (survivors, place) = self.latest();
        (survivors.scope, place.scope) = (scope.to_owned(), scope.to_owned());
        self
    }

    pub(crate) fn totals(mut self, calls: u64, bytes: u64) -> Self {
        let (_, place) = self.latest();
        (place.calls, place.bytes) = (calls, bytes);
        self
    }

    pub(crate) fn retained(mut self, count: u64, bytes: u64) -> Self {
        let place = self.attribution.places.len() - 1;
        self.attribution.retained.push(Holder { place, kind: HolderKind::Kept, bytes, count });
        self
    }

    pub(crate) fn unplaced(mut self, group: Group) -> Self {
        self.unplaced.push(group);
        self
    }

    pub(crate) fn failed_frees(mut self, number: u64) -> Self {
        self.failed_frees = number;
        self
    }

    /// Bytes of the latest place that the driver refused to free.
    pub(crate) fn unfreed(mut self, bytes: u64) -> Self {
        self.latest().0.held.unfreed = bytes;
        self
    }

    /// Bytes of all places that the driver had refused to free when the body had returned.
    pub(crate) fn unfreed_at_end(mut self, bytes: u64) -> Self {
        self.attribution.unfreed.insert(GPU, bytes);
        self
    }

    /// The devices of the tensors that hold the blocks of the latest place.
    pub(crate) fn on_new_devices(mut self, number: u64) -> Self {
        self.latest().0.held.new_devices = number;
        self
    }

    pub(crate) fn devices(mut self, space: Space, number: u64) -> Self {
        self.attribution.devices.insert(space, number);
        self
    }

    pub(crate) fn record(self) -> Record {
        let Self { attribution, unplaced, failed_frees } = self;
        let retained = attribution.retained.iter().map(|holder| holder.bytes).sum();
        let of_places = attribution.survivors.iter().map(|survivors| &survivors.group);
        let rates = of_places.chain(&unplaced).map(|group| group.reading.bytes_per_iteration);
        let metrics = Metrics { growth: rates.sum(), retained, ..Metrics::default() };
        let measured = SpaceRecord { survivors: unplaced, failed_frees, ..armed(metrics) };
        Record { attribution: Some(attribution), ..record(measured) }
    }
}
