//! A run with attribution: switched on before the body, made into names after.
//!
//! What is followed is followed elsewhere (`site`, `scope`, `trace`,
//! `probe::tensor`); here it becomes the record's [`Attribution`]: contexts
//! become stacks without plumbing, and contexts that are alike then are one
//! place.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use memcheck_core::attribution::{
    Attribution, Holder, Kind, Peak, Place, Refused, Survivors, Tensor,
};
use memcheck_core::placement::{self, Modules, ScopeKind, Step};
use memcheck_core::space::Space;
use memcheck_core::stack::Stack;
use memcheck_core::survivors::Group;

use crate::at_end::AtEnd;
use crate::block::Origin;
use crate::ledger::{self, Census};
use crate::probe::tensor;
use crate::scope::{self, Mark};
use crate::site::{self, Symbols};
use crate::trace::{self, Held, Key, Log, Logged, Trace};

/// Attribution at work.
#[derive(Debug)]
pub(crate) struct Attributor {
    collector: trace::Collector,
    knows_tensors: bool,
}

/// Switches attribution on. Where `modules` names a space, what each module of
/// the model holds there is measured too.
///
/// # Errors
/// When the system refuses memory or a thread for it.
pub(crate) fn start(scopes: scope::Install, modules: Option<Space>) -> std::io::Result<Attributor> {
    site::start()?;
    let knows_tensors = tensor::start()?;
    scope::install(scopes);
    Ok(Attributor { collector: trace::start(modules.map(Log::of))?, knows_tensors })
}

/// Follows every block of this program from here to its end, for benches.
///
/// # Errors
/// When the system refuses memory or a thread for it.
pub fn follow() -> std::io::Result<()> {
    let _quiet = memcheck_core::quiet::enter();
    ledger::prepare()?;
    ledger::arm();
    std::mem::forget(start(scope::Install::Now, None)?);
    Ok(())
}

/// Everything that is live now, block by block.
pub(crate) fn live() -> Vec<Held> {
    let mut held = Vec::new();
    ledger::each(|_, block| {
        let Origin { birth, context, shape } = block.origin;
        if context != 0 {
            let key = Key { space: block.space, context, shape };
            held.push(Held { key, birth, bytes: block.size, count: 1 });
        }
    });
    held
}

/// What the recorder knows when the body is done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Iterations<'a> {
    /// A census after each measured iteration.
    pub(crate) censuses: &'a [Census],
    /// The first measured iteration.
    pub(crate) first: u32,
    /// What was live after the last of them.
    pub(crate) at_end: &'a AtEnd,
}

impl Iterations<'_> {
    /// The iteration that would be next: seen from it, all of them are earlier.
    fn after(&self) -> u32 {
        u32::try_from(self.censuses.len()).unwrap_or(0).saturating_add(self.first)
    }
}

impl Attributor {
    /// Switches attribution off and names what it saw. `None` where it broke down.
    pub(crate) fn finish(
        self,
        (iterations, live): (Iterations<'_>, &[Held]),
        judged: &[Space],
        workspace: &Path,
    ) -> Option<Attribution> {
        site::stop();
        let all_tensors = tensor::stop();
        let trace = self.collector.finish()?;
        let mut names = Names::new(workspace);
        let (places, place_of) = names.places(&trace);
        let peaks = trace
            .spaces
            .iter()
            .map(|(&space, of_space)| {
                let holders = names.holders(&trace.peak(space), of_space.peak_iteration, &place_of);
                let (stretch, timeline) = of_space.timeline.clone().into_parts();
                let peak = Peak {
                    bytes: of_space.peak,
                    iteration: of_space.peak_iteration,
                    holders,
                    stretch,
                    timeline,
                };
                (space, peak)
            })
            .collect();
        let refused = trace
            .refused
            .iter()
            .map(|(&space, refused)| (space, names.refused(space, refused, &place_of)))
            .collect();
        let survivors =
            judged.iter().flat_map(|&space| names.survivors(iterations, space)).collect();
        let retained = names.holders(live, iterations.after(), &place_of);
        let hint = names.hint(self.knows_tensors, all_tensors);
        Some(Attribution {
            stacks: names.stacks,
            places,
            peaks,
            refused,
            survivors,
            retained,
            devices: tensor::devices_since(iterations.first),
            modules: trace.log.as_ref().and_then(modules),
            unlogged: trace.log.as_ref().map_or(0, |log| log.lost),
            events: trace.events,
            hint,
        })
    }
}

/// What each module of the model holds, by the log of a run; `None` where there
/// are no layers, or too many events.
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

/// Numbers of the run, and what they mean.
struct Names {
    symbols: Symbols,
    stacks: Vec<Stack>,
    known: HashMap<Stack, usize>,
    /// Context -> stack and scope.
    contexts: HashMap<u32, (usize, String)>,
}

impl Names {
    fn new(workspace: &Path) -> Self {
        Self {
            symbols: Symbols::open(workspace),
            stacks: Vec::new(),
            known: HashMap::new(),
            contexts: HashMap::new(),
        }
    }

    fn context(&mut self, number: u32) -> (usize, String) {
        if let Some(known) = self.contexts.get(&number) {
            return known.clone();
        }
        let (stack, scope) = match site::context(number) {
            Some(context) => (self.symbols.stack(&context.frames), scope::path(context.scope)),
            None => (Stack::default(), String::new()),
        };
        let place = *self.known.entry(stack.clone()).or_insert_with(|| {
            self.stacks.push(stack);
            self.stacks.len() - 1
        });
        self.contexts.insert(number, (place, scope.clone()));
        (place, scope)
    }

    /// Every place that allocated, sorted, and which one a key is.
    fn places(&mut self, trace: &Trace) -> (Vec<Place>, HashMap<Key, usize>) {
        type Identity = (Space, usize, String, Option<Tensor>);
        let mut merged: BTreeMap<Identity, (Place, Vec<Key>)> = BTreeMap::new();
        let at_peak = trace.spaces.keys().flat_map(|&space| trace.peak(space));
        let at_refusal = trace.refused.values().flat_map(|refused| refused.live.iter().copied());
        let held: HashSet<Key> = at_peak.chain(at_refusal).map(|held| held.key).collect();
        for (&key, total) in &trace.totals {
            // Every block of it turned out to have a shape, and has another key.
            if total.calls == 0 && !held.contains(&key) {
                continue;
            }
            let (stack, scope) = self.context(key.context);
            let tensor = tensor::named(key.shape);
            let operation = self.stacks[stack].operation();
            let identity = (key.space, stack, scope.clone(), tensor.clone());
            let (place, keys) = merged.entry(identity).or_insert_with(|| {
                let place = Place {
                    space: key.space,
                    stack,
                    scope,
                    operation,
                    tensor,
                    calls: 0,
                    bytes: 0,
                    last_calls: 0,
                    last_bytes: 0,
                    last: 0,
                };
                (place, Vec::new())
            });
            place.calls += total.calls;
            place.bytes += total.bytes;
            if total.iteration > place.last {
                place.last = total.iteration;
                (place.last_calls, place.last_bytes) = (0, 0);
            }
            if total.iteration == place.last {
                place.last_calls += total.last_calls;
                place.last_bytes += total.last_bytes;
            }
            keys.push(key);
        }
        let mut merged: Vec<(Place, Vec<Key>)> = merged.into_values().collect();
        // The order of stacks is that of a hash map: sort by what they say.
        merged.sort_by_cached_key(|(place, _)| {
            (
                place.space,
                std::cmp::Reverse(place.bytes),
                self.stacks[place.stack].sorted_by(),
                place.scope.clone(),
                place.tensor.clone(),
            )
        });
        let mut place_of = HashMap::new();
        for (number, (_, keys)) in merged.iter().enumerate() {
            place_of.extend(keys.iter().map(|&key| (key, number)));
        }
        (merged.into_iter().map(|(place, _)| place).collect(), place_of)
    }

    fn holders(&mut self, held: &[Held], now: u32, place_of: &HashMap<Key, usize>) -> Vec<Holder> {
        let mut merged: BTreeMap<(usize, Kind), (u64, u64)> = BTreeMap::new();
        for &Held { key, birth, bytes, count } in held {
            let Some(&place) = place_of.get(&key) else { continue };
            let (stack, _) = self.context(key.context);
            let kind = Kind::of(&self.stacks[stack], birth, now);
            let sum = merged.entry((place, kind)).or_default();
            sum.0 += bytes;
            sum.1 += count;
        }
        let mut holders: Vec<Holder> = merged
            .into_iter()
            .map(|((place, kind), (bytes, count))| Holder { place, kind, bytes, count })
            .collect();
        holders.sort_by_key(|holder| (std::cmp::Reverse(holder.bytes), holder.place));
        holders
    }

    fn refused(
        &mut self,
        space: Space,
        refused: &trace::Refused,
        place_of: &HashMap<Key, usize>,
    ) -> Refused {
        let Origin { birth, context, .. } = refused.block.origin;
        let (stack, scope) = self.context(context);
        let holders = self.holders(&refused.live, birth, place_of);
        Refused { stack, scope, requested: ledger::snapshot(space).refused_bytes, holders }
    }

    fn survivors(&mut self, iterations: Iterations<'_>, space: Space) -> Vec<Survivors> {
        let Iterations { censuses, first, at_end } = iterations;
        let groups: Vec<((usize, String), Group)> =
            Census::survivors_by(censuses, space, first, |context| self.context(context));
        let mut of_place = at_end.of(space, first, |context| self.context(context));
        groups
            .into_iter()
            .map(|((stack, scope), group)| {
                let found = of_place.remove(&(stack, scope.clone())).unwrap_or_default();
                let mut tensors: Vec<Tensor> =
                    found.shapes.into_iter().filter_map(tensor::named).collect();
                tensors.sort();
                tensors.sort_by_key(|tensor| {
                    std::cmp::Reverse(
                        tensor.shape.iter().map(|&dim| u128::from(dim)).product::<u128>(),
                    )
                });
                Survivors { space, stack, scope, tensors, group, held: found.held }
            })
            .collect()
    }

    fn hint(&self, knows_tensors: bool, all_tensors: bool) -> Option<String> {
        let has_lines = self.stacks.is_empty() || self.stacks.iter().any(Stack::has_lines);
        let hint = match (has_lines, knows_tensors, all_tensors) {
            (false, _, _) => {
                "the binary has no line tables: set `debug = \"line-tables-only\"` in its \
                 profile to see files and lines"
            }
            (true, false, _) => {
                "this version of candle lays tensors out in an unknown way: shapes are not known"
            }
            (true, true, false) => "not every tensor could be followed: some shapes are not known",
            (true, true, true) => return None,
        };
        Some(hint.to_owned())
    }
}
