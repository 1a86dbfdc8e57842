//! Builds records with attribution for tests: call sites with their survivors, and the figures that
//! a run would have measured with them.

use super::{Attribution, HeldBy, Holder, Kind, Place, Survivors, Tensor};
use crate::growth::survivors::{Group, Pattern, Reading};
use crate::measurement::record::example::{GPU, armed, record};
use crate::measurement::record::{Metrics, Record, SpaceRecord};
use crate::measurement::stack::{Frame, Stack};
use crate::space::Space;

/// Measured iterations.
pub(crate) const ITERATIONS: usize = 10;

/// Blocks of one size that are never freed: `births[i]` blocks in iteration `i`, with the given
/// `reading`.
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
    }
}

/// The reading of a group that grows by `rate` bytes per iteration.
pub(crate) fn grows(pattern: Pattern, rate: u64) -> Reading {
    Reading { pattern, bytes_per_iteration: rate, period: 1, bytes: rate, last: 0, groups: 1 }
}

/// The reading of a group that does not grow, holds `bytes`, and last changed in the iteration
/// `last`, counted from 1.
pub(crate) fn rests(pattern: Pattern, bytes: u64, last: u64) -> Reading {
    Reading { pattern, bytes_per_iteration: 0, period: 1, bytes, last, groups: 1 }
}

/// One block of one size in every iteration.
pub(crate) fn steady(block: u64) -> Group {
    kept(block, [1; ITERATIONS], grows(Pattern::Steady, block))
}

/// One block, allocated in iteration `at`.
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

/// One buffer whose size after each iteration is in `levels`. It is reallocated when its size
/// changes.
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
    }
}

/// A buffer that is replaced by one that is `more` bytes larger in every iteration.
pub(crate) fn enlarged(more: u64) -> Group {
    let levels = std::array::from_fn(|at| 1_000 + more * at as u64);
    buffer(levels, grows(Pattern::Enlarged, more))
}

/// A run on one GPU. Methods that modify a call site modify the one that was added last.
#[derive(Debug, Default)]
pub(crate) struct Run {
    attribution: Attribution,
    /// Survivors without a call site, because they were allocated while nothing was followed.
    unplaced: Vec<Group>,
    failed_frees: u64,
}

impl Run {
    /// Adds a line of the program that leaves the blocks of `group` behind. It allocates them
    /// through library `functions`, the innermost first.
    pub(crate) fn place(mut self, functions: &[&str], group: Group) -> Self {
        let number = self.attribution.stacks.len();
        let library =
            |function: &&str| Frame { function: (*function).to_owned(), file: None, line: None };
        let line = Frame {
            function: "app::step".to_owned(),
            file: Some("src/step.rs".to_owned()),
            line: Some(number as u32 + 1),
        };
        let stack = Stack { frames: functions.iter().map(library).chain([line]).collect() };
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
        self.attribution.survivors.push(Survivors {
            space: GPU,
            stack: number,
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

    /// Sets the shapes of its tensors, all of type f32.
    pub(crate) fn tensors(mut self, shapes: &[&[u64]]) -> Self {
        let tensor = |shape: &&[u64]| Tensor { shape: shape.to_vec(), dtype: "f32".to_owned() };
        self.latest().0.tensors = shapes.iter().map(tensor).collect();
        self
    }

    /// Inserts a line of a dependency between the program and the allocation.
    pub(crate) fn via(mut self, function: &str, file: &str, line: u32) -> Self {
        let number = self.latest().0.stack;
        let frames = &mut self.attribution.stacks[number].frames;
        let file = Some(format!("/home/u/.cargo/registry/src/index/{file}"));
        let frame = Frame { function: function.to_owned(), file, line: Some(line) };
        frames.insert(frames.len() - 1, frame);
        self
    }

    /// Sets the owners of its blocks.
    pub(crate) fn held(mut self, held: HeldBy) -> Self {
        self.latest().0.held = held;
        self
    }

    /// Sets the path of its spans.
    pub(crate) fn scope(mut self, scope: &str) -> Self {
        let (survivors, place) = self.latest();
        (survivors.scope, place.scope) = (scope.to_owned(), scope.to_owned());
        self
    }

    /// Sets its allocations over the whole body, and their bytes.
    pub(crate) fn totals(mut self, calls: u64, bytes: u64) -> Self {
        let (_, place) = self.latest();
        (place.calls, place.bytes) = (calls, bytes);
        self
    }

    /// Sets its blocks and bytes that are live when the body has returned.
    pub(crate) fn retained(mut self, count: u64, bytes: u64) -> Self {
        let place = self.attribution.places.len() - 1;
        self.attribution.retained.push(Holder { place, kind: Kind::Kept, bytes, count });
        self
    }

    /// Adds survivors without a call site.
    pub(crate) fn unplaced(mut self, group: Group) -> Self {
        self.unplaced.push(group);
        self
    }

    /// Sets the number of frees that the driver refused.
    pub(crate) fn failed_frees(mut self, number: u64) -> Self {
        self.failed_frees = number;
        self
    }

    /// Sets the number of devices that measured iterations opened.
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
