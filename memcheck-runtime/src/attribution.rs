//! Attribution of a run: switched on before the body, read after it.
//!
//! The modules `site`, `scope`, `trace` and `probe::tensor` record the events. This module turns
//! their data into an [`Attribution`] whose call stacks are addresses. The names of the addresses
//! are looked up later.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use memcheck_core::growth::survivors::Grown;
use memcheck_core::measurement::attribution::{
    Attribution, Holder, Kind, Peak, Place, Refused, Survivors, Unresolved,
};
use memcheck_core::measurement::placement::{self, Modules, ScopeKind, Step};
use memcheck_core::space::Space;
use rustc_hash::FxHashMap;

use crate::at_end::{AtEnd, Found};
use crate::block::Origin;
use crate::ledger;
use crate::probe::tensor;
use crate::scope::{self, Mark};
use crate::site;
use crate::trace::{self, Held, Key, Log, Logged, Trace};

#[derive(Debug)]
pub(crate) struct Attributor {
    collector: trace::Collector,
    knows_tensors: bool,
}

/// Switches attribution on. If `modules` names a space, the memory that each module of the model
/// holds in that space is measured too.
///
/// # Errors
/// If the system refuses memory or a thread for it.
pub(crate) fn start(scopes: scope::Install, modules: Option<Space>) -> std::io::Result<Attributor> {
    site::start()?;
    let knows_tensors = tensor::start()?;
    scope::install(scopes);
    Ok(Attributor { collector: trace::start(modules.map(Log::of))?, knows_tensors })
}

/// Counts every block of this program from this call until the program exits, as a test on the host
/// does. For benches.
///
/// # Errors
/// If the system refuses memory for it.
pub fn count() -> std::io::Result<()> {
    let _quiet = memcheck_core::measurement::quiet::enter();
    ledger::prepare()?;
    ledger::arm();
    ledger::count_small();
    Ok(())
}

/// Follows every block of this program from this call until the program exits. For benches.
///
/// # Errors
/// If the system refuses memory or a thread for it.
pub fn follow() -> std::io::Result<()> {
    count()?;
    let _quiet = memcheck_core::measurement::quiet::enter();
    std::mem::forget(start(scope::Install::Now, None)?);
    Ok(())
}

/// All live blocks that have a context, grouped by space, context, shape and iteration of birth.
pub(crate) fn live() -> Vec<Held> {
    let mut held: FxHashMap<(Key, u32), (u64, u64)> = FxHashMap::default();
    ledger::each(|_, block| {
        let Origin { birth, context, shape } = block.origin;
        if context != 0 {
            let key = Key { space: block.space, context, shape };
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
    pub(crate) measured: u32,
    /// The number of iterations that have ended, including the warm-up.
    pub(crate) ended: u32,
    pub(crate) first: u32,
    pub(crate) at_end: &'a AtEnd,
}

impl Iterations<'_> {
    /// The iteration after the last one. All iterations of the run are earlier than it.
    fn after(&self) -> u32 {
        self.ended.saturating_add(1)
    }
}

impl Attributor {
    /// Switches attribution off and returns its result, or `None` if the collector's thread failed.
    /// Source files below `workspace`, the root folder of the program, are named relative to it.
    pub(crate) fn finish(
        self,
        (iterations, live): (Iterations<'_>, &[Held]),
        judged: &[Space],
        workspace: &Path,
    ) -> Option<Unresolved> {
        site::stop();
        let all_tensors = tensor::stop();
        let trace = self.collector.finish()?;
        let mut numbers = Numbers::default();
        let places = numbers.places(&trace);
        let peaks = trace
            .spaces
            .iter()
            .map(|(&space, of_space)| {
                let (stretch, timeline) = of_space.timeline.clone().into_parts();
                let peak = Peak {
                    bytes: of_space.peak,
                    iteration: of_space.peak_iteration,
                    holders: numbers.holders(&trace.peak(space), of_space.peak_iteration),
                    stretch,
                    timeline,
                };
                (space, peak)
            })
            .collect();
        let refused = trace
            .refused
            .iter()
            .map(|(&space, refused)| (space, numbers.refused(space, refused)))
            .collect();
        let survivors =
            judged.iter().flat_map(|&space| numbers.survivors(iterations, space)).collect();
        let retained = numbers.holders(live, iterations.after());
        let attribution = Attribution {
            stacks: Vec::new(),
            places,
            peaks,
            refused,
            survivors,
            retained,
            devices: tensor::devices_since(iterations.first),
            modules: trace.log.as_ref().and_then(modules),
            unlogged: trace.log.as_ref().map_or(0, |log| log.lost),
            events: trace.events,
            hint: hint(self.knows_tensors, all_tensors).map(str::to_owned),
        };
        Some(Unresolved { sources: site::sources(workspace), calls: numbers.calls(), attribution })
    }
}

/// The reason why shapes are missing; `None` if all are known.
fn hint(knows_tensors: bool, all_tensors: bool) -> Option<&'static str> {
    match (knows_tensors, all_tensors) {
        (false, _) => {
            Some("this version of candle lays tensors out in an unknown way: shapes are not known")
        }
        (true, false) => Some("not every tensor could be followed: some shapes are not known"),
        (true, true) => None,
    }
}

/// The memory of each module of the model, computed from the log of a run. `None` if the model has
/// no layers or if events were lost.
fn modules(log: &Log) -> Option<Modules> {
    if log.lost > 0 {
        return None;
    }
    let scopes: Vec<placement::Scope> = scope::all()
        .into_iter()
        .map(|scope| placement::Scope {
            parent: scope.parent,
            name: scope.name,
            kind: match scope.mark {
                Mark::None => ScopeKind::Plain,
                Mark::Index(_) => ScopeKind::Indexed,
                Mark::Replicated => ScopeKind::Replicated,
            },
        })
        .collect();
    let mut scope_of: HashMap<u32, u32> = HashMap::new();
    let mut step = |logged: &Logged| {
        let Logged { context, birth, size, came, iteration } = *logged;
        let scope = *scope_of
            .entry(context)
            .or_insert_with(|| site::context(context).map_or(0, |context| context.scope));
        Step { scope, place: (context, birth), bytes: size, came, iteration }
    };
    let steps: Vec<Step> = log.events.iter().map(&mut step).collect();
    placement::measure(&scopes, &steps)
}

/// Maps the numbers of the run to indices of stacks and places in the attribution.
#[derive(Debug, Default)]
struct Numbers {
    /// The index of the stack and the path of the scope, for each context.
    contexts: FxHashMap<u32, (usize, String)>,
    calls: Vec<Vec<u64>>,
    places: FxHashMap<Key, usize>,
}

impl Numbers {
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
        let executable = site::Executable::find();
        self.calls.iter().map(|frames| executable.calls(frames)).collect()
    }

    fn places(&mut self, trace: &Trace) -> Vec<Place> {
        let at_peak = trace.spaces.keys().flat_map(|&space| trace.peak(space));
        let at_refusal = trace.refused.values().flat_map(|refused| refused.live.iter().copied());
        let held: HashSet<Key> = at_peak.chain(at_refusal).map(|held| held.key).collect();
        let mut places = Vec::new();
        for (&key, total) in &trace.totals {
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
                tensor: tensor::named(key.shape),
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
        let mut merged: BTreeMap<(usize, Kind), (u64, u64)> = BTreeMap::new();
        for held in held {
            if let Some(&place) = self.places.get(&held.key) {
                let holder = merged.entry((place, Kind::by_age(held.birth, now))).or_default();
                holder.0 += held.bytes;
                holder.1 += held.count;
            }
        }
        let holder = |((place, kind), (bytes, count))| Holder { place, kind, bytes, count };
        merged.into_iter().map(holder).collect()
    }

    fn refused(&mut self, space: Space, refused: &trace::Refused) -> Refused {
        let Origin { birth, context, .. } = refused.block.origin;
        let (stack, scope) = self.context(context);
        let holders = self.holders(&refused.live, birth);
        Refused { stack, scope, requested: ledger::snapshot(space).refused_bytes, holders }
    }

    fn survivors(&mut self, iterations: Iterations<'_>, space: Space) -> Vec<Survivors> {
        let Iterations { grown, first, measured, at_end, .. } = iterations;
        let mut of_context = at_end.of(space, first..first.saturating_add(measured));
        let by_site = grown.get(&space).map(|grown| grown.by_site.clone()).unwrap_or_default();
        if by_site.values().all(|group| group.count() == 0 && !group.reading.grows()) {
            return Vec::new();
        }
        by_site
            .into_iter()
            .map(|(context, group)| {
                let (stack, scope) = self.context(context);
                let Found { shapes, held } = of_context.remove(&context).unwrap_or_default();
                let tensors = shapes.into_iter().filter_map(tensor::named).collect();
                Survivors { space, stack, scope, tensors, group, held }
            })
            .collect()
    }
}
