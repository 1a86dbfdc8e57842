//! Tests of graphs on a machine as a value, without globals and C.

use super::executable::{AUTO_FREE_ON_LAUNCH, UPLOAD};
use super::*;
use memcheck_kernels::Memory as _;

const STREAM: Handle = 2;
const MIB: u64 = 1 << 20;

fn machine() -> (Machine, Handle) {
    let mut machine = Machine::new(&"h200".parse().unwrap());
    let context = machine.retain_primary(0).unwrap();
    (machine, context)
}

fn begin(machine: &mut Machine, context: Handle) -> Handle {
    machine.begin_capture(STREAM, context, Mode::ThreadLocal).unwrap()
}

fn launch(machine: &mut Machine, executable: Handle) -> Answer {
    for step in machine.start(executable)? {
        if let Step::Device(work) = step {
            work(machine);
        }
    }
    Ok(())
}

fn used(machine: &Machine) -> u64 {
    machine.devices[0].memory.used()
}

#[test]
fn the_memory_of_a_capture_outlives_it_until_graph_and_executable_are_destroyed() {
    let (mut machine, context) = machine();
    let before = used(&machine);
    let graph = begin(&mut machine, context);
    let a = machine.allocate_async(STREAM, context, None, 2 << 20).unwrap();
    assert_eq!(machine.free_on(STREAM, a), Ok(true));
    // The second request takes the block of the first.
    assert_eq!(machine.allocate_async(STREAM, context, None, 1 << 20), Ok(a));
    assert_eq!(machine.free_on(STREAM, a), Ok(true));
    assert_eq!(machine.end_capture(STREAM), Ok(graph));
    let executable = machine.instantiate(graph, 0).unwrap();
    assert_eq!((machine.graphs.used(0), used(&machine) - before), (2 * MIB, 2 * MIB));
    // Outside the capture, the stream takes memory of its pool.
    let b = machine.allocate_async(STREAM, context, None, 8).unwrap();
    assert_eq!(machine.graphs.used(0), 2 * MIB);
    machine.free(b).unwrap();
    launch(&mut machine, executable).unwrap();
    launch(&mut machine, executable).unwrap();
    machine.destroy_graph(graph).unwrap();
    assert_eq!(machine.graphs.used(0), 2 * MIB);
    machine.destroy_executable(executable).unwrap();
    assert_eq!((machine.graphs.used(0), used(&machine)), (0, before));
    assert_eq!(machine.graphs.highest(0), 2 * MIB);
    assert_eq!(machine.destroy_executable(executable), Err(Code::INVALID_VALUE));
}

#[test]
fn a_trim_gives_memory_back_until_the_next_launch() {
    let (mut machine, context) = machine();
    let graph = begin(&mut machine, context);
    let a = machine.allocate_async(STREAM, context, None, 1 << 20).unwrap();
    machine.free_on(STREAM, a).unwrap();
    machine.end_capture(STREAM).unwrap();
    let executable = machine.instantiate(graph, 0).unwrap();
    machine.trim_graphs(0).unwrap();
    assert_eq!(machine.graphs.used(0), 0);
    launch(&mut machine, executable).unwrap();
    assert_eq!(machine.graphs.used(0), MIB);
}

#[test]
fn an_instantiation_whose_upload_fails_leaves_no_executable_behind() {
    let (mut machine, context) = machine();
    let graph = machine.create_graph();
    machine.add_allocation(graph, (0, MIB), &[]).unwrap();
    let first = machine.instantiate(graph, 0).unwrap();
    machine.destroy_executable(first).unwrap();
    machine.trim_graphs(0).unwrap();
    // Another block takes the memory that the graph had.
    let free = machine.devices[0].memory.free_bytes();
    let block = machine.allocate(context, usize::try_from(free).unwrap()).unwrap();
    let upload = |machine: &mut Machine, stream, flags| {
        machine.instantiate_on(stream, context, graph, flags)
    };
    assert_eq!(upload(&mut machine, STREAM, UPLOAD), Err(Code::OUT_OF_MEMORY));
    machine.free(block).unwrap();
    assert_eq!(upload(&mut machine, 77, UPLOAD), Err(Code::INVALID_HANDLE));
    let executable = upload(&mut machine, STREAM, UPLOAD).unwrap();
    assert_eq!(machine.graphs.used(0), MIB);
    // Without the upload, the stream does not matter.
    machine.destroy_executable(executable).unwrap();
    upload(&mut machine, 77, 0).unwrap();
}

#[test]
fn memory_that_the_graph_does_not_free_must_be_freed_before_the_next_launch() {
    for (flags, second) in [(0, Err(Code::INVALID_VALUE)), (AUTO_FREE_ON_LAUNCH, Ok(()))] {
        let (mut machine, context) = machine();
        let graph = begin(&mut machine, context);
        let a = machine.allocate_async(STREAM, context, None, 64).unwrap();
        machine.end_capture(STREAM).unwrap();
        let executable = machine.instantiate(graph, flags).unwrap();
        launch(&mut machine, executable).unwrap();
        assert_eq!(launch(&mut machine, executable), second, "{flags}");
        machine.free(a).unwrap();
        assert_eq!(launch(&mut machine, executable), Ok(()), "{flags}");
        // The program still holds the block of the last launch.
        machine.destroy_executable(executable).unwrap();
        machine.destroy_graph(graph).unwrap();
        assert_eq!(machine.graphs.used(0), 64);
        machine.free(a).unwrap();
        assert_eq!(machine.graphs.used(0), 0);
    }
}

#[test]
fn a_capture_computes_nothing_and_each_launch_does_the_work() {
    let (mut machine, context) = machine();
    let to = machine.allocate(context, 64).unwrap();
    machine.fill_on(STREAM, to, &[1], 64).unwrap();
    let graph = begin(&mut machine, context);
    machine.fill_on(STREAM, to, &[7], 64).unwrap();
    machine.end_capture(STREAM).unwrap();
    assert_eq!(machine.graphs.nodes(graph).unwrap().len(), 1);
    assert_eq!(machine.known_bytes(to, 1), Some(vec![1]));
    let executable = machine.instantiate(graph, 0).unwrap();
    launch(&mut machine, executable).unwrap();
    assert_eq!(machine.known_bytes(to, 1), Some(vec![7]));
    machine.fill_on(STREAM, to, &[2], 64).unwrap();
    launch(&mut machine, executable).unwrap();
    assert_eq!(machine.known_bytes(to, 1), Some(vec![7]));
}

#[test]
fn calls_that_wait_invalidate_a_capture_and_its_memory_is_freed() {
    let (mut machine, context) = machine();
    begin(&mut machine, context);
    assert_eq!(machine.graphs.status(STREAM), 1);
    machine.allocate_async(STREAM, context, None, 64).unwrap();
    assert_eq!(machine.allocate(context, 64), Err(Code::CAPTURE_UNSUPPORTED));
    assert_eq!(machine.graphs.forbid_wait(STREAM), Err(Code::CAPTURE_UNSUPPORTED));
    assert_eq!(machine.graphs.status(STREAM), 2);
    assert_eq!(machine.end_capture(STREAM), Err(Code::CAPTURE_INVALIDATED));
    assert_eq!((machine.graphs.used(0), machine.graphs.status(STREAM)), (0, 0));
    assert_eq!(machine.end_capture(STREAM), Err(Code::ILLEGAL_STATE));
    // Without a capture, both calls are allowed, and in relaxed mode cuMemAlloc is.
    machine.graphs.forbid_wait(STREAM).unwrap();
    machine.begin_capture(STREAM, context, Mode::Relaxed).unwrap();
    machine.allocate(context, 64).unwrap();
    machine.end_capture(STREAM).unwrap();
}

#[test]
fn a_stream_that_waits_for_an_event_of_a_capture_becomes_part_of_it() {
    let (mut machine, context) = machine();
    let graph = begin(&mut machine, context);
    let (other, event, earlier) = (77, 5, 6);
    machine.graphs.record_event(event, STREAM);
    assert_eq!(machine.graphs.forbid_captured_event(event), Err(Code::CAPTURED_EVENT));
    machine.graphs.wait_event(other, event).unwrap();
    assert_eq!(machine.graphs.capture_of(other), Some(graph));
    assert_eq!(machine.end_capture(other), Err(Code::CAPTURE_UNMATCHED));
    assert_eq!(machine.graphs.wait_event(STREAM, earlier), Err(Code::CAPTURE_ISOLATION));
    assert_eq!(machine.end_capture(STREAM), Err(Code::CAPTURE_INVALIDATED));
    assert_eq!(machine.graphs.capture_of(other), None);
    assert_eq!(machine.graphs.forbid_captured_event(event), Ok(()));
}

#[test]
fn the_legacy_stream_and_unknown_flags_are_refused() {
    let (mut machine, context) = machine();
    let legacy = machine.begin_capture(0, context, Mode::Global);
    assert_eq!(legacy, Err(Code::CAPTURE_UNSUPPORTED));
    let graph = begin(&mut machine, context);
    let again = machine.begin_capture(STREAM, context, Mode::Global);
    assert_eq!(again, Err(Code::ILLEGAL_STATE));
    assert_eq!(machine.instantiate(graph, 0), Err(Code::INVALID_VALUE));
    assert_eq!(machine.instantiate(graph, 16), Err(Code::INVALID_VALUE));
    assert_eq!(machine.destroy_graph(graph), Err(Code::INVALID_VALUE));
}

/// The work of a node that fills `to` with a number.
fn fill(machine: &Machine, to: u64, value: u8) -> Step {
    Step::device(machine.fill_work(to, &[value], 8).unwrap())
}

fn value(machine: &Machine, at: u64) -> Option<u8> {
    machine.known_bytes(at, 1).map(|bytes| bytes[0])
}

#[test]
fn nodes_run_after_the_nodes_that_they_depend_on() {
    let (mut machine, context) = machine();
    let to = machine.allocate(context, 64).unwrap();
    let graph = machine.create_graph();
    let [one, two, three] = [1, 2, 3].map(|value| fill(&machine, to, value));
    let add = |machine: &mut Machine, step, after: &[Handle]| {
        machine.add_node(graph, NodeKind::Fill, step, after).unwrap()
    };
    // The first node depends on the second one, and nothing on the first.
    let first = add(&mut machine, one, &[]);
    let second = add(&mut machine, two, &[]);
    let third = add(&mut machine, three, &[second]);
    machine.graphs.add_edges(graph, &[(third, first)]).unwrap();
    assert_eq!(machine.graphs.roots(graph), Ok(vec![second]));
    assert_eq!(machine.graphs.edges(graph), Ok(vec![(third, first), (second, third)]));
    assert_eq!(machine.graphs.dependents(third), Ok(vec![first]));
    let executable = machine.instantiate(graph, 0).unwrap();
    assert_eq!(value(&machine, to), None);
    launch(&mut machine, executable).unwrap();
    assert_eq!(value(&machine, to), Some(1));

    // The executable keeps the work of its graph at the time of its instantiation.
    machine.graphs.remove_node(first).unwrap();
    assert_eq!(machine.graphs.dependents(third), Ok(vec![]));
    launch(&mut machine, executable).unwrap();
    assert_eq!(value(&machine, to), Some(1));
    let later = machine.instantiate(graph, 0).unwrap();
    launch(&mut machine, later).unwrap();
    assert_eq!(value(&machine, to), Some(3));

    // A circle cannot be launched.
    machine.graphs.add_edges(graph, &[(third, second)]).unwrap();
    assert_eq!(machine.instantiate(graph, 0), Err(Code::INVALID_VALUE));
    machine.graphs.remove_edges(graph, &[(third, second)]).unwrap();
    machine.instantiate(graph, 0).unwrap();
    for wrong in [(third, third), (second, third), (first, third)] {
        assert_eq!(machine.graphs.add_edges(graph, &[wrong]), Err(Code::INVALID_VALUE));
    }
    let unknown = machine.add_node(graph, NodeKind::Empty, Step::Nothing, &[first]);
    assert_eq!(unknown, Err(Code::INVALID_VALUE));
}

#[test]
fn a_child_graph_does_its_work_at_the_place_of_its_node() {
    let (mut machine, context) = machine();
    let to = machine.allocate(context, 64).unwrap();
    let [child, graph] = [0; 2].map(|_| machine.create_graph());
    let [one, two] = [1, 2].map(|value| fill(&machine, to, value));
    machine.add_node(child, NodeKind::Fill, one, &[]).unwrap();
    let node = machine.add_child(graph, child, &[]).unwrap();
    assert_eq!(machine.graphs.kind(node), Ok(NodeKind::Child));
    // The node has a copy of the graph.
    machine.destroy_graph(child).unwrap();
    let executable = machine.instantiate(graph, 0).unwrap();
    launch(&mut machine, executable).unwrap();
    assert_eq!(value(&machine, to), Some(1));
    machine.add_node(graph, NodeKind::Fill, two, &[node]).unwrap();
    let executable = machine.instantiate(graph, 0).unwrap();
    launch(&mut machine, executable).unwrap();
    assert_eq!(value(&machine, to), Some(2));
    let memory = machine.create_graph();
    machine.add_allocation(memory, (0, 8), &[]).unwrap();
    assert_eq!(machine.add_child(graph, memory, &[]), Err(Code::NOT_SUPPORTED));
}

#[test]
fn an_allocation_node_uses_a_freed_block_only_if_it_runs_after_the_free() {
    let (mut machine, _) = machine();
    let graph = machine.create_graph();
    let (node, a) = machine.add_allocation(graph, (0, MIB), &[]).unwrap();
    // A block is free for nodes that depend on the node that frees it.
    let freed = machine.add_free(graph, a, &[node]).unwrap();
    assert_eq!(machine.add_free(graph, a, &[freed]), Err(Code::INVALID_VALUE));
    let (_, b) = machine.add_allocation(graph, (0, MIB), &[node]).unwrap();
    assert_ne!(a, b);
    let (_, c) = machine.add_allocation(graph, (0, 64), &[freed]).unwrap();
    assert_eq!(a, c);
    let (_, d) = machine.add_allocation(graph, (0, 64), &[freed]).unwrap();
    assert_eq!((machine.graphs.used(0), d == a), (2 * MIB + 64, false));
    assert_eq!(machine.graphs.remove_node(freed), Err(Code::NOT_SUPPORTED));

    // Nothing can be freed before a launch has allocated it, and the graph's end frees it.
    assert_eq!(machine.free(b).err(), Some(Code::INVALID_VALUE));
    let executable = machine.instantiate(graph, 0).unwrap();
    assert_eq!(machine.instantiate(graph, 0), Err(Code::NOT_SUPPORTED));
    launch(&mut machine, executable).unwrap();
    for block in [b, c, d] {
        machine.free(block).unwrap();
        assert_eq!(machine.free(block).err(), Some(Code::INVALID_VALUE));
    }
    machine.destroy_executable(executable).unwrap();
    assert_eq!(machine.graphs.used(0), 2 * MIB + 64);
    machine.destroy_graph(graph).unwrap();
    assert_eq!((machine.graphs.used(0), used(&machine)), (0, 0));
}

#[test]
fn a_node_frees_memory_of_another_graph_at_each_launch() {
    let (mut machine, _) = machine();
    let [owner, other] = [0; 2].map(|_| machine.create_graph());
    let (_, block) = machine.add_allocation(owner, (0, 64), &[]).unwrap();
    machine.add_free(other, block, &[]).unwrap();
    let [owner, other] = [owner, other].map(|graph| machine.instantiate(graph, 0).unwrap());
    for _ in 0..2 {
        launch(&mut machine, owner).unwrap();
        // It would be an error to allocate the block a second time.
        assert_eq!(launch(&mut machine, owner), Err(Code::INVALID_VALUE));
        launch(&mut machine, other).unwrap();
    }
    let unknown = machine.create_graph();
    assert_eq!(machine.add_free(unknown, block + 1, &[]), Err(Code::INVALID_VALUE));
}

#[test]
fn an_update_gives_an_executable_the_work_and_the_memory_of_another_graph() {
    let (mut machine, context) = machine();
    let to = machine.allocate(context, 64).unwrap();
    let build = |machine: &mut Machine, number: u8, bytes: u64| {
        let graph = machine.create_graph();
        let step = fill(machine, to, number);
        let (node, block) = machine.add_allocation(graph, (0, bytes), &[]).unwrap();
        let node = machine.add_free(graph, block, &[node]).unwrap();
        machine.add_node(graph, NodeKind::Fill, step, &[node]).unwrap();
        graph
    };
    let first = build(&mut machine, 1, 100);
    let second = build(&mut machine, 2, 200);
    let executable = machine.instantiate(first, 0).unwrap();
    machine.destroy_graph(first).unwrap();
    launch(&mut machine, executable).unwrap();
    assert_eq!((value(&machine, to), machine.graphs.used(0)), (Some(1), 300));
    assert_eq!(machine.update(executable, second), Ok(Ok(())));
    // The memory of the first graph ends with its last executable.
    assert_eq!(machine.graphs.used(0), 200);
    launch(&mut machine, executable).unwrap();
    assert_eq!(value(&machine, to), Some(2));

    // A mismatch changes nothing.
    let third = build(&mut machine, 3, 300);
    let own = machine.instantiate(third, 0).unwrap();
    assert_eq!(machine.update(executable, third), Ok(Err(Mismatch::Memory)));
    machine.destroy_executable(own).unwrap();
    let nodes = machine.graphs.nodes(third).unwrap();
    machine.graphs.add_edges(third, &[(nodes[0], nodes[2])]).unwrap();
    assert_eq!(machine.update(executable, third), Ok(Err(Mismatch::Topology(nodes[2]))));
    let other = machine.create_graph();
    assert_eq!(machine.update(executable, other), Ok(Err(Mismatch::Topology(0))));
    let node = machine.add_node(other, NodeKind::Empty, Step::Nothing, &[]).unwrap();
    assert_eq!(machine.update(executable, other), Ok(Err(Mismatch::Kind(node))));
    launch(&mut machine, executable).unwrap();
    assert_eq!(value(&machine, to), Some(2));
    let stranger = machine.create_graph();
    assert_eq!(machine.update(stranger, second), Err(Code::INVALID_VALUE));
}

#[test]
fn the_nodes_of_a_capture_depend_on_those_of_its_streams() {
    let (mut machine, context) = machine();
    let to = machine.allocate(context, 64).unwrap();
    let graph = begin(&mut machine, context);
    let (other, event, back) = (77, 5, 6);
    let a = machine.allocate_async(STREAM, context, None, 64).unwrap();
    machine.graphs.record_event(event, STREAM);
    machine.graphs.wait_event(other, event).unwrap();
    machine.fill_on(STREAM, to, &[1], 8).unwrap();
    machine.fill_on(other, to, &[2], 8).unwrap();
    machine.graphs.record_event(back, other);
    machine.graphs.wait_event(STREAM, back).unwrap();
    machine.free_on(STREAM, a).unwrap();
    machine.end_capture(STREAM).unwrap();
    let nodes = machine.graphs.nodes(graph).unwrap();
    let kinds: Vec<_> = nodes.iter().map(|&node| machine.graphs.kind(node).unwrap()).collect();
    use NodeKind::{Allocation, Fill, Free};
    assert_eq!(kinds, [Allocation, Fill, Fill, Free]);
    let [start, left, right, end] = nodes[..] else { panic!("four nodes") };
    let expected = [(start, left), (start, right), (left, end), (right, end)];
    assert_eq!(machine.graphs.edges(graph), Ok(expected.to_vec()));
}
