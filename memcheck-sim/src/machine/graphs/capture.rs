//! A capture in progress: the streams that are part of it, and the calls that it forbids.

use std::thread::ThreadId;

use super::{Graph, Graphs, Node, NodeKind, Step};
use crate::code::{Answer, Code};
use crate::handle::Handle;
use crate::machine::Machine;

/// `CUstreamCaptureMode`: the threads that must not make an unsafe call during the capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Global,
    ThreadLocal,
    Relaxed,
}

impl Mode {
    pub(crate) fn of(number: u32) -> Answer<Self> {
        Ok(match number {
            0 => Self::Global,
            1 => Self::ThreadLocal,
            2 => Self::Relaxed,
            _ => return Err(Code::INVALID_VALUE),
        })
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Capture {
    /// The stream that began it, and must end it.
    origin: Handle,
    thread: ThreadId,
    mode: Mode,
    is_invalid: bool,
}

/// The end of the work that a stream has recorded, or an event stands for.
#[derive(Debug, Clone)]
pub(super) struct Branch {
    graph: Handle,
    /// The nodes that the next one depends on.
    last: Vec<Handle>,
}

impl Graphs {
    /// Returns the graph into which a stream is being captured.
    pub(crate) fn capture_of(&self, stream: Handle) -> Option<Handle> {
        // PERF: programs without captures call this for each kernel.
        if self.capturing.is_empty() {
            None
        } else {
            self.capturing.get(&stream).map(|it| it.graph)
        }
    }

    /// Returns `CUstreamCaptureStatus`.
    pub(crate) fn status(&self, stream: Handle) -> i32 {
        let capture = self.capture_of(stream).and_then(|graph| self.graphs.get(&graph)?.capture);
        capture.map_or(0, |capture| if capture.is_invalid { 2 } else { 1 })
    }

    /// Returns the nodes that the next one of a stream depends on.
    pub(super) fn last_of(&self, stream: Handle) -> Vec<Handle> {
        self.capturing.get(&stream).map(|branch| branch.last.clone()).unwrap_or_default()
    }

    fn invalidate(&mut self, graph: Handle) {
        if let Some(capture) = self.graphs.get_mut(&graph).and_then(|it| it.capture.as_mut()) {
            capture.is_invalid = true;
        }
    }

    /// Refuses a call that waits for a stream while it is being captured.
    pub(crate) fn forbid_wait(&mut self, stream: Handle) -> Answer {
        match self.capture_of(stream) {
            None => Ok(()),
            Some(graph) => {
                self.invalidate(graph);
                Err(Code::CAPTURE_UNSUPPORTED)
            }
        }
    }

    /// Refuses a call that could wait for any stream, such as `cuMemAlloc`, if the mode of a
    /// capture forbids it on this thread.
    pub(crate) fn forbid_unsafe(&mut self) -> Answer {
        if self.capturing.is_empty() {
            return Ok(());
        }
        let thread = std::thread::current().id();
        let mut result = Ok(());
        for capture in self.graphs.iter_mut().filter_map(|(_, graph)| graph.capture.as_mut()) {
            let forbids = match capture.mode {
                Mode::Global => true,
                Mode::ThreadLocal => capture.thread == thread,
                Mode::Relaxed => false,
            };
            if forbids {
                capture.is_invalid = true;
                result = Err(Code::CAPTURE_UNSUPPORTED);
            }
        }
        result
    }

    /// Notes that an event was recorded on a stream.
    pub(crate) fn record_event(&mut self, event: Handle, stream: Handle) {
        match self.capturing.get(&stream) {
            Some(branch) => drop(self.events.insert(event, branch.clone())),
            // PERF: programs without captures record many events.
            None if self.events.is_empty() => {}
            // An event stands for its last record only.
            None => drop(self.events.remove(&event)),
        }
    }

    /// Refuses a call of the host about an event that is part of a capture.
    pub(crate) fn forbid_captured_event(&self, event: Handle) -> Answer {
        if self.events.contains_key(&event) { Err(Code::CAPTURED_EVENT) } else { Ok(()) }
    }

    /// Makes a stream wait for an event. A stream that waits for an event of a capture becomes part
    /// of the capture. A stream of a capture must not wait for an event from before it.
    pub(crate) fn wait_event(&mut self, stream: Handle, event: Handle) -> Answer {
        match (self.capturing.get_mut(&stream), self.events.get(&event)) {
            (None, None) => Ok(()),
            (None, Some(branch)) => {
                self.capturing.insert(stream, branch.clone());
                Ok(())
            }
            (Some(own), Some(other)) if own.graph == other.graph => {
                let new = other.last.iter().filter(|node| !own.last.contains(node));
                let new: Vec<Handle> = new.copied().collect();
                own.last.extend(new);
                Ok(())
            }
            (Some(own), other) => {
                let code = other.map_or(Code::CAPTURE_ISOLATION, |_| Code::CAPTURE_MERGE);
                let graph = own.graph;
                self.invalidate(graph);
                Err(code)
            }
        }
    }
}

impl Machine {
    /// Records a node if `stream` is being captured, and returns it.
    pub(super) fn record(&mut self, stream: Handle, kind: NodeKind, step: Step) -> Option<Handle> {
        let handle = self.handle();
        let branch = self.graphs.capturing.get_mut(&stream)?;
        let after = std::mem::replace(&mut branch.last, vec![handle]);
        let graph = self.graphs.graphs.get_mut(&branch.graph)?;
        graph.add(handle, Node { kind, step, after });
        Some(handle)
    }

    /// Begins a capture, and returns the handle of its graph.
    pub(crate) fn begin_capture(
        &mut self,
        stream: Handle,
        current: Handle,
        mode: Mode,
    ) -> Answer<Handle> {
        self.stream_context(stream, current)?;
        // The legacy stream waits for all others, so it cannot be captured.
        if stream < 2 {
            return Err(Code::CAPTURE_UNSUPPORTED);
        }
        if let Some(graph) = self.graphs.capture_of(stream) {
            self.graphs.invalidate(graph);
            return Err(Code::ILLEGAL_STATE);
        }
        let handle = self.handle();
        let thread = std::thread::current().id();
        let capture = Capture { origin: stream, thread, mode, is_invalid: false };
        let graph = Graph { exists: true, capture: Some(capture), ..Graph::default() };
        self.graphs.graphs.insert(handle, graph);
        self.graphs.capturing.insert(stream, Branch { graph: handle, last: Vec::new() });
        Ok(handle)
    }

    /// Ends a capture, and returns its graph. If the capture is invalid, its memory is freed.
    pub(crate) fn end_capture(&mut self, stream: Handle) -> Answer<Handle> {
        let handle = self.graphs.capture_of(stream).ok_or(Code::ILLEGAL_STATE)?;
        let graph = self.graphs.graph(handle)?;
        let capture = graph.capture.ok_or(Code::ILLEGAL_STATE)?;
        if capture.origin != stream {
            self.graphs.invalidate(handle);
            return Err(Code::CAPTURE_UNMATCHED);
        }
        if capture.mode != Mode::Relaxed && capture.thread != std::thread::current().id() {
            return Err(Code::CAPTURE_WRONG_THREAD);
        }
        // First, because a graph that is being captured cannot be destroyed.
        graph.capture = None;
        self.graphs.capturing.retain(|_, branch| branch.graph != handle);
        self.graphs.events.retain(|_, branch| branch.graph != handle);
        if capture.is_invalid {
            let arenas = self.graphs.graph(handle)?.arenas.iter_mut();
            // Otherwise the blocks that the program got in the capture would keep the graph.
            arenas.for_each(|(_, arena)| arena.abandon());
            self.destroy_graph(handle)?;
            return Err(Code::CAPTURE_INVALIDATED);
        }
        Ok(handle)
    }
}
