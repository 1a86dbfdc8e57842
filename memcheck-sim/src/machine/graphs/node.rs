//! The nodes of a graph and their dependencies.

use std::collections::{BTreeMap, BTreeSet};

use super::{Graph, Graphs, Step};
use crate::code::{Answer, Code};
use crate::handle::{Handle, Objects};
use crate::machine::Machine;
use memcheck_kernels::Memory as _;

/// `CUgraphNodeType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum NodeKind {
    Kernel = 0,
    Copy = 1,
    Fill = 2,
    Host = 3,
    Child = 4,
    Empty = 5,
    WaitEvent = 6,
    RecordEvent = 7,
    Allocation = 10,
    Free = 11,
}

impl NodeKind {
    fn is_memory(self) -> bool {
        matches!(self, Self::Allocation | Self::Free)
    }
}

#[derive(Clone)]
pub(crate) struct Node {
    pub(super) kind: NodeKind,
    pub(super) step: Step,
    /// The nodes that it depends on, in the order in which they were added.
    pub(super) after: Vec<Handle>,
}

/// A dependency: the second node runs after the first.
pub(crate) type Edge = (Handle, Handle);

impl Graph {
    /// Adds a node whose dependencies are nodes of this graph.
    pub(super) fn add(&mut self, handle: Handle, node: Node) {
        let last = self.nodes.last().map(|(&handle, _)| handle);
        self.has_branches |= last.is_some_and(|last| node.after != [last]);
        self.nodes.insert(handle, node);
    }

    /// True if `node` runs before one of `after`, or is one of them.
    pub(super) fn is_before(&self, node: Handle, after: &[Handle]) -> bool {
        if !self.has_branches {
            // PERF: a capture of one stream is a chain, and can have thousands of allocations.
            return after.iter().any(|&last| node <= last);
        }
        let (mut open, mut seen) = (after.to_vec(), BTreeSet::new());
        while let Some(next) = open.pop() {
            if next == node {
                return true;
            }
            if seen.insert(next) {
                open.extend(self.nodes.get(&next).into_iter().flat_map(|node| &node.after));
            }
        }
        false
    }

    /// Returns the nodes in an order in which each comes after its dependencies, the oldest first;
    /// `None` if the dependencies form a circle.
    pub(super) fn ordered(&self) -> Option<Vec<Handle>> {
        let mut open: BTreeMap<Handle, usize> = BTreeMap::new();
        let mut dependents: Objects<Vec<Handle>> = Objects::new();
        let mut ready = BTreeSet::new();
        for (&handle, node) in &self.nodes {
            open.insert(handle, node.after.len());
            if node.after.is_empty() {
                ready.insert(handle);
            }
            for &before in &node.after {
                dependents.entry(before).or_default().push(handle);
            }
        }
        let mut order = Vec::new();
        while let Some(next) = ready.pop_first() {
            order.push(next);
            for dependent in dependents.remove(&next).unwrap_or_default() {
                let Some(open) = open.get_mut(&dependent) else { continue };
                *open -= 1;
                if *open == 0 {
                    ready.insert(dependent);
                }
            }
        }
        (order.len() == self.nodes.len()).then_some(order)
    }

    fn check(&self, nodes: &[Handle]) -> Answer {
        let is_known = |node: &Handle| self.nodes.contains_key(node);
        let is_twice = |at: usize| nodes[..at].contains(&nodes[at]);
        match nodes.iter().all(is_known) && !(0..nodes.len()).any(is_twice) {
            true => Ok(()),
            false => Err(Code::INVALID_VALUE),
        }
    }

    fn has_memory_nodes(&self) -> bool {
        self.nodes.values().any(|node| node.kind.is_memory())
    }
}

impl Graphs {
    /// Returns a graph to which the program can add nodes.
    pub(super) fn open(&mut self, graph: Handle) -> Answer<&mut Graph> {
        let graph = self.graph(graph)?;
        if graph.capture.is_some() { Err(Code::INVALID_VALUE) } else { Ok(graph) }
    }

    fn graph_of(&mut self, node: Handle) -> Answer<&mut Graph> {
        let mut graphs =
            self.graphs.iter_mut().map(|(_, graph)| graph).filter(|graph| graph.exists);
        graphs.find(|graph| graph.nodes.contains_key(&node)).ok_or(Code::INVALID_VALUE)
    }

    fn node(&mut self, node: Handle) -> Answer<&mut Node> {
        self.graph_of(node)?.nodes.get_mut(&node).ok_or(Code::INVALID_VALUE)
    }

    pub(crate) fn nodes(&mut self, graph: Handle) -> Answer<Vec<Handle>> {
        Ok(self.graph(graph)?.nodes.keys().copied().collect())
    }

    /// Returns the nodes without dependencies.
    pub(crate) fn roots(&mut self, graph: Handle) -> Answer<Vec<Handle>> {
        let nodes = self.graph(graph)?.nodes.iter();
        Ok(nodes.filter(|(_, node)| node.after.is_empty()).map(|(&handle, _)| handle).collect())
    }

    pub(crate) fn edges(&mut self, graph: Handle) -> Answer<Vec<Edge>> {
        let nodes = self.graph(graph)?.nodes.iter();
        Ok(nodes.flat_map(|(&to, node)| node.after.iter().map(move |&from| (from, to))).collect())
    }

    pub(crate) fn kind(&mut self, node: Handle) -> Answer<NodeKind> {
        Ok(self.node(node)?.kind)
    }

    pub(crate) fn dependencies(&mut self, node: Handle) -> Answer<Vec<Handle>> {
        Ok(self.node(node)?.after.clone())
    }

    pub(crate) fn dependents(&mut self, node: Handle) -> Answer<Vec<Handle>> {
        let nodes = self.graph_of(node)?.nodes.iter();
        let dependent = nodes.filter(|(_, other)| other.after.contains(&node));
        Ok(dependent.map(|(&handle, _)| handle).collect())
    }

    pub(crate) fn add_edges(&mut self, graph: Handle, edges: &[Edge]) -> Answer {
        let graph = self.open(graph)?;
        for &(from, to) in edges {
            if from == to {
                return Err(Code::INVALID_VALUE);
            }
            graph.check(&[from, to])?;
            graph.has_branches = true;
            let Some(node) = graph.nodes.get_mut(&to) else { continue };
            if node.after.contains(&from) {
                return Err(Code::INVALID_VALUE);
            }
            node.after.push(from);
        }
        Ok(())
    }

    /// Removes dependencies. As on a device, a graph with memory keeps its own.
    pub(crate) fn remove_edges(&mut self, graph: Handle, edges: &[Edge]) -> Answer {
        let graph = self.open(graph)?;
        if graph.has_memory_nodes() {
            return Err(Code::NOT_SUPPORTED);
        }
        for (from, to) in edges {
            graph.has_branches = true;
            let node = graph.nodes.get_mut(to).ok_or(Code::INVALID_VALUE)?;
            let at = node.after.iter().position(|before| before == from);
            node.after.remove(at.ok_or(Code::INVALID_VALUE)?);
        }
        Ok(())
    }

    /// Removes a node. As on a device, a graph with memory keeps its nodes.
    pub(crate) fn remove_node(&mut self, node: Handle) -> Answer {
        let graph = self.graph_of(node)?;
        if graph.capture.is_some() {
            return Err(Code::INVALID_VALUE);
        }
        if graph.has_memory_nodes() {
            return Err(Code::NOT_SUPPORTED);
        }
        graph.has_branches = true;
        graph.nodes.remove(&node);
        for (_, other) in graph.nodes.iter_mut() {
            other.after.retain(|before| *before != node);
        }
        Ok(())
    }

    /// Replaces the work of a node.
    pub(crate) fn set_step(&mut self, node: Handle, kind: NodeKind, step: Step) -> Answer {
        let node = self.node(node)?;
        if node.kind != kind {
            return Err(Code::INVALID_VALUE);
        }
        node.step = step;
        Ok(())
    }
}

impl Machine {
    /// Adds a node after others.
    pub(crate) fn add_node(
        &mut self,
        graph: Handle,
        kind: NodeKind,
        step: Step,
        after: &[Handle],
    ) -> Answer<Handle> {
        self.graphs.open(graph)?.check(after)?;
        let handle = self.handle();
        self.graphs.open(graph)?.add(handle, Node { kind, step, after: after.to_vec() });
        Ok(handle)
    }

    /// Adds a node with the work of another graph. As on a device, that graph cannot have memory.
    pub(crate) fn add_child(
        &mut self,
        graph: Handle,
        child: Handle,
        after: &[Handle],
    ) -> Answer<Handle> {
        let child = self.graphs.open(child)?;
        if child.has_memory_nodes() {
            return Err(Code::NOT_SUPPORTED);
        }
        let order = child.ordered().ok_or(Code::INVALID_VALUE)?;
        let steps = order.iter().filter_map(|node| Some(child.nodes.get(node)?.step.clone()));
        let step = Step::Child(steps.collect());
        self.add_node(graph, NodeKind::Child, step, after)
    }

    /// Adds a node that allocates on a device, and returns it with its address.
    pub(crate) fn add_allocation(
        &mut self,
        graph: Handle,
        (device, bytes): (usize, u64),
        after: &[Handle],
    ) -> Answer<(Handle, u64)> {
        self.graphs.open(graph)?.check(after)?;
        // A node has no stream whose context the block could belong to.
        let context = self.devices.get(device).ok_or(Code::INVALID_DEVICE)?.primary;
        let address = self.allocate_in_graph(graph, (device, context), bytes, after)?;
        let step = Step::device(move |machine| machine.overwritten(address, bytes));
        Ok((self.add_node(graph, NodeKind::Allocation, step, after)?, address))
    }

    /// Adds a node that frees memory of this or of another graph.
    pub(crate) fn add_free(
        &mut self,
        graph: Handle,
        address: u64,
        after: &[Handle],
    ) -> Answer<Handle> {
        self.graphs.open(graph)?.check(after)?;
        let step = self.graphs.free_step(graph, address)?;
        let node = self.add_node(graph, NodeKind::Free, step, after)?;
        self.graphs.note_free(graph, address, node);
        Ok(node)
    }
}
