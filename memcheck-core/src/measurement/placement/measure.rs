//! Measures the peak of every run of neighboring modules, from a run on one device.

use std::collections::HashMap;

use super::modules::{ModulePart, ModuleParts};
use super::{Module, ModuleScope, Modules};

/// An allocation or a free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The number of the scope that the block was allocated in; 0 for none.
    pub scope: u32,
    /// Call site and iteration, by number. Blocks of the same size and `place` are interchangeable,
    /// so a free does not need to identify its block.
    pub place: (u32, u32),
    /// The bytes of the block.
    pub bytes: u64,
    /// True for an allocation, false for a free.
    pub came: bool,
    /// The iteration of the step; 0 outside of iterations.
    pub iteration: u32,
}

#[derive(Debug, Clone, Copy)]
enum CopyTarget {
    /// Runs that begin with the first module.
    Outside,
    /// Runs that contain a layer.
    All,
    Module(usize),
    /// Runs that begin with this module. They hold a copy of its input.
    Input(usize),
    /// Runs that end with this module, whose output is freed once it is copied to the next.
    Output(usize),
}

/// A change in live bytes that a copy between devices would cause.
#[derive(Debug, Clone, Copy)]
struct CopyChange {
    at: usize,
    after: bool,
    target: CopyTarget,
    bytes: i64,
}

/// Measures the modules; `None` if no scope is a layer.
pub fn measure(scopes: &[ModuleScope], steps: &[Step]) -> Option<Modules> {
    let parts = ModuleParts::from_scopes(scopes)?;
    let order = order(&parts, steps);
    let targets: Vec<CopyTarget> = steps
        .iter()
        .map(|step| match parts.owner(step.scope) {
            ModulePart::Outside => CopyTarget::Outside,
            ModulePart::Replicated => CopyTarget::All,
            ModulePart::Module(module) => CopyTarget::Module(order[module]),
        })
        .collect();
    let mut copies = find_copies(steps, &targets);
    copies.sort_by_key(|copied| (copied.at, copied.after));
    let count = order.len();
    let mut names = vec![String::new(); count];
    let mut layers = vec![false; count];
    for (module, (name, is_layer)) in parts.names.iter().enumerate() {
        names[order[module]].clone_from(name);
        layers[order[module]] = *is_layer;
    }
    let mut runs = Runs::new(&layers);
    let mut copies = copies.into_iter().peekable();
    let mut figures = ModuleFigures::new(names);
    for (at, (step, &target)) in steps.iter().zip(&targets).enumerate() {
        while let Some(copied) = copies.next_if(|copied| copied.at == at && !copied.after) {
            runs.change(copied.target, copied.bytes);
            figures.add_copy(copied);
        }
        let bytes = i64::try_from(step.bytes).unwrap_or(i64::MAX);
        let change = if step.came { bytes } else { -bytes };
        runs.change(target, change);
        figures.change(step, target, change);
        while let Some(copied) = copies.next_if(|copied| copied.at == at) {
            runs.change(copied.target, copied.bytes);
            figures.add_copy(copied);
        }
    }
    Some(figures.finish(runs))
}

/// The position of each module by its first allocation in an iteration. Modules that allocate only
/// outside of iterations come next, and those that never allocate come last.
fn order(parts: &ModuleParts, steps: &[Step]) -> Vec<usize> {
    let mut order = vec![usize::MAX; parts.names.len()];
    let mut next = 0;
    let in_iterations = steps.iter().filter(|step| step.iteration > 0);
    for step in in_iterations.chain(steps).filter(|step| step.came) {
        if let ModulePart::Module(module) = parts.owner(step.scope)
            && order[module] == usize::MAX
        {
            order[module] = next;
            next += 1;
        }
    }
    for place in order.iter_mut().filter(|place| **place == usize::MAX) {
        *place = next;
        next += 1;
    }
    order
}

/// Finds blocks that a module passes to the next one: live when that begins, freed before a third
/// begins. On different devices, the second holds a copy in that time and the first no longer holds
/// it.
fn find_copies(steps: &[Step], targets: &[CopyTarget]) -> Vec<CopyChange> {
    struct Live {
        visit: usize,
        module: usize,
    }
    // The module and the first step of each visit, a period in which one module works.
    let mut visits: Vec<(usize, usize)> = Vec::new();
    let mut live: HashMap<((u32, u32), u64), Vec<Live>> = HashMap::new();
    let mut copies = Vec::new();
    for (at, (step, target)) in steps.iter().zip(targets).enumerate() {
        let CopyTarget::Module(module) = *target else { continue };
        if step.came && visits.last().is_none_or(|(last, _)| *last != module) {
            visits.push((module, at));
        }
        let alike = live.entry((step.place, step.bytes)).or_default();
        if step.came {
            alike.push(Live { visit: visits.len(), module });
            continue;
        }
        let Some(block) = alike.pop() else { continue };
        // Freed in the visit right after its own, which is one of the next module.
        if let Some(&(next, began)) = visits.last()
            && block.visit + 1 == visits.len()
            && next == block.module + 1
        {
            let bytes = i64::try_from(step.bytes).unwrap_or(i64::MAX);
            let (input, output) = (CopyTarget::Input(next), CopyTarget::Output(block.module));
            let change = |at, after, target, bytes| CopyChange { at, after, target, bytes };
            copies.push(change(began, false, input, bytes));
            copies.push(change(began, false, output, -bytes));
            copies.push(change(at, true, input, -bytes));
            copies.push(change(at, true, output, bytes));
        }
    }
    copies
}

struct Runs {
    count: usize,
    live: Vec<i64>,
    peaks: Vec<i64>,
    /// For each module the first layer at or after it; `count` if there is none.
    next_layer: Vec<usize>,
}

impl Runs {
    fn new(layers: &[bool]) -> Self {
        let count = layers.len();
        let next = |from: usize| (from..count).find(|&module| layers[module]).unwrap_or(count);
        Self {
            count,
            live: vec![0; count * count],
            peaks: vec![0; count * count],
            next_layer: (0..count).map(next).collect(),
        }
    }

    fn change(&mut self, target: CopyTarget, bytes: i64) {
        let count = self.count;
        let (firsts, lasts) = match target {
            CopyTarget::Outside => (0..1, 0..count),
            CopyTarget::All => (0..count, 0..count),
            CopyTarget::Module(module) => (0..module + 1, module..count),
            CopyTarget::Input(module) => (module..module + 1, module..count),
            CopyTarget::Output(module) => (0..module + 1, module..module + 1),
        };
        for first in firsts {
            let from = match target {
                CopyTarget::All => self.next_layer[first],
                _ => lasts.start.max(first),
            };
            for last in from..lasts.end {
                let run = first * count + last;
                self.live[run] += bytes;
                self.peaks[run] = self.peaks[run].max(self.live[run]);
            }
        }
    }

    fn peaks(&self) -> Vec<Vec<u64>> {
        let peak = |first: usize, last: usize| unsigned(self.peaks[first * self.count + last]);
        let peaks_from = |first: usize| (first..self.count).map(|last| peak(first, last)).collect();
        (0..self.count).map(peaks_from).collect()
    }
}

struct ModuleFigures {
    modules: Vec<Module>,
    live: Vec<i64>,
    peaks: Vec<i64>,
    inputs: Vec<i64>,
    /// Live bytes and their peak: outside of modules, and in replicated spans.
    others: [(i64, i64); 2],
    working: Option<usize>,
    has_begun: bool,
}

impl ModuleFigures {
    fn new(names: Vec<String>) -> Self {
        let count = names.len();
        let module = |name| Module { name, ..Module::default() };
        Self {
            modules: names.into_iter().map(module).collect(),
            live: vec![0; count],
            peaks: vec![0; count],
            inputs: vec![0; count],
            others: [(0, 0); 2],
            working: None,
            has_begun: false,
        }
    }

    fn add_copy(&mut self, copied: CopyChange) {
        let CopyTarget::Input(module) = copied.target else { return };
        self.inputs[module] += copied.bytes;
        let most = &mut self.modules[module].input;
        *most = (*most).max(unsigned(self.inputs[module]));
    }

    fn change(&mut self, step: &Step, target: CopyTarget, bytes: i64) {
        if step.iteration > 0 && !self.has_begun {
            self.has_begun = true;
            for (module, live) in self.modules.iter_mut().zip(&self.live) {
                module.weights = unsigned(*live);
            }
        }
        let module = match target {
            CopyTarget::Module(module) | CopyTarget::Input(module) | CopyTarget::Output(module) => {
                module
            }
            CopyTarget::Outside | CopyTarget::All => {
                let (live, peak) = &mut self.others[usize::from(matches!(target, CopyTarget::All))];
                *live += bytes;
                *peak = (*peak).max(*live);
                return;
            }
        };
        if step.came && self.working != Some(module) {
            self.working = Some(module);
            self.caches(module);
        }
        self.live[module] += bytes;
        self.peaks[module] = self.peaks[module].max(self.live[module]);
    }

    /// When `begins` starts: bytes that other modules hold, without those that they pass to it.
    fn caches(&mut self, begins: usize) {
        for (place, module) in self.modules.iter_mut().enumerate() {
            if self.has_begun && place != begins {
                let passed_on = if place + 1 == begins { self.inputs[begins] } else { 0 };
                let held = unsigned(self.live[place] - passed_on);
                module.cache = module.cache.max(held.saturating_sub(module.weights));
            }
        }
    }

    fn finish(self, runs: Runs) -> Modules {
        let Self { mut modules, peaks, others: [(_, outside), (_, replicated)], .. } = self;
        for (module, peak) in modules.iter_mut().zip(peaks) {
            let held = module.weights + module.cache;
            module.activations = unsigned(peak).saturating_sub(held);
        }
        Modules {
            modules,
            peaks: runs.peaks(),
            outside: unsigned(outside),
            replicated: unsigned(replicated),
        }
    }
}

fn unsigned(bytes: i64) -> u64 {
    u64::try_from(bytes).unwrap_or(0)
}
