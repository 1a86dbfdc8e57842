//! The peak of every run of neighbouring modules, from every allocation and free
//! of a run on one device.

use std::collections::HashMap;

use super::modules::{Part, Parts};
use super::{Module, Modules, Scope};

/// A block came or went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The scope that it was allocated in, by number; 0 is none.
    pub scope: u32,
    /// The place in the program and the iteration that it was allocated in, by
    /// number. Blocks of one size for which these are the same are alike: which
    /// of them went nobody needs to know.
    pub place: (u32, u32),
    /// Its bytes.
    pub bytes: u64,
    /// Whether it came, or went.
    pub came: bool,
    /// The iteration that it happened in; 0 is outside of them.
    pub iteration: u32,
}

/// Whom a change is counted for.
#[derive(Debug, Clone, Copy)]
enum To {
    /// Runs that begin with the first module.
    Outside,
    /// Runs with a layer.
    All,
    /// Runs with this module.
    Module(usize),
    /// Runs that begin with this module: a copy of what was handed to it.
    Input(usize),
    /// Runs that end with this module: what it handed on is gone once it is copied.
    Output(usize),
}

/// A change beside those of the steps.
#[derive(Debug, Clone, Copy)]
struct Copied {
    /// The step.
    at: usize,
    /// Whether it comes after that step, or before.
    after: bool,
    to: To,
    bytes: i64,
}

/// Measures the modules; `None` where no scope is a layer.
pub fn measure(scopes: &[Scope], steps: &[Step]) -> Option<Modules> {
    let parts = Parts::read(scopes)?;
    let order = order(&parts, steps);
    let to: Vec<To> = steps
        .iter()
        .map(|step| match parts.of(step.scope) {
            Part::Outside => To::Outside,
            Part::Replicated => To::All,
            Part::Module(module) => To::Module(order[module]),
        })
        .collect();
    let mut copied = handed_on(steps, &to);
    copied.sort_by_key(|copied| (copied.at, copied.after));
    let count = order.len();
    let mut names = vec![String::new(); count];
    let mut layers = vec![false; count];
    for (module, (name, is_layer)) in parts.names.iter().enumerate() {
        names[order[module]].clone_from(name);
        layers[order[module]] = *is_layer;
    }
    let mut runs = Runs::new(&layers);
    let mut copied = copied.into_iter().peekable();
    let mut figures = Figures::new(names);
    for (at, (step, &to)) in steps.iter().zip(&to).enumerate() {
        while let Some(copied) = copied.next_if(|copied| copied.at == at && !copied.after) {
            runs.change(copied.to, copied.bytes);
            figures.copied(copied);
        }
        let bytes = i64::try_from(step.bytes).unwrap_or(i64::MAX);
        let change = if step.came { bytes } else { -bytes };
        runs.change(to, change);
        figures.change(step, to, change);
        while let Some(copied) = copied.next_if(|copied| copied.at == at) {
            runs.change(copied.to, copied.bytes);
            figures.copied(copied);
        }
    }
    Some(figures.finish(runs))
}

/// The place of each module in the order in which they first work in an
/// iteration; those that never do come last, as they were made.
fn order(parts: &Parts, steps: &[Step]) -> Vec<usize> {
    let mut order = vec![usize::MAX; parts.names.len()];
    let mut next = 0;
    let in_iterations = steps.iter().filter(|step| step.iteration > 0);
    for step in in_iterations.chain(steps).filter(|step| step.came) {
        if let Part::Module(module) = parts.of(step.scope)
            && order[module] == usize::MAX
        {
            order[module] = next;
            next += 1;
        }
    }
    // Spans that nothing was allocated in.
    for place in order.iter_mut().filter(|place| **place == usize::MAX) {
        *place = next;
        next += 1;
    }
    order
}

/// What modules hand to the next: a block which was allocated when the one
/// before worked, is live when the next begins, and gone before another one does.
/// Between devices the next one holds a copy for as long, and the one before
/// nothing any more.
fn handed_on(steps: &[Step], to: &[To]) -> Vec<Copied> {
    struct Live {
        visit: usize,
        module: usize,
    }
    // Module and first step of each time that a module works.
    let mut visits: Vec<(usize, usize)> = Vec::new();
    let mut live: HashMap<((u32, u32), u64), Vec<Live>> = HashMap::new();
    let mut copied = Vec::new();
    for (at, (step, to)) in steps.iter().zip(to).enumerate() {
        let To::Module(module) = *to else { continue };
        if step.came && visits.last().is_none_or(|(last, _)| *last != module) {
            visits.push((module, at));
        }
        let alike = live.entry((step.place, step.bytes)).or_default();
        if step.came {
            alike.push(Live { visit: visits.len(), module });
            continue;
        }
        let Some(block) = alike.pop() else { continue };
        // It is gone in the very next visit, which is that of the next module.
        if let Some(&(next, began)) = visits.last()
            && block.visit + 1 == visits.len()
            && next == block.module + 1
        {
            let bytes = i64::try_from(step.bytes).unwrap_or(i64::MAX);
            let (input, output) = (To::Input(next), To::Output(block.module));
            let change = |at, after, to, bytes| Copied { at, after, to, bytes };
            copied.push(change(began, false, input, bytes));
            copied.push(change(began, false, output, -bytes));
            copied.push(change(at, true, input, -bytes));
            copied.push(change(at, true, output, bytes));
        }
    }
    copied
}

/// Live bytes and peaks of every run of neighbours.
struct Runs {
    count: usize,
    /// By first module and last.
    live: Vec<i64>,
    peaks: Vec<i64>,
    /// For each module the next that is a layer, or itself.
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

    fn change(&mut self, to: To, bytes: i64) {
        let count = self.count;
        let (firsts, lasts) = match to {
            To::Outside => (0..1, 0..count),
            To::All => (0..count, 0..count),
            To::Module(module) => (0..module + 1, module..count),
            To::Input(module) => (module..module + 1, module..count),
            To::Output(module) => (0..module + 1, module..module + 1),
        };
        for first in firsts {
            let from = match to {
                To::All => self.next_layer[first],
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
        let of = |first: usize| (first..self.count).map(|last| peak(first, last)).collect();
        (0..self.count).map(of).collect()
    }
}

/// What is told of single modules.
struct Figures {
    modules: Vec<Module>,
    live: Vec<i64>,
    peaks: Vec<i64>,
    inputs: Vec<i64>,
    /// Outside of modules, and replicated: live bytes and their peak.
    others: [(i64, i64); 2],
    working: Option<usize>,
    begun: bool,
}

impl Figures {
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
            begun: false,
        }
    }

    fn copied(&mut self, copied: Copied) {
        let To::Input(module) = copied.to else { return };
        self.inputs[module] += copied.bytes;
        let most = &mut self.modules[module].input;
        *most = (*most).max(unsigned(self.inputs[module]));
    }

    fn change(&mut self, step: &Step, to: To, bytes: i64) {
        if step.iteration > 0 && !self.begun {
            self.begun = true;
            for (module, live) in self.modules.iter_mut().zip(&self.live) {
                module.weights = unsigned(*live);
            }
        }
        let module = match to {
            To::Module(module) | To::Input(module) | To::Output(module) => module,
            To::Outside | To::All => {
                let (live, peak) = &mut self.others[usize::from(matches!(to, To::All))];
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

    /// What modules hold while another begins to work, without what they hand on
    /// to it.
    fn caches(&mut self, begins: usize) {
        for (place, module) in self.modules.iter_mut().enumerate() {
            if self.begun && place != begins {
                let handed_on = if place + 1 == begins { self.inputs[begins] } else { 0 };
                let held = unsigned(self.live[place] - handed_on);
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
