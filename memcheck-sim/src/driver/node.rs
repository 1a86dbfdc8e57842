//! The nodes of CUDA graphs: the calls that add and change them. Calls that add an allocation are in
//! `hooked`.
//!
//! A kernel node keeps the values of its arguments from the time of the call. A copy from pageable
//! host memory leaves unknown values, as in a capture.

mod parameters;

use std::ffi::{c_int, c_void};

use crate::code::{Answer, Code};
use crate::ffi::{self, In, Out, exports};
use crate::machine::graphs::{NodeKind, Step};
use crate::machine::{Handle, with};
use parameters::{
    AllocationParameters, CopyParameters, FillParameters, HostParameters, KernelParameters,
};

/// The graph of a new node and the nodes that it depends on, as the C functions pass them.
#[derive(Clone, Copy)]
pub(crate) struct NodePlace {
    pub(crate) graph: Handle,
    pub(crate) after: *const Handle,
    pub(crate) count: usize,
}

impl NodePlace {
    fn after(self) -> Answer<Vec<Handle>> {
        handles(self.after, self.count)
    }

    fn add(self, node: Out<Handle>, kind: NodeKind, step: Step) -> Answer {
        let after = self.after()?;
        node.make(|machine| machine.add_node(self.graph, kind, step, &after))
    }

    fn add_child(self, node: Out<Handle>, child: Handle) -> Answer {
        let after = self.after()?;
        node.make(|machine| machine.add_child(self.graph, child, &after))
    }

    fn add_event(self, node: Out<Handle>, kind: NodeKind, event: Handle) -> Answer {
        with(|machine| machine.events.context(event).map(drop))?;
        // A launch does its work in order, so that an event has no effect in it.
        self.add(node, kind, Step::Nothing)
    }

    fn add_free(self, node: Out<Handle>, address: u64) -> Answer {
        let after = self.after()?;
        node.make(|machine| machine.add_free(self.graph, address, &after))
    }

    /// Adds an allocation, and stores its address in the parameters.
    pub(crate) fn add_allocation(
        self,
        node: Out<Handle>,
        parameters: Out<AllocationParameters>,
    ) -> Answer {
        if node.is_null() || parameters.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        let address = parameters.address();
        // SAFETY: the pointer is not null, so it is readable by the promise of the C caller.
        let mut known = unsafe { address.read() };
        // Pinned memory of the device on which the pool is.
        if known.kind != 1 || known.location_kind != 1 || known.bytes == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let device = usize::try_from(known.ordinal).map_err(|_| Code::INVALID_DEVICE)?;
        let (after, wanted) = (self.after()?, (device, known.bytes as u64));
        let (new, at) = with(|machine| machine.add_allocation(self.graph, wanted, &after))?;
        known.address = at;
        // SAFETY: the pointer is writable by the promise of the C caller.
        unsafe { address.write(known) };
        node.put(new)
    }

    /// Adds a node by `CUgraphNodeParams`: its type, and its parameters behind 16 bytes.
    pub(crate) fn add_any(self, node: Out<Handle>, parameters: *mut c_void) -> Answer {
        if node.is_null() || parameters.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the C caller promises that the parameters start with their type.
        let kind = unsafe { parameters.cast::<c_int>().read() };
        let own = parameters.wrapping_byte_add(16);
        // SAFETY: the C caller promises that the parameters are those of a node of this type. Those
        // with a context have it behind (copies: before) the parameters that the type always had.
        unsafe {
            let handle = own.cast::<Handle>();
            match kind {
                0 => {
                    self.add(node, NodeKind::Kernel, own.cast::<KernelParameters>().read().step()?)
                }
                1 => {
                    let copy = own.cast::<[Handle; 2]>().add(1).cast::<CopyParameters>().read();
                    self.add(node, NodeKind::Copy, copy.step(handle.add(1).read())?)
                }
                2 => {
                    let fill = own.cast::<FillParameters>();
                    let context = fill.add(1).cast::<Handle>().read();
                    self.add(node, NodeKind::Fill, fill.read().step(context)?)
                }
                3 => self.add(node, NodeKind::Host, own.cast::<HostParameters>().read().step()?),
                4 => self.add_child(node, handle.read()),
                5 => self.add(node, NodeKind::Empty, Step::Nothing),
                6 => self.add_event(node, NodeKind::WaitEvent, handle.read()),
                7 => self.add_event(node, NodeKind::RecordEvent, handle.read()),
                10 => self.add_allocation(node, Out::new(own.cast())),
                11 => self.add_free(node, handle.read()),
                _ => {
                    crate::refused::refuse("a node of a type of its own in a CUDA graph");
                    Err(Code::NOT_SUPPORTED)
                }
            }
        }
    }
}

/// Reads an array of handles.
pub(super) fn handles(start: *const Handle, count: usize) -> Answer<Vec<Handle>> {
    match (start.is_null(), count) {
        (_, 0) => Ok(Vec::new()),
        (true, _) => Err(Code::INVALID_VALUE),
        // SAFETY: the C caller promises an array of `count` handles.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts(start, count) }.to_vec()),
    }
}

fn set(node: Handle, kind: NodeKind, step: Step) -> Answer {
    with(|machine| machine.graphs.set_step(node, kind, step))
}

fn set_in(executable: Handle, node: Handle, kind: NodeKind, step: Step) -> Answer {
    with(|machine| machine.graphs.set_executable_step(executable, node, kind, step))
}

exports! { ffi::driver;
    fn cuGraphAddEmptyNode(node: Out<Handle>, graph: Handle, after: *const Handle, count: usize) {
        NodePlace { graph, after, count }.add(node, NodeKind::Empty, Step::Nothing)
    }

    fn cuGraphAddKernelNode(
        node: Out<Handle>, graph: Handle, after: *const Handle, count: usize,
        parameters: In<KernelParameters>,
    ) {
        NodePlace { graph, after, count }.add(node, NodeKind::Kernel, parameters.get()?.step()?)
    }

    fn cuGraphAddKernelNode_v2(
        node: Out<Handle>, graph: Handle, after: *const Handle, count: usize,
        parameters: In<KernelParameters>,
    ) {
        NodePlace { graph, after, count }.add(node, NodeKind::Kernel, parameters.get()?.step()?)
    }

    fn cuGraphAddMemcpyNode(
        node: Out<Handle>, graph: Handle, after: *const Handle, count: usize,
        parameters: In<CopyParameters>, context: Handle,
    ) {
        NodePlace { graph, after, count }.add(node, NodeKind::Copy, parameters.get()?.step(context)?)
    }

    fn cuGraphAddMemsetNode(
        node: Out<Handle>, graph: Handle, after: *const Handle, count: usize,
        parameters: In<FillParameters>, context: Handle,
    ) {
        NodePlace { graph, after, count }.add(node, NodeKind::Fill, parameters.get()?.step(context)?)
    }

    fn cuGraphAddHostNode(
        node: Out<Handle>, graph: Handle, after: *const Handle, count: usize,
        parameters: In<HostParameters>,
    ) {
        NodePlace { graph, after, count }.add(node, NodeKind::Host, parameters.get()?.step()?)
    }

    fn cuGraphAddChildGraphNode(
        node: Out<Handle>, graph: Handle, after: *const Handle, count: usize, child: Handle,
    ) {
        NodePlace { graph, after, count }.add_child(node, child)
    }

    fn cuGraphAddEventRecordNode(
        node: Out<Handle>, graph: Handle, after: *const Handle, count: usize, event: Handle,
    ) {
        NodePlace { graph, after, count }.add_event(node, NodeKind::RecordEvent, event)
    }

    fn cuGraphAddEventWaitNode(
        node: Out<Handle>, graph: Handle, after: *const Handle, count: usize, event: Handle,
    ) {
        NodePlace { graph, after, count }.add_event(node, NodeKind::WaitEvent, event)
    }

    fn cuGraphAddMemFreeNode(
        node: Out<Handle>, graph: Handle, after: *const Handle, count: usize, address: u64,
    ) {
        NodePlace { graph, after, count }.add_free(node, address)
    }

    fn cuGraphKernelNodeSetParams(node: Handle, parameters: In<KernelParameters>) {
        set(node, NodeKind::Kernel, parameters.get()?.step()?)
    }

    fn cuGraphKernelNodeSetParams_v2(node: Handle, parameters: In<KernelParameters>) {
        set(node, NodeKind::Kernel, parameters.get()?.step()?)
    }

    fn cuGraphMemcpyNodeSetParams(node: Handle, parameters: In<CopyParameters>) {
        set(node, NodeKind::Copy, parameters.get()?.step(super::current::get())?)
    }

    fn cuGraphMemsetNodeSetParams(node: Handle, parameters: In<FillParameters>) {
        set(node, NodeKind::Fill, parameters.get()?.step(super::current::get())?)
    }

    fn cuGraphHostNodeSetParams(node: Handle, parameters: In<HostParameters>) {
        set(node, NodeKind::Host, parameters.get()?.step()?)
    }

    fn cuGraphExecKernelNodeSetParams(
        executable: Handle, node: Handle, parameters: In<KernelParameters>,
    ) {
        set_in(executable, node, NodeKind::Kernel, parameters.get()?.step()?)
    }

    fn cuGraphExecKernelNodeSetParams_v2(
        executable: Handle, node: Handle, parameters: In<KernelParameters>,
    ) {
        set_in(executable, node, NodeKind::Kernel, parameters.get()?.step()?)
    }

    fn cuGraphExecMemcpyNodeSetParams(
        executable: Handle, node: Handle, parameters: In<CopyParameters>, context: Handle,
    ) {
        set_in(executable, node, NodeKind::Copy, parameters.get()?.step(context)?)
    }

    fn cuGraphExecMemsetNodeSetParams(
        executable: Handle, node: Handle, parameters: In<FillParameters>, context: Handle,
    ) {
        set_in(executable, node, NodeKind::Fill, parameters.get()?.step(context)?)
    }

    fn cuGraphExecHostNodeSetParams(
        executable: Handle, node: Handle, parameters: In<HostParameters>,
    ) {
        set_in(executable, node, NodeKind::Host, parameters.get()?.step()?)
    }
}

#[cfg(test)]
mod tests;
