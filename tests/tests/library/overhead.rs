//! The workloads of the benchmark, and its refusal of an allocator that does not count.

use std::time::Duration;

use memcheck_tests::overhead::{Models, Workload, serve};

#[test]
fn every_workload_is_found_by_its_name_and_takes_time() {
    let models = Models::load().unwrap();
    for workload in Workload::ALL {
        assert_eq!(workload.name().parse::<Workload>().unwrap(), workload);
        assert!(models.time(workload, 1).unwrap() > Duration::ZERO);
    }
    assert!("loop-65B".parse::<Workload>().is_err());
}

#[test]
fn an_allocator_that_does_not_count_is_refused() {
    assert!(serve(|| Some(0)).is_err());
}
