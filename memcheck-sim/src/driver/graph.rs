//! CUDA graphs: the calls about whole graphs that neither take nor release memory. Those that do
//! are in `hooked`, and those about single nodes in `node`.

use std::ffi::{c_int, c_uint, c_ulonglong, c_void};

use super::current;
use super::node::handles;
use crate::code::{Answer, Code};
use crate::ffi::{self, In, Out, exports};
use crate::machine::graphs::Edge;
use crate::machine::{Handle, with};

/// `CU_GRAPH_MEM_ATTR_*`.
mod attribute {
    pub(super) const USED_CURRENT: i32 = 0;
    pub(super) const USED_HIGH: i32 = 1;
    pub(super) const RESERVED_CURRENT: i32 = 2;
    pub(super) const RESERVED_HIGH: i32 = 3;
}

/// `CUDA_GRAPH_INSTANTIATE_PARAMS`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Instantiation {
    flags: u64,
    stream: Handle,
    error_node: Handle,
    result: c_int,
}

exports! { ffi::driver;
    fn cuGraphCreate(graph: Out<Handle>, flags: c_uint) {
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        graph.make(|machine| Ok(machine.create_graph()))
    }

    fn cuGraphGetNodes(graph: Handle, nodes: Out<Handle>, count: Out<usize>) {
        list(with(|machine| machine.graphs.nodes(graph))?, nodes, count)
    }

    fn cuGraphGetRootNodes(graph: Handle, nodes: Out<Handle>, count: Out<usize>) {
        list(with(|machine| machine.graphs.roots(graph))?, nodes, count)
    }

    fn cuGraphGetEdges(graph: Handle, from: Out<Handle>, to: Out<Handle>, count: Out<usize>) {
        list_edges(with(|machine| machine.graphs.edges(graph))?, (from, to, Out::none()), count)
    }

    fn cuGraphGetEdges_v2(
        graph: Handle, from: Out<Handle>, to: Out<Handle>, data: Out<u64>, count: Out<usize>,
    ) {
        list_edges(with(|machine| machine.graphs.edges(graph))?, (from, to, data), count)
    }

    fn cuGraphNodeGetType(node: Handle, kind: Out<c_int>) {
        kind.put(with(|machine| machine.graphs.kind(node))? as c_int)
    }

    fn cuGraphNodeGetDependencies(node: Handle, nodes: Out<Handle>, count: Out<usize>) {
        list(with(|machine| machine.graphs.dependencies(node))?, nodes, count)
    }

    fn cuGraphNodeGetDependencies_v2(
        node: Handle, nodes: Out<Handle>, data: Out<u64>, count: Out<usize>,
    ) {
        let all = with(|machine| machine.graphs.dependencies(node))?;
        list_with_data(all, (nodes, data), count)
    }

    fn cuGraphNodeGetDependentNodes(node: Handle, nodes: Out<Handle>, count: Out<usize>) {
        list(with(|machine| machine.graphs.dependents(node))?, nodes, count)
    }

    fn cuGraphNodeGetDependentNodes_v2(
        node: Handle, nodes: Out<Handle>, data: Out<u64>, count: Out<usize>,
    ) {
        let all = with(|machine| machine.graphs.dependents(node))?;
        list_with_data(all, (nodes, data), count)
    }

    fn cuGraphAddDependencies(
        graph: Handle, from: *const Handle, to: *const Handle, count: usize,
    ) {
        let edges = edges((from, to, std::ptr::null()), count)?;
        with(|machine| machine.graphs.add_edges(graph, &edges))
    }

    fn cuGraphAddDependencies_v2(
        graph: Handle, from: *const Handle, to: *const Handle, data: *const u64, count: usize,
    ) {
        let edges = edges((from, to, data), count)?;
        with(|machine| machine.graphs.add_edges(graph, &edges))
    }

    fn cuGraphRemoveDependencies(
        graph: Handle, from: *const Handle, to: *const Handle, count: usize,
    ) {
        let edges = edges((from, to, std::ptr::null()), count)?;
        with(|machine| machine.graphs.remove_edges(graph, &edges))
    }

    fn cuGraphRemoveDependencies_v2(
        graph: Handle, from: *const Handle, to: *const Handle, data: *const u64, count: usize,
    ) {
        let edges = edges((from, to, data), count)?;
        with(|machine| machine.graphs.remove_edges(graph, &edges))
    }

    fn cuGraphDestroyNode(node: Handle) {
        with(|machine| machine.graphs.remove_node(node))
    }

    fn cuGraphExecGetFlags(executable: Handle, flags: Out<c_ulonglong>) {
        flags.put(with(|machine| machine.graphs.flags(executable))?)
    }

    fn cuThreadExchangeStreamCaptureMode(mode: Out<c_int>) {
        // Calls that a capture forbids are judged by the mode of the capture alone.
        mode.put(0)
    }

    fn cuDeviceGetGraphMemAttribute(device: c_int, number: c_int, value: Out<u64>) {
        value.put(with(|machine| {
            machine.device(device)?;
            let device = device as usize;
            match number {
                // The simulator caches no memory of graphs, so both pairs are equal.
                attribute::USED_CURRENT | attribute::RESERVED_CURRENT => {
                    Ok(machine.graphs.used(device))
                }
                attribute::USED_HIGH | attribute::RESERVED_HIGH => {
                    Ok(machine.graphs.highest(device))
                }
                _ => Err(Code::INVALID_VALUE),
            }
        })?)
    }

    fn cuDeviceSetGraphMemAttribute(device: c_int, number: c_int, value: In<u64>) {
        let value = value.get()?;
        with(|machine| {
            machine.device(device)?;
            match (number, value) {
                (attribute::USED_HIGH | attribute::RESERVED_HIGH, 0) => {
                    machine.graphs.reset_highest(device as usize);
                    Ok(())
                }
                _ => Err(Code::INVALID_VALUE),
            }
        })
    }

    fn cuGraphInstantiateWithFlags(executable: Out<Handle>, graph: Handle, flags: c_ulonglong) {
        executable.make(|machine| machine.instantiate(graph, flags))
    }

    fn cuGraphInstantiate_v2(
        executable: Out<Handle>, graph: Handle, error_node: Out<Handle>,
        _log: *mut c_void, _size: usize,
    ) {
        // An error is one of the whole graph here.
        error_node.offer(0);
        executable.make(|machine| machine.instantiate(graph, 0))
    }

    fn cuGraphInstantiateWithParams(
        executable: Out<Handle>, graph: Handle, parameters: Out<Instantiation>,
    ) {
        if parameters.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: the pointer is not null, so it is readable by the promise of the C caller.
        let wanted = unsafe { parameters.again().address().read() };
        let done = executable.make(|machine| {
            machine.instantiate_on(wanted.stream, current::get(), graph, wanted.flags)
        });
        // CUDA_GRAPH_INSTANTIATE_SUCCESS and CUDA_GRAPH_INSTANTIATE_ERROR.
        let result = c_int::from(done.is_err());
        parameters.put(Instantiation { error_node: 0, result, ..wanted })?;
        done
    }
}

/// Stores a list as the driver does: its length if there is no array, otherwise as many elements as
/// the array can hold, and zeros behind them.
fn list<T: Copy + Default>(all: Vec<T>, into: Out<T>, count: Out<usize>) -> Answer {
    if count.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    if into.is_null() {
        return count.put(all.len());
    }
    // SAFETY: the pointer is not null, so it is readable by the promise of the C caller.
    let capacity = unsafe { count.again().address().read() };
    let start = into.address();
    for at in 0..capacity {
        let element = all.get(at).copied().unwrap_or_default();
        // SAFETY: the C caller promises an array of `capacity` elements.
        unsafe { start.add(at).write(element) };
    }
    count.put(all.len().min(capacity))
}

/// The data of a dependency: a full one has zeros.
fn list_with_data(
    all: Vec<Handle>,
    (nodes, data): (Out<Handle>, Out<u64>),
    count: Out<usize>,
) -> Answer {
    if !nodes.is_null() && !data.is_null() {
        list(vec![0; all.len()], data, count.again())?;
    }
    list(all, nodes, count)
}

fn list_edges(
    all: Vec<Edge>,
    (from, to, data): (Out<Handle>, Out<Handle>, Out<u64>),
    count: Out<usize>,
) -> Answer {
    if from.is_null() != to.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    let (first, second): (Vec<Handle>, Vec<Handle>) = all.into_iter().unzip();
    if !from.is_null() {
        list(first, from, count.again())?;
    }
    list_with_data(second, (to, data), count)
}

/// Reads dependencies. The simulator has only full ones, whose data are zeros.
fn edges(
    (from, to, data): (*const Handle, *const Handle, *const u64),
    count: usize,
) -> Answer<Vec<Edge>> {
    check_edge_data(data, count)?;
    Ok(handles(from, count)?.into_iter().zip(handles(to, count)?).collect())
}

/// Refuses dependencies on a part of a node.
pub(crate) fn check_edge_data(data: *const u64, count: usize) -> Answer {
    if !data.is_null() && handles(data, count)?.iter().any(|&data| data != 0) {
        crate::refused::refuse("a programmatic dependency in a CUDA graph");
        return Err(Code::NOT_SUPPORTED);
    }
    Ok(())
}
