//! What counting costs: memcheck's allocator beside the ones that a user would
//! pick instead, in one run.
//!
//! ```console
//! cargo bench -p memcheck-tests -F benches --bench overhead
//! ```
//!
//! # Method
//!
//! A program has one global allocator, so each allocator is a program of its
//! own, `examples/overhead_*.rs`: the bare system's, memcheck's (armed),
//! stats_alloc, peak_alloc and dhat (its heap profiler running). They share
//! every workload and differ in nothing else. They are built first, with the
//! feature `overhead`, and prove before they serve that their allocator counts.
//! They run with one rayon thread, time themselves and answer nanoseconds.
//!
//! The machine may be shared, so a ratio never compares two long blocks of
//! time. It comes from short rounds: in each round every program runs the same
//! workload once, one after the other. Reported is the ratio of the fastest
//! rounds, taken within each generation of processes and averaged: neighbours
//! only ever add time, so the fastest round is the one nearest to a quiet
//! machine. Beside it stands the median of the ratios to the bare program in
//! the same round; where the two disagree, the machine was busy.
//!
//! Two programs differ in more than their allocator: where the linker put
//! gemm's inner loop is worth up to 3 % of a forward pass, more than what is
//! looked for. So each program is linked several times with its functions in
//! shuffled order, and each generation of processes runs another layout.
//!
//! They also differ in what lies at the end of their heap. glibc gives that end
//! back to the system when 128 KiB to a few MiB are free there, and whether a
//! forward pass does so never or fifteen times hangs on which small block lies
//! last: 180 or 1,660 page faults a pass have been seen, worth some 5 % of it.
//! That is luck, and no allocator's own cost, so all of them run with a heap
//! that keeps what it once had (`MALLOC_TRIM_THRESHOLD_`, `MALLOC_MMAP_THRESHOLD_`).
//!
//! One of the programs is a second bare one, in another layout. Its ratio is 1
//! but for noise: how far it is from 1 is what the other ratios of its row
//! cannot tell. The small model is the noisiest: with one rayon thread candle
//! still hands work from one thread to another and waits for the scheduler.
//!
//! The table goes to the terminal and to `target/memcheck/overhead.md`. No
//! time is asserted: limits are what is aimed at on a quiet machine. Criterion
//! times the same programs for its history, which compares a run with the one
//! before it.

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
    // `cargo test --benches` starts benchmarks to see that they run, unoptimised.
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("overhead is measured by `cargo bench`");
        return Ok(());
    }
    // `target/tmp` is made by cargo for benchmarks.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().context("no target directory")?;
    let programs = Programs::build(&target.join("memcheck").join("overhead"))?;
    with_criterion(&programs)?;

    let table = table::markdown(&rounds::measure(&programs)?);
    println!("{table}");
    let report = target.join("memcheck").join("overhead.md");
    std::fs::write(&report, table)?;
    println!("written to {}", report.display());
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
                    program.time(workload.name(), iterations).expect("the program answers")
                });
            });
        }
        group.finish();
    }
    criterion.final_summary();
    Ok(())
}
