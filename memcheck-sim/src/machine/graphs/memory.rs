//! The memory of graphs: allocation and free by nodes, trims, and its end.

use super::{Graphs, Step};
use crate::code::{Answer, Code};
use crate::handle::Handle;
use crate::machine::Machine;
use memcheck_kernels::Memory as _;

impl Graphs {
    /// Returns the work of a node of `graph` that frees `address`.
    pub(super) fn free_step(&self, graph: Handle, address: u64) -> Answer<Step> {
        let arenas =
            |graph: &Handle| self.graphs.get(graph).into_iter().flat_map(|it| it.arenas.values());
        // Own memory stays reserved for the next launch, so that its node frees nothing.
        if let Some(bytes) = arenas(&graph).find_map(|arena| arena.unfreed(address)) {
            return Ok(Step::device(move |machine| machine.overwritten(address, bytes)));
        }
        let others = self.graphs.keys().filter(|&&other| other != graph);
        match others.flat_map(arenas).any(|arena| arena.unfreed(address).is_some()) {
            // The memory of another graph is freed by each launch.
            true => Ok(Step::device(move |machine| {
                if let Some(bytes) = machine.free_in_graph(address) {
                    machine.overwritten(address, bytes);
                }
            })),
            false => Err(Code::INVALID_VALUE),
        }
    }

    /// Notes that `node` frees the block of `graph` at `address`, if that is its own.
    pub(super) fn note_free(&mut self, graph: Handle, address: u64, node: Handle) {
        if let Some(graph) = self.graphs.get_mut(&graph) {
            graph.arenas.iter_mut().for_each(|(_, arena)| arena.free_by(node, address));
        }
    }
}

impl Machine {
    /// Allocates memory for a node of `graph` that runs after others.
    pub(super) fn allocate_in_graph(
        &mut self,
        graph: Handle,
        (device, context): (usize, Handle),
        bytes: u64,
        after: &[Handle],
    ) -> Answer<u64> {
        let known = self.graphs.graphs.get_mut(&graph).ok_or(Code::INVALID_VALUE)?;
        // Taken out, because `is_before` reads the rest of the graph.
        let mut arena = known.arenas.remove(&device).unwrap_or_default();
        let reused = arena.reuse(bytes, |node| known.is_before(node, after));
        known.arenas.insert(device, arena);
        if let Some(address) = reused {
            return Ok(address);
        }
        let address = self.allocate_graph_block(device, bytes, context)?;
        if let Some(known) = self.graphs.graphs.get_mut(&graph) {
            known.arenas.entry(device).or_default().add(address, bytes);
        }
        self.graphs.note_highest(device);
        Ok(address)
    }

    /// Allocates memory during the capture of `stream`. The program holds it from now on.
    pub(crate) fn allocate_captured(
        &mut self,
        stream: Handle,
        graph: Handle,
        context: Handle,
        bytes: u64,
    ) -> Answer<u64> {
        let device = self.context(context)?.device;
        let after = self.graphs.last_of(stream);
        let address = self.allocate_in_graph(graph, (device, context), bytes, &after)?;
        let graph = self.graphs.graphs.get_mut(&graph).ok_or(Code::INVALID_VALUE)?;
        if let Some(arena) = graph.arenas.get_mut(&device) {
            arena.hold(address);
        }
        let step = Step::device(move |machine| machine.overwritten(address, bytes));
        self.record(stream, super::NodeKind::Allocation, step);
        Ok(address)
    }

    /// Records the free of a block if `stream` is being captured, and returns whether it is. As on
    /// a device, a capture can only free memory of a graph.
    pub(crate) fn free_on(&mut self, stream: Handle, address: u64) -> Answer<bool> {
        let Some(graph) = self.graphs.capture_of(stream).filter(|_| address != 0) else {
            return Ok(false);
        };
        let step = self.graphs.free_step(graph, address)?;
        if let Some(node) = self.record(stream, super::NodeKind::Free, step) {
            self.graphs.note_free(graph, address, node);
        }
        Ok(true)
    }

    /// Frees memory of a graph, and returns its bytes; `None` if no graph has allocated the
    /// address.
    pub(crate) fn free_in_graph(&mut self, address: u64) -> Option<u64> {
        let (graph, bytes) = self.graphs.graphs.iter_mut().find_map(|(&graph, known)| {
            let bytes = known.arenas.iter_mut().find_map(|(_, arena)| arena.free(address))?;
            Some((graph, bytes))
        })?;
        self.reclaim(graph);
        Some(bytes)
    }

    /// Frees memory of graphs on a device that no work uses. A later launch takes it again.
    pub(crate) fn trim_graphs(&mut self, device: usize) -> Answer {
        self.touch()?;
        let finished = self
            .graphs
            .graphs
            .iter_mut()
            .map(|(_, graph)| graph)
            .filter(|graph| graph.capture.is_none());
        for arena in finished.filter_map(|graph| graph.arenas.get_mut(&device)) {
            for block in arena.decommit() {
                self.devices[device].memory.set_in_use(block, false)?;
                // A launch takes the block again, but not its contents.
                self.values.forget_block(block);
            }
        }
        Ok(())
    }

    /// Takes the memory of a graph again after it was trimmed.
    pub(super) fn commit(&mut self, graph: Handle) -> Answer {
        let Some(known) = self.graphs.graphs.get_mut(&graph) else { return Ok(()) };
        // Copied, because `note_highest` reads all graphs.
        let devices: Vec<usize> = known.arenas.keys().copied().collect();
        for (&device, arena) in known.arenas.iter_mut() {
            while let Some(block) = arena.uncommitted() {
                self.devices[device].memory.set_in_use(block, true)?;
                arena.commit(block);
            }
        }
        devices.into_iter().for_each(|device| self.graphs.note_highest(device));
        Ok(())
    }

    /// Frees the memory of a graph that neither the program nor an executable uses any longer.
    /// Blocks that the program has not freed stay.
    pub(super) fn reclaim(&mut self, graph: Handle) {
        let Some(known) = self.graphs.graphs.get_mut(&graph) else { return };
        if known.exists || !known.executables.is_empty() {
            return;
        }
        let mut unused = Vec::new();
        for (&device, arena) in known.arenas.iter_mut() {
            unused.extend(arena.take_unused().into_iter().map(|block| (device, block)));
        }
        known.arenas.retain(|_, arena| !arena.is_empty());
        if known.arenas.is_empty() {
            self.graphs.graphs.remove(&graph);
        }
        for (device, block) in unused {
            // A context that was destroyed has taken its blocks along.
            let _ = self.devices[device].memory.release(block);
            self.values.forget_block(block);
        }
    }
}
