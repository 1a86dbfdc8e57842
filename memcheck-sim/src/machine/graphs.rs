//! CUDA graphs: the work that a stream has captured or a program has added node by node, and the
//! memory of its allocation nodes.
//!
//! A node is a piece of work with the values of its arguments. Adding it computes nothing. A launch
//! of the graph does the work of all nodes in the order of their dependencies, so that its results
//! are known as far as those of the same work without a graph.
//!
//! Memory that an allocation node allocates belongs to the graph. Its address stays the same for
//! every launch, so it stays reserved until the graph and its executable are destroyed. A block
//! that a node has freed is used for later allocation nodes that depend on that node.
//!
//! | figure | here | on a device |
//! |---|---|---|
//! | a graph's memory | in use from the creation of its node on | mapped in chunks of 32 MiB at the first launch |
//! | reuse inside a graph | the smallest free block that fits, as a whole | free ranges are joined and divided |
//! | memory of destroyed graphs | free at once | cached until `cuDeviceGraphMemTrim` |
//!
//! The last column is what an H200 did with driver 580.159.04.

mod arena;
mod capture;
mod executable;
mod memory;
mod node;

use std::collections::BTreeSet;
use std::ffi::c_void;
use std::sync::Arc;

use litemap::LiteMap;

use crate::code::{Answer, Code};
use crate::handle::{Handle, Objects};
use crate::machine::Machine;
use arena::Arena;
use capture::Branch;
pub(crate) use capture::{Capture, Mode};
use executable::Executable;
pub(crate) use executable::Mismatch;
pub(crate) use node::{Edge, Node, NodeKind};

/// `CUhostFn`.
pub(crate) type HostFunction = unsafe extern "C" fn(*mut c_void);

/// Work on the machine.
pub(crate) type Work = dyn Fn(&mut Machine) + Send + Sync;

/// The work of a node.
#[derive(Clone)]
pub(crate) enum Step {
    Device(Arc<Work>),
    /// A function of the program and its data.
    Host(HostFunction, usize),
    /// The work of a child graph.
    Child(Arc<[Step]>),
    Nothing,
}

impl Step {
    pub(crate) fn device(work: impl Fn(&mut Machine) + Send + Sync + 'static) -> Self {
        Self::Device(Arc::new(work))
    }
}

#[derive(Default)]
pub(crate) struct Graph {
    /// In the order in which they were added, because a later handle is a larger number.
    nodes: Objects<Node>,
    /// True if not every node depends on the one before it.
    has_branches: bool,
    /// The memory on each device, by ordinal.
    arenas: LiteMap<usize, Arena>,
    /// The capture in progress.
    capture: Option<Capture>,
    /// False once the program has destroyed it.
    exists: bool,
    executables: BTreeSet<Handle>,
}

/// The graphs of a machine.
#[derive(Debug, Default)]
pub(crate) struct Graphs {
    /// The graphs that exist, or whose executable or memory does.
    graphs: Objects<Graph>,
    executables: Objects<Executable>,
    /// The streams that are part of a capture.
    capturing: Objects<Branch>,
    /// The events that were recorded in a capture.
    events: Objects<Branch>,
    /// The highest sum of memory since the last reset, for each device.
    highest: LiteMap<usize, u64>,
}

impl std::fmt::Debug for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Graph").field("nodes", &self.nodes.len()).finish()
    }
}

impl Graph {
    fn has_memory(&self) -> bool {
        self.arenas.values().any(|arena| !arena.is_empty())
    }
}

impl Graphs {
    fn graph(&mut self, graph: Handle) -> Answer<&mut Graph> {
        self.graphs.get_mut(&graph).filter(|it| it.exists).ok_or(Code::INVALID_VALUE)
    }

    /// Returns the bytes that the graphs of a device hold.
    pub(crate) fn used(&self, device: usize) -> u64 {
        self.graphs.values().filter_map(|graph| graph.arenas.get(&device)).map(Arena::held).sum()
    }

    /// True if a block of a graph starts at `address`.
    pub(crate) fn owns(&self, address: u64) -> bool {
        let arenas = self.graphs.values().flat_map(|graph| graph.arenas.values());
        arenas.into_iter().any(|arena| arena.contains(address))
    }

    /// Returns the highest number of bytes that the graphs of a device have held.
    pub(crate) fn highest(&self, device: usize) -> u64 {
        self.highest.get(&device).copied().unwrap_or(0)
    }

    pub(crate) fn reset_highest(&mut self, device: usize) {
        self.highest.insert(device, self.used(device));
    }

    fn note_highest(&mut self, device: usize) {
        let used = self.used(device);
        let highest = self.highest.entry(device).or_default();
        *highest = used.max(*highest);
    }
}

impl Machine {
    /// Does work on `stream`, or records it as a node if the stream is being captured.
    pub(crate) fn submit(
        &mut self,
        stream: Handle,
        kind: NodeKind,
        work: impl Fn(&mut Self) + Send + Sync + 'static,
    ) {
        match self.graphs.capture_of(stream) {
            None => work(self),
            Some(_) => drop(self.record(stream, kind, Step::device(work))),
        }
    }

    /// Records a host function, and returns whether the stream is being captured.
    pub(crate) fn submit_host(
        &mut self,
        stream: Handle,
        function: HostFunction,
        data: usize,
    ) -> bool {
        let is_captured = self.graphs.capture_of(stream).is_some();
        if is_captured {
            self.record(stream, NodeKind::Host, Step::Host(function, data));
        }
        is_captured
    }

    /// Creates an empty graph.
    pub(crate) fn create_graph(&mut self) -> Handle {
        let handle = self.handle();
        self.graphs.graphs.insert(handle, Graph { exists: true, ..Graph::default() });
        handle
    }

    pub(crate) fn destroy_graph(&mut self, graph: Handle) -> Answer {
        let known = self.graphs.graph(graph)?;
        if known.capture.is_some() {
            return Err(Code::INVALID_VALUE);
        }
        known.exists = false;
        self.reclaim(graph);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
