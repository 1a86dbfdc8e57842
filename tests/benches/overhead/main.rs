//! The cost of counting: memcheck's allocator compared with other allocators that a user could
//! choose.
//!
//! ```console
//! cargo bench -p memcheck-tests -F benches --bench overhead
//! ```
//!
//! # Method
//!
//! A program has one global allocator, so there is one program for each allocator,
//! `examples/overhead_*.rs`: the bare system allocator, memcheck's (armed), stats_alloc, peak_alloc
//! and dhat (with its heap profiler running). The programs differ only in the allocator, and all of
//! them run every workload. The benchmark builds them first, with the feature `overhead`. Each
//! program checks that its allocator counts before it answers requests. It runs with one rayon
//! thread, times itself and answers with nanoseconds.
//!
//! The machine may be shared, so a ratio must not compare two long blocks of time. It is computed
//! from short rounds: in each round every program runs the same workload once, one after the other.
//! The first reported figure is the ratio of the fastest rounds, taken within each generation of
//! processes and then averaged. Other load can only add time, so the fastest round is the nearest
//! to a quiet machine. The second figure is the median of the ratios to the bare program in the
//! same round. If the two figures disagree, the machine was busy.
//!
//! Two programs differ in more than their allocator. The address at which the linker puts gemm's
//! inner loop changes a forward pass by up to 3 %, which is more than the effect to be measured.
//! Each program is therefore linked several times with its functions in shuffled order, and each
//! generation of processes runs another layout.
//!
//! The programs also differ in the last block of their heap. glibc returns the end of the heap to
//! the system when 128 KiB to a few MiB are free there. A forward pass can do so never or fifteen
//! times, depending on which small block is the last one: between 180 and 1,660 page faults per
//! pass were observed, which is some 5 % of its time. That is chance and not a cost of an
//! allocator, so all programs run with a heap that does not return memory to the system
//! (`MALLOC_TRIM_THRESHOLD_`, `MALLOC_MMAP_THRESHOLD_`).
//!
//! One of the programs is a second copy of the bare one, in another layout. Its ratio would be 1
//! without noise, so its distance from 1 is the uncertainty of the other ratios in the row. The
//! small model is the noisiest, because even with one rayon thread candle hands work from one
//! thread to another and waits for the scheduler.
//!
//! The table goes to the terminal and to `target/memcheck/overhead.md`. The benchmark asserts no
//! times. The limits are targets for a quiet machine. Criterion times the same programs for its
//! history, which compares a run with the one before it.

#[path = "../alternating/mod.rs"]
mod alternating;
mod programs;
mod rounds;
mod table;

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use criterion::Criterion;
use memcheck_tests::overhead::Workload;

use programs::{Allocator, Programs};

fn main() -> anyhow::Result<()> {
    // `cargo test --benches` starts benchmarks without optimization, only to see that they run.
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("run `cargo bench` to measure the overhead");
        return Ok(());
    }
    // Cargo creates `target/tmp` for benchmarks.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .context("the build has no target directory")?;
    let programs = Programs::build(&target.join("memcheck").join("overhead"))?;
    with_criterion(&programs)?;

    let table = table::markdown(&rounds::measure(&programs)?);
    println!("{table}");
    let report = target.join("memcheck").join("overhead.md");
    std::fs::write(&report, table)?;
    println!("report written to {}", report.display());
    Ok(())
}

fn with_criterion(programs: &Programs) -> anyhow::Result<()> {
    let mut criterion = Criterion::default()
        .without_plots()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(600))
        .configure_from_args();
    for workload in Workload::ALL {
        let mut group = criterion.benchmark_group(workload.name());
        for allocator in Allocator::ALL {
            let mut program = programs.start(allocator, 0)?;
            group.bench_function(allocator.name(), |bencher| {
                bencher.iter_custom(|iterations| {
                    program.time(workload.name(), iterations).expect("the program reports a time")
                });
            });
        }
        group.finish();
    }
    criterion.final_summary();
    Ok(())
}
