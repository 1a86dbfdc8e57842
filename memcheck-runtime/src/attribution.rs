//! Attribution of a run: switched on before the body, read after it.
//!
//! The modules `site`, `scope`, `trace` and `probe::tensor` record the events. This module turns
//! their data into an [`Attribution`] whose call stacks are addresses. The names of the addresses
//! are looked up later.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use memcheck_core::growth::survivors::Grown;
use memcheck_core::measurement::attribution::{
    Attribution, Holder, HolderKind, Lifetime, Lifetimes, Peak, Place, Refused, Survivors,
    Unresolved,
};
use memcheck_core::measurement::placement::{self, Modules, ScopeKind, Step};
use memcheck_core::space::Space;
use memcheck_ledger::block::Origin;
use memcheck_ledger::{self as ledger, site};
use rustc_hash::FxHashMap;

use crate::at_end::{LiveAtEnd, SurvivorTensors};
use crate::executable::{Executable, sources};
use crate::probe::tensor;
use crate::scope::{self, SpanMark};
use crate::trace::{self, Held, Key, Log, Logged, Trace};

#[derive(Debug)]
pub(crate) struct Attributor {
    collector: trace::Collector,
    is_layout_known: bool,
}

/// Switches attribution on. If `modules` names a space, the memory that each module of the model
/// holds in that space is measured too.
///
/// # Errors
/// If the system refuses memory or a thread for it.
pub(crate) fn start(scopes: scope::Install, modules: Option<Space>) -> std::io::Result<Attributor> {
    site::start()?;
    let is_layout_known = tensor::start()?;
    scope::install(scopes);
    Ok(Attributor { collector: trace::start(modules.map(Log::new))?, is_layout_known })
}

/// Counts every block of this program from this call until the program exits, as a test on the host
/// does. For benches.
///
/// # Errors
/// If the system refuses memory for it.
pub fn count() -> std::io::Result<()> {
    let _quiet = memcheck_core::quiet::enter();
    ledger::prepare()?;
    ledger::arm();
    ledger::count_small();
    Ok(())
}

/// Counts every block of this program from this call on, those of the C heap too. For benches.
///
/// # Errors
/// If the system refuses memory for it, or the probe of the C heap sees no block.
pub fn count_c_heap() -> std::io::Result<()> {
    count()?;
    let _quiet = memcheck_core::quiet::enter();
    memcheck_ledger::c_heap::start();
    match crate::canary::on_c_heap() {
        true => Ok(()),
        false => Err(std::io::Error::other("the C heap is not counted")),
    }
}

/// Follows every block of this program from this call until the program exits. For benches.
///
/// # Errors
/// If the system refuses memory or a thread for it.
pub fn follow() -> std::io::Result<()> {
    count()?;
    let _quiet = memcheck_core::quiet::enter();
    std::mem::forget(start(scope::Install::Now, None)?);
    Ok(())
}

/// The blocks that are live after the body.
#[derive(Debug, Default)]
pub(crate) struct LiveBlocks {
    holders: Vec<Held>,
    /// The bytes that the driver refused to free.
    unfreed: BTreeMap<Space, u64>,
}

/// All live blocks that have a context, grouped by space, context, shape and age. All iterations
/// before the latest are one age, so that their number does not matter.
pub(crate) fn live_blocks() -> LiveBlocks {
    let mut unfreed: BTreeMap<Space, u64> = BTreeMap::new();
    ledger::each_unfreed(|_, block| {
        if block.origin.context != 0 {
            *unfreed.entry(block.space).or_default() += block.size;
        }
    });
    LiveBlocks { holders: live_holders(), unfreed }
}

fn live_holders() -> Vec<Held> {
    let mut held: FxHashMap<(Key, u32), (u64, u64)> = FxHashMap::default();
    let latest = ledger::iteration();
    ledger::each(|_, block| {
        let Origin { birth, context, shape } = block.origin;
        if context != 0 {
            let key = Key { space: block.space, context, shape };
            let birth = if birth < latest { birth.min(1) } else { birth };
            let (bytes, count) = held.entry((key, birth)).or_default();
            *bytes += block.size;
            *count += 1;
        }
    });
    let held = held.into_iter();
    held.map(|((key, birth), (bytes, count))| Held { key, birth, bytes, count }).collect()
}

/// The recorder's data about iterations when the body has returned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Iterations<'a> {
    pub(crate) grown: &'a BTreeMap<Space, Grown>,
    /// The number of iterations that have ended, including the warm-up.
    pub(crate) ended: u32,
    pub(crate) first: u32,
    pub(crate) at_end: &'a LiveAtEnd,
}

impl Iterations<'_> {
    /// The iteration after the last one. All iterations of the run are earlier than it.
    fn after_last(&self) -> u32 {
        self.ended.saturating_add(1)
    }
}

impl Attributor {
    /// Switches attribution off and returns its result, or `None` if the collector's thread failed.
    /// Source files below `workspace`, the root folder of the program, are named relative to it.
    pub(crate) fn finish(
        self,
        (iterations, live): (Iterations<'_>, LiveBlocks),
        judged: &[Space],
        workspace: &Path,
    ) -> Option<Unresolved> {
        site::stop();
        let has_all_tensors = tensor::stop();
        let mut trace = self.collector.finish()?;
        let mut indices = Indices::default();
        let places = indices.places(&trace);
        let held: Vec<(Space, Vec<Held>)> =
            trace.spaces.keys().map(|&space| (space, trace.peak(space))).collect();
        let mut peaks = BTreeMap::new();
        for (space, held) in held {
            let Some(of_space) = trace.spaces.remove(&space) else { continue };
            let (stretch, timeline) = of_space.timeline.into_parts();
            let peak = Peak {
                bytes: of_space.peak,
                iteration: of_space.peak_iteration,
                holders: indices.holders(&held, of_space.peak_iteration),
                stretch,
                timeline,
                lifetimes: Some(indices.lifetimes(of_space.lifetimes, of_space.peak_event)),
            };
            peaks.insert(space, peak);
        }
        let refused = trace
            .refused
            .iter()
            .map(|(&space, refused)| (space, indices.refused(space, refused)))
            .collect();
        let survivors =
            judged.iter().flat_map(|&space| indices.survivors(iterations, space)).collect();
        let retained = indices.holders(&live.holders, iterations.after_last());
        let attribution = Attribution {
            stacks: Vec::new(),
            places,
            peaks,
            refused,
            survivors,
            retained,
            unfreed: live.unfreed,
            devices: tensor::devices_since(iterations.first),
            modules: trace.log.as_ref().and_then(measure_modules),
            unlogged: trace.log.as_ref().map_or(0, |log| log.lost),
            events: trace.events,
            hint: missing_data(self.is_layout_known, has_all_tensors, site::is_complete()),
        };
        Some(Unresolved { sources: sources(workspace), calls: indices.calls(), attribution })
    }
}

/// The reasons why shapes and call stacks are missing; `None` if all are known.
fn missing_data(
    is_layout_known: bool,
    has_all_tensors: bool,
    has_all_stacks: bool,
) -> Option<String> {
    let shapes = match (is_layout_known, has_all_tensors) {
        (false, _) => {
            Some("shapes are missing, because the tensor layout of this candle version is unknown")
        }
        (true, false) => Some("some shapes are missing, because the table of tensors was full"),
        (true, true) => None,
    };
    let stacks = (!has_all_stacks)
        .then_some("some call stacks are missing, because the table of call stacks was full");
    let reasons: Vec<&str> = shapes.into_iter().chain(stacks).collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// The memory of each module of the model, computed from the log of a run. `None` if the model has
/// no layers or if events were lost.
fn measure_modules(log: &Log) -> Option<Modules> {
    if log.lost > 0 {
        return None;
    }
    let scopes: Vec<placement::ModuleScope> = scope::all()
        .into_iter()
        .map(|scope| placement::ModuleScope {
            parent: scope.parent,
            name: scope.name,
            kind: match scope.mark {
                SpanMark::None => ScopeKind::Plain,
                SpanMark::Index(_) => ScopeKind::Indexed,
                SpanMark::Replicated => ScopeKind::Replicated,
            },
        })
        .collect();
    let mut scope_of: HashMap<u32, u32> = HashMap::new();
    let mut step = |logged: &Logged| {
        let Logged { context, birth, size, is_allocation, iteration } = *logged;
        let scope = *scope_of
            .entry(context)
            .or_insert_with(|| site::context(context).map_or(0, |context| context.scope));
        Step { scope, place: (context, birth), bytes: size, came: is_allocation, iteration }
    };
    let steps: Vec<Step> = log.events.iter().map(&mut step).collect();
    placement::measure(&scopes, &steps)
}

/// Maps the numbers of the run to indices of stacks and places in the attribution.
#[derive(Debug, Default)]
struct Indices {
    /// The index of the stack and the path of the scope, for each context.
    contexts: FxHashMap<u32, (usize, String)>,
    calls: Vec<Vec<u64>>,
    places: FxHashMap<Key, usize>,
}

impl Indices {
    /// The index of a context's stack, and the path of its scope.
    fn context(&mut self, number: u32) -> (usize, String) {
        let known = self.contexts.entry(number).or_insert_with(|| {
            let context = site::context(number);
            let scope = context.as_ref().map_or(0, |context| context.scope);
            self.calls.push(context.map(|context| context.frames).unwrap_or_default());
            (self.calls.len() - 1, scope::path(scope))
        });
        known.clone()
    }

    /// The calls of each stack, as addresses in the executable.
    fn calls(self) -> Vec<Vec<u64>> {
        let executable = Executable::find();
        self.calls.iter().map(|frames| executable.calls(frames)).collect()
    }

    fn places(&mut self, trace: &Trace) -> Vec<Place> {
        let at_peak = trace.spaces.keys().flat_map(|&space| trace.peak(space));
        let at_refusal = trace.refused.values().flat_map(|refused| refused.live.iter().copied());
        let held: HashSet<Key> = at_peak.chain(at_refusal).map(|held| held.key).collect();
        let mut places = Vec::new();
        for (key, total) in trace.totals() {
            // A later event gave a shape to every block of this place, so that they have another
            // key.
            if total.calls == 0 && !held.contains(&key) {
                continue;
            }
            let (stack, scope) = self.context(key.context);
            self.places.insert(key, places.len());
            places.push(Place {
                space: key.space,
                stack,
                scope,
                operation: None,
                tensor: tensor::tensor_type(key.shape),
                calls: total.calls,
                bytes: total.bytes,
                last_calls: total.last_calls,
                last_bytes: total.last_bytes,
                last: total.iteration,
            });
        }
        places
    }

    fn holders(&self, held: &[Held], now: u32) -> Vec<Holder> {
        let mut merged: BTreeMap<(usize, HolderKind), (u64, u64)> = BTreeMap::new();
        for held in held {
            if let Some(&place) = self.places.get(&held.key) {
                let holder =
                    merged.entry((place, HolderKind::by_age(held.birth, now))).or_default();
                holder.0 += held.bytes;
                holder.1 += held.count;
            }
        }
        let holder = |((place, kind), (bytes, count))| Holder { place, kind, bytes, count };
        merged.into_iter().map(holder).collect()
    }

    fn lifetimes(&self, mut of: trace::LifetimeRecorder, peak: u64) -> Lifetimes {
        let (events, ended) = (of.events, of.ended);
        let (iterations, left_out) = (std::mem::take(&mut of.iterations), of.count_left_out());
        let (lives, stretch, rest) = of.finish();
        let blocks = lives.iter().filter_map(|life| {
            let place = *self.places.get(&life.key)?;
            Some(Lifetime { place, born: life.born, died: life.died(), bytes: life.bytes })
        });
        let blocks = blocks.collect();
        Lifetimes { events, iterations, ended, peak, blocks, left_out, stretch, rest }
    }

    fn refused(&mut self, space: Space, refused: &trace::RefusedEvent) -> Refused {
        let Origin { birth, context, .. } = refused.block.origin;
        let (stack, scope) = self.context(context);
        let holders = self.holders(&refused.live, birth);
        Refused { stack, scope, requested: ledger::snapshot(space).refused_bytes, holders }
    }

    fn survivors(&mut self, iterations: Iterations<'_>, space: Space) -> Vec<Survivors> {
        let Iterations { grown, at_end, .. } = iterations;
        let mut of_context = at_end.survivors_of(space);
        let by_site = grown.get(&space).map(|grown| grown.by_site.clone()).unwrap_or_default();
        if by_site.values().all(|group| group.count() == 0 && !group.reading.grows()) {
            return Vec::new();
        }
        by_site
            .into_iter()
            .map(|(context, group)| {
                let (stack, scope) = self.context(context);
                let of_context = of_context.remove(&context).unwrap_or_default();
                let (held, SurvivorTensors { shapes, .. }) = (of_context.held(), of_context);
                let tensors = shapes.into_iter().filter_map(tensor::tensor_type).collect();
                Survivors { space, stack, scope, tensors, group, held }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_missing_data_has_a_reason() {
        assert_eq!(missing_data(true, true, true), None);
        let stacks = missing_data(true, true, false).unwrap();
        assert!(stacks.contains("some call stacks are missing"), "{stacks}");
        let both = missing_data(true, false, false).unwrap();
        assert!(both.contains("some shapes are missing") && both.ends_with(&stacks), "{both}");
        let unknown = missing_data(false, true, true).unwrap();
        assert!(unknown.contains("the tensor layout of this candle version"), "{unknown}");
    }
}
