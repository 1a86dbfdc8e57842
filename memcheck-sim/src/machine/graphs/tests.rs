//! Tests of graphs on a machine as a value, without globals and C.

use super::executable::AUTO_FREE_ON_LAUNCH;
use super::*;
use crate::compute::Memory as _;

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
