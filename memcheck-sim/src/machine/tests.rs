//! Tests of the machine as a value, without globals and C.

use super::*;
use crate::pools::attribute::{RESERVED_CURRENT, USED_CURRENT, USED_HIGH};

fn machine(text: &str) -> (Machine, Handle) {
    let mut machine = Machine::new(&text.parse().unwrap());
    let context = machine.retain_primary(0).unwrap();
    (machine, context)
}

fn faulty(faults: &str) -> (Machine, Handle) {
    let spec: Spec = "h200".parse().unwrap();
    let mut machine = Machine::new(&spec.with_faults(faults.parse().unwrap()));
    let context = machine.retain_primary(0).unwrap();
    (machine, context)
}

#[test]
fn two_machines_give_the_same_addresses() {
    let addresses = || {
        let (mut machine, context) = machine("h200");
        let a = machine.allocate_async(2, context, None, 1000).unwrap();
        let b = machine.allocate(context, 10).unwrap();
        machine.free(a).unwrap();
        let c = machine.allocate_async(0, context, None, 512).unwrap();
        (a, b, c)
    };
    assert_eq!(addresses(), addresses());
    let (a, _, c) = addresses();
    assert_eq!(a, c);
}

#[test]
fn memory_runs_out_at_the_capacity_of_its_own_device() {
    let (mut machine, first) = machine("2xrtx4090,capacity=1MiB");
    let second = machine.retain_primary(1).unwrap();
    let whole = machine.allocate_async(2, first, None, 1 << 20).unwrap();
    assert_eq!(machine.allocate_async(2, first, None, 1), Err(Code::OUT_OF_MEMORY));
    let other = machine.allocate_async(2, second, None, 1 << 20).unwrap();
    assert_eq!(memory::region(whole), Some(0));
    assert_eq!(memory::region(other), Some(1));
    machine.free(whole).unwrap();
    assert_eq!(machine.devices[0].memory.used(), 0);
    assert_eq!(machine.devices[1].memory.used(), 1 << 20);
}

#[test]
fn unknown_and_freed_pointers_are_invalid() {
    let (mut machine, context) = machine("h200");
    let a = machine.allocate(context, 100).unwrap();
    assert_eq!(machine.free(a + 8), Err(Code::INVALID_VALUE));
    machine.free(a).unwrap();
    assert_eq!(machine.free(a), Err(Code::INVALID_VALUE));
    assert_eq!(machine.free(0x7fff_0000_0000), Err(Code::INVALID_VALUE));
    assert_eq!(machine.free(0), Ok(Duration::ZERO));
    assert_eq!(machine.allocate(context, 0), Err(Code::INVALID_VALUE));
}

#[test]
fn a_default_stream_needs_a_current_context() {
    let (mut machine, context) = machine("h200");
    for stream in 0..=2 {
        assert_eq!(machine.allocate_async(stream, 0, None, 8), Err(Code::INVALID_CONTEXT));
        assert!(machine.allocate_async(stream, context, None, 8).is_ok());
    }
    assert_eq!(machine.allocate_async(77, context, None, 8), Err(Code::INVALID_HANDLE));
}

#[test]
fn a_primary_context_exists_until_its_last_release() {
    let (mut machine, context) = machine("h200");
    assert_eq!(machine.retain_primary(0), Ok(context));
    machine.release_primary(0).unwrap();
    let direct = machine.allocate(context, 100).unwrap();
    let pooled = machine.allocate_async(0, context, None, 50).unwrap();
    machine.release_primary(0).unwrap();
    assert_eq!(machine.allocate(context, 8), Err(Code::CONTEXT_IS_DESTROYED));
    assert_eq!(machine.release_primary(0), Err(Code::INVALID_CONTEXT));
    // The context's direct allocations are freed with it, but those from the pool are not.
    assert_eq!(machine.free(direct), Err(Code::INVALID_VALUE));
    assert!(machine.free(pooled).is_ok());
    assert_eq!(machine.retain_primary(0), Ok(context));
}

#[test]
fn a_pool_counts_only_blocks_that_it_allocated() {
    let (mut machine, context) = machine("h200");
    let pool = machine.devices[0].default_pool;
    let a = machine.allocate_async(2, context, None, 1000).unwrap();
    machine.allocate(context, 5000).unwrap();
    machine.free(a).unwrap();
    assert_eq!(machine.pools[&pool].counter(USED_CURRENT), Ok(0));
    assert_eq!(machine.pools[&pool].counter(USED_HIGH), Ok(1000));
    assert_ne!(machine.pools[&pool].counter(RESERVED_CURRENT), Ok(0));
    machine.synchronize(context).unwrap();
    assert_eq!(machine.pools[&pool].counter(RESERVED_CURRENT), Ok(0));
}

#[test]
fn the_nth_allocation_fails_and_the_next_does_not() {
    let (mut machine, context) = faulty("oom-at=2");
    assert!(machine.allocate(context, 8).is_ok());
    assert_eq!(machine.allocate_async(0, context, None, 8), Err(Code::OUT_OF_MEMORY));
    assert!(machine.allocate(context, 8).is_ok());
}

#[test]
fn a_block_whose_free_failed_stays_live() {
    let (mut machine, context) = faulty("free-fails=1,free-slow-ms=7");
    let a = machine.allocate(context, 8).unwrap();
    assert_eq!(machine.free(a), Err(Code::UNKNOWN));
    assert_eq!(machine.devices[0].memory.used(), 8);
    assert_eq!(machine.free(a), Ok(Duration::from_millis(7)));
}

#[test]
fn a_lost_device_stays_lost() {
    let (mut machine, context) = faulty("lost-at=2");
    let a = machine.allocate(context, 8).unwrap();
    assert_eq!(machine.free(a), Err(Code::DEVICE_UNAVAILABLE));
    assert_eq!(machine.synchronize(context), Err(Code::DEVICE_UNAVAILABLE));
    assert_eq!(machine.allocate(context, 8), Err(Code::DEVICE_UNAVAILABLE));
    assert_eq!(machine.statistics().device_calls, 4);
}

#[test]
fn managed_memory_is_real_and_takes_no_capacity() {
    let (mut machine, context) = machine("t4,capacity=1KiB");
    let a = machine.allocate_managed(context, 4096).unwrap();
    assert_eq!(machine.devices[0].memory.used(), 0);
    machine.free(a).unwrap();
    assert_eq!(machine.free(a), Err(Code::INVALID_VALUE));
}

#[test]
fn the_first_failed_assert_is_reported_and_ends_the_use_of_the_device() {
    let (mut machine, _) = machine("h200");
    assert!(machine.touch().is_ok());
    for id in [5, 6] {
        machine.fail_assert(FailedAssert { kernel: "is_u32_f32".to_owned(), id, dim: 2 });
    }
    assert!(machine.touch().is_err());
    assert_eq!(machine.failed_assert.unwrap().id, 5);
}
