//! CUDA graphs: the work that a stream has captured, and the memory of its allocation nodes.
//!
//! A capture records each piece of work with the values of its arguments, and computes nothing. A
//! launch of the graph does the recorded work in its order, so that its results are known as far as
//! those of the same work without a graph.
//!
//! Memory that is allocated during a capture belongs to the graph. Its address stays the same for
//! every launch, so it stays reserved until the graph and its executable are destroyed. A block that
//! the capture has freed again is used for later requests of the same capture.
//!
//! | figure | here | on a device |
//! |---|---|---|
//! | a graph's memory | in use from the capture on | mapped at the first upload or launch |
//! | reuse inside a capture | the smallest free range that fits | the driver's choice [hw?] |
//! | memory of destroyed graphs | free at once | cached until `cuDeviceGraphMemTrim` |

mod arena;
mod capture;

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::Arc;

use crate::code::{Answer, Code};
use crate::compute::Memory as _;
use crate::handle::Handle;
use crate::machine::Machine;
use arena::Arena;
pub(crate) use capture::{Capture, Mode};

/// `CUhostFn`.
pub(crate) type HostFunction = unsafe extern "C" fn(*mut c_void);

/// Work on the machine.
type Work = dyn Fn(&mut Machine) + Send + Sync;

/// A recorded piece of work.
#[derive(Clone)]
pub(crate) enum Step {
    Device(Arc<Work>),
    /// A function of the program and its data.
    Host(HostFunction, usize),
}

#[derive(Default)]
pub(crate) struct Graph {
    /// The ordinal of the device whose memory the graph uses.
    device: usize,
    steps: Vec<Step>,
    arena: Arena,
    /// The capture in progress.
    capture: Option<Capture>,
    /// False once the program has destroyed it.
    exists: bool,
    executable: Option<Handle>,
}

#[derive(Debug, Clone, Copy)]
struct Executable {
    graph: Handle,
    flags: u64,
    launched: bool,
}

/// The graphs of a machine.
#[derive(Debug, Default)]
pub(crate) struct Graphs {
    /// The graphs that exist, or whose executable or memory does.
    graphs: BTreeMap<Handle, Graph>,
    executables: BTreeMap<Handle, Executable>,
    /// The streams that are part of a capture, with its graph.
    capturing: BTreeMap<Handle, Handle>,
    /// The events that were recorded in a capture, with its graph.
    events: BTreeMap<Handle, Handle>,
    /// The highest sum of memory since the last reset, for each device.
    highest: BTreeMap<usize, u64>,
}

impl std::fmt::Debug for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let steps = self.steps.len();
        f.debug_struct("Graph").field("device", &self.device).field("steps", &steps).finish()
    }
}

/// `CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH`.
const AUTO_FREE_ON_LAUNCH: u64 = 1;
/// `CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH`.
const DEVICE_LAUNCH: u64 = 4;
/// All flags of an instantiation.
const FLAGS: u64 = 15;

impl Graphs {
    fn graph(&mut self, graph: Handle) -> Answer<&mut Graph> {
        self.graphs.get_mut(&graph).filter(|it| it.exists).ok_or(Code::INVALID_VALUE)
    }

    /// Returns the flags of an executable.
    pub(crate) fn flags(&self, executable: Handle) -> Answer<u64> {
        self.executables.get(&executable).map(|it| it.flags).ok_or(Code::INVALID_VALUE)
    }

    /// Returns the bytes that the graphs of a device hold.
    pub(crate) fn used(&self, device: usize) -> u64 {
        let graphs = self.graphs.values().filter(|graph| graph.device == device);
        graphs.map(|graph| graph.arena.held()).sum()
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
    /// Does work on `stream`, or records it if the stream is being captured.
    pub(crate) fn submit(
        &mut self,
        stream: Handle,
        work: impl Fn(&mut Self) + Send + Sync + 'static,
    ) {
        match self.graphs.capture_of(stream) {
            None => work(self),
            Some(graph) => self.graphs.record(graph, Step::Device(Arc::new(work))),
        }
    }

    /// Records a host function, and returns whether the stream is being captured.
    pub(crate) fn submit_host(
        &mut self,
        stream: Handle,
        function: HostFunction,
        data: usize,
    ) -> bool {
        let graph = self.graphs.capture_of(stream);
        if let Some(graph) = graph {
            self.graphs.record(graph, Step::Host(function, data));
        }
        graph.is_some()
    }

    /// Makes an executable of a graph. As on a device, a graph with memory has at most one.
    pub(crate) fn instantiate(&mut self, graph: Handle, flags: u64) -> Answer<Handle> {
        if flags & !FLAGS != 0 || flags & DEVICE_LAUNCH != 0 && flags & AUTO_FREE_ON_LAUNCH != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let handle = self.handle();
        let known = self.graphs.graph(graph)?;
        if known.capture.is_some() {
            return Err(Code::INVALID_VALUE);
        }
        if known.executable.is_some() {
            return Err(Code::NOT_SUPPORTED);
        }
        known.executable = Some(handle);
        self.graphs.executables.insert(handle, Executable { graph, flags, launched: false });
        Ok(handle)
    }

    /// Prepares an executable: makes sure that it has its memory.
    pub(crate) fn upload(&mut self, executable: Handle) -> Answer {
        let Executable { graph, .. } =
            *self.graphs.executables.get(&executable).ok_or(Code::INVALID_VALUE)?;
        self.touch()?;
        self.commit(graph)
    }

    /// Prepares a launch of an executable on `stream`, and returns its work.
    ///
    /// As on a device, memory that the graph does not free must be freed before the next launch, or
    /// the executable must have the flag that does so.
    pub(crate) fn start(&mut self, executable: Handle) -> Answer<Vec<Step>> {
        let Executable { graph, flags, launched } =
            *self.graphs.executables.get(&executable).ok_or(Code::INVALID_VALUE)?;
        self.touch()?;
        let known = self.graphs.graphs.get_mut(&graph).ok_or(Code::INVALID_VALUE)?;
        if launched && flags & AUTO_FREE_ON_LAUNCH == 0 && known.arena.has_live() {
            return Err(Code::INVALID_VALUE);
        }
        self.commit(graph)?;
        if let Some(executable) = self.graphs.executables.get_mut(&executable) {
            executable.launched = true;
        }
        let known = self.graphs.graphs.get_mut(&graph).ok_or(Code::INVALID_VALUE)?;
        known.arena.revive();
        Ok(known.steps.clone())
    }

    pub(crate) fn destroy_executable(&mut self, executable: Handle) -> Answer {
        let Executable { graph, .. } =
            self.graphs.executables.remove(&executable).ok_or(Code::INVALID_VALUE)?;
        if let Some(known) = self.graphs.graphs.get_mut(&graph) {
            known.executable = None;
        }
        self.reclaim(graph);
        Ok(())
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

    /// Returns the number of recorded pieces of work.
    pub(crate) fn count_nodes(&mut self, graph: Handle) -> Answer<usize> {
        Ok(self.graphs.graph(graph)?.steps.len())
    }

    /// Frees memory of graphs on a device that no work uses. A later launch takes it again.
    pub(crate) fn trim_graphs(&mut self, device: usize) -> Answer {
        self.touch()?;
        for (_, graph) in self.graphs.graphs.iter_mut().filter(|(_, graph)| graph.device == device)
        {
            if graph.capture.is_none() {
                for block in graph.arena.decommit() {
                    self.devices[device].memory.set_in_use(block, false)?;
                    self.values.forget_block(block);
                }
            }
        }
        Ok(())
    }

    /// Takes the memory of a graph again after it was trimmed.
    fn commit(&mut self, graph: Handle) -> Answer {
        let Some(known) = self.graphs.graphs.get_mut(&graph) else { return Ok(()) };
        let device = known.device;
        while let Some(block) = known.arena.uncommitted() {
            self.devices[device].memory.set_in_use(block, true)?;
            known.arena.commit(block);
        }
        self.graphs.note_highest(device);
        Ok(())
    }

    /// Allocates a memory node during the capture of `graph`.
    pub(crate) fn allocate_in_graph(
        &mut self,
        graph: Handle,
        context: Handle,
        bytes: u64,
    ) -> Answer<u64> {
        let known = self.graphs.graphs.get_mut(&graph).ok_or(Code::INVALID_VALUE)?;
        if let Some(address) = known.arena.reuse(bytes) {
            return Ok(address);
        }
        let device = known.device;
        let address = self.allocate_graph_block(device, bytes, context)?;
        if let Some(known) = self.graphs.graphs.get_mut(&graph) {
            known.arena.add(address, bytes);
        }
        self.graphs.note_highest(device);
        Ok(address)
    }

    /// Records the free of a block if `stream` is being captured, and returns whether it is. As on
    /// a device, a capture can only free memory of a graph.
    pub(crate) fn free_on(&mut self, stream: Handle, address: u64) -> Answer<bool> {
        if self.graphs.capture_of(stream).is_none() || address == 0 {
            return Ok(false);
        }
        let bytes = self.free_in_graph(address).ok_or(Code::INVALID_VALUE)?;
        self.submit(stream, move |machine| machine.overwritten(address, bytes));
        Ok(true)
    }

    /// Frees memory of a graph, and returns its bytes; `None` if no graph has allocated the address.
    pub(crate) fn free_in_graph(&mut self, address: u64) -> Option<u64> {
        let mut graphs = self.graphs.graphs.iter_mut();
        let (graph, bytes) =
            graphs.find_map(|(&graph, known)| Some((graph, known.arena.free(address)?)))?;
        self.reclaim(graph);
        Some(bytes)
    }

    /// Frees the memory of a graph that neither the program nor an executable uses any longer.
    /// Blocks that the program has not freed stay.
    fn reclaim(&mut self, graph: Handle) {
        let Some(known) = self.graphs.graphs.get_mut(&graph) else { return };
        if known.exists || known.executable.is_some() {
            return;
        }
        let (device, unused) = (known.device, known.arena.take_unused());
        if known.arena.is_empty() {
            self.graphs.graphs.remove(&graph);
        }
        for block in unused {
            // A context that was destroyed has taken its blocks along.
            let _ = self.devices[device].memory.release(block);
            self.values.forget_block(block);
        }
    }
}

#[cfg(test)]
mod tests;
