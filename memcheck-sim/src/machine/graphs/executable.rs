//! Executables: a graph's nodes at the time of the instantiation, in the order of their launch.

use std::collections::BTreeMap;

use super::{Graph, Graphs, Node, NodeKind, Step};
use crate::code::{Answer, Code};
use crate::handle::{Handle, Objects};
use crate::machine::Machine;

#[derive(Clone)]
pub(super) struct Executable {
    /// The graph whose memory it uses.
    graph: Handle,
    flags: u64,
    launched: bool,
    nodes: Objects<Node>,
    order: Vec<Handle>,
}

impl std::fmt::Debug for Executable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Executable").field("graph", &self.graph).finish_non_exhaustive()
    }
}

/// `CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH`.
pub(super) const AUTO_FREE_ON_LAUNCH: u64 = 1;
/// `CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD`.
pub(super) const UPLOAD: u64 = 2;
/// `CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH`.
const DEVICE_LAUNCH: u64 = 4;
/// All flags of an instantiation.
const FLAGS: u64 = 15;

/// The outcome of an update: a mismatch changes nothing.
type Update = Result<(), Mismatch>;

/// `CUgraphExecUpdateResult` and the node of the new graph to which it belongs, or 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mismatch {
    Topology(Handle),
    Kind(Handle),
    /// The new graph has memory that another executable uses.
    Memory,
}

impl Mismatch {
    pub(crate) fn number(self) -> i32 {
        match self {
            Self::Topology(_) => 2,
            Self::Kind(_) => 3,
            Self::Memory => 6,
        }
    }

    pub(crate) fn node(self) -> Handle {
        match self {
            Self::Topology(node) | Self::Kind(node) => node,
            Self::Memory => 0,
        }
    }
}

impl Graphs {
    fn executable(&mut self, executable: Handle) -> Answer<&mut Executable> {
        self.executables.get_mut(&executable).ok_or(Code::INVALID_VALUE)
    }

    /// Returns the flags of an executable.
    pub(crate) fn flags(&self, executable: Handle) -> Answer<u64> {
        self.executables.get(&executable).map(|it| it.flags).ok_or(Code::INVALID_VALUE)
    }

    /// Replaces the work of a node of an executable.
    pub(crate) fn set_executable_step(
        &mut self,
        executable: Handle,
        node: Handle,
        kind: NodeKind,
        step: Step,
    ) -> Answer {
        let node = self.executable(executable)?.nodes.get_mut(&node).ok_or(Code::INVALID_VALUE)?;
        if node.kind != kind {
            return Err(Code::INVALID_VALUE);
        }
        node.step = step;
        Ok(())
    }
}

impl Machine {
    /// Makes an executable of a graph. As on a device, a graph with memory has at most one.
    pub(crate) fn instantiate(&mut self, graph: Handle, flags: u64) -> Answer<Handle> {
        if flags & !FLAGS != 0 || flags & DEVICE_LAUNCH != 0 && flags & AUTO_FREE_ON_LAUNCH != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let handle = self.handle();
        let known = self.graphs.open(graph)?;
        if known.has_memory() && !known.executables.is_empty() {
            return Err(Code::NOT_SUPPORTED);
        }
        let order = known.ordered().ok_or(Code::INVALID_VALUE)?;
        known.executables.insert(handle);
        let nodes = known.nodes.clone();
        let executable = Executable { graph, flags, launched: false, nodes, order };
        self.graphs.executables.insert(handle, executable);
        Ok(handle)
    }

    /// Makes an executable of a graph and, if the flags ask for it, prepares it on a stream. A call
    /// that fails leaves no executable behind.
    pub(crate) fn instantiate_on(
        &mut self,
        stream: Handle,
        current: Handle,
        graph: Handle,
        flags: u64,
    ) -> Answer<Handle> {
        if flags & UPLOAD == 0 {
            return self.instantiate(graph, flags);
        }
        self.stream_context(stream, current)?;
        let executable = self.instantiate(graph, flags)?;
        if let Err(code) = self.upload(executable) {
            self.destroy_executable(executable)?;
            return Err(code);
        }
        Ok(executable)
    }

    /// Prepares an executable: makes sure that it has its memory.
    pub(crate) fn upload(&mut self, executable: Handle) -> Answer {
        let graph = self.graphs.executable(executable)?.graph;
        self.touch()?;
        self.commit(graph)
    }

    /// Prepares a launch of an executable, and returns its work.
    ///
    /// As on a device, memory that the graph does not free must be freed before the next launch, or
    /// the executable must have the flag that does so.
    pub(crate) fn start(&mut self, executable: Handle) -> Answer<Vec<Step>> {
        let &mut Executable { graph, flags, launched, .. } = self.graphs.executable(executable)?;
        self.touch()?;
        let known = self.graphs.graphs.get_mut(&graph).ok_or(Code::INVALID_VALUE)?;
        let has_live = known.arenas.values().any(super::Arena::has_live);
        // Before the first launch, the memory is live because of the capture itself.
        if launched && flags & AUTO_FREE_ON_LAUNCH == 0 && has_live {
            return Err(Code::INVALID_VALUE);
        }
        self.commit(graph)?;
        // After `commit`, which can fail for lack of memory.
        if let Some(known) = self.graphs.graphs.get_mut(&graph) {
            known.arenas.iter_mut().for_each(|(_, arena)| arena.revive());
        }
        let executable = self.graphs.executable(executable)?;
        executable.launched = true;
        let mut steps = Vec::with_capacity(executable.order.len());
        let nodes = executable.order.iter().filter_map(|node| executable.nodes.get(node));
        nodes.for_each(|node| flatten(&node.step, &mut steps));
        Ok(steps)
    }

    pub(crate) fn destroy_executable(&mut self, executable: Handle) -> Answer {
        let Executable { graph, .. } =
            self.graphs.executables.remove(&executable).ok_or(Code::INVALID_VALUE)?;
        self.leave(graph, executable);
        Ok(())
    }

    /// Gives an executable the work and the memory of another graph that has the same nodes and
    /// dependencies.
    pub(crate) fn update(
        &mut self,
        executable: Handle,
        graph: Handle,
    ) -> Answer<Result<(), Mismatch>> {
        let known = self.graphs.open(graph)?;
        let of_others = known.executables.iter().any(|&other| other != executable);
        let has_foreign_memory = of_others && known.has_memory();
        let known = self.graphs.graphs.get(&graph).ok_or(Code::INVALID_VALUE)?;
        let current = self.graphs.executables.get(&executable).ok_or(Code::INVALID_VALUE)?;
        if let Err(mismatch) = compare(current, known) {
            return Ok(Err(mismatch));
        }
        if has_foreign_memory {
            return Ok(Err(Mismatch::Memory));
        }
        let steps: Vec<Step> = known.nodes.values().map(|node| node.step.clone()).collect();
        let current = self.graphs.executable(executable)?;
        for ((_, node), step) in current.nodes.iter_mut().zip(steps) {
            node.step = step;
        }
        let former = std::mem::replace(&mut current.graph, graph);
        if former != graph {
            // No launch has allocated the memory of the new graph yet.
            current.launched = false;
            self.graphs.graph(graph)?.executables.insert(executable);
            self.leave(former, executable);
        }
        Ok(Ok(()))
    }

    fn leave(&mut self, graph: Handle, executable: Handle) {
        if let Some(known) = self.graphs.graphs.get_mut(&graph) {
            known.executables.remove(&executable);
        }
        self.reclaim(graph);
    }
}

/// Compares the nodes in the order in which they were added, as the driver does.
fn compare(executable: &Executable, graph: &Graph) -> Update {
    let old: BTreeMap<Handle, usize> = executable.nodes.keys().copied().zip(0..).collect();
    let new: BTreeMap<Handle, usize> = graph.nodes.keys().copied().zip(0..).collect();
    let places = |node: &Node, of: &BTreeMap<Handle, usize>| {
        let mut places: Vec<Option<usize>> =
            node.after.iter().map(|before| of.get(before).copied()).collect();
        places.sort_unstable();
        places
    };
    for (before, (&handle, after)) in executable.nodes.values().zip(&graph.nodes) {
        if before.kind != after.kind {
            return Err(Mismatch::Kind(handle));
        }
        let children = [&before.step, &after.step].map(|step| match step {
            Step::Child(steps) => steps.len(),
            _ => 0,
        });
        if places(before, &old) != places(after, &new) || children[0] != children[1] {
            return Err(Mismatch::Topology(handle));
        }
    }
    if old.len() == new.len() { Ok(()) } else { Err(Mismatch::Topology(0)) }
}

fn flatten(step: &Step, into: &mut Vec<Step>) {
    match step {
        Step::Nothing => {}
        Step::Child(steps) => steps.iter().for_each(|step| flatten(step, into)),
        Step::Device(_) | Step::Host(..) => into.push(step.clone()),
    }
}
