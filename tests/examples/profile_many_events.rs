//! Millions of allocations and frees for `cargo memcheck profile`. The memory of the profiler must
//! not grow with the number of events.
//!
//! `profile_many_events [EVENTS]`: half of the events allocate and half of them free. Most blocks
//! are plain bytes in a queue. One in sixteen is a tensor.

use std::collections::VecDeque;

use candle_core::{DType, Device, Result, Tensor};
use memcheck_runtime as _;
use tracing::info_span;

const LIVE: usize = 1000;

fn main() -> Result<()> {
    let events: usize = match std::env::args().nth(1) {
        Some(text) => text.parse().expect("a number of events"),
        None => 1_000_000,
    };
    let device = Device::cuda_if_available(0)?;
    let mut queue = VecDeque::with_capacity(LIVE + 1);
    let mut sum = 0;
    for number in 0..events / 2 {
        if number % 16 == 0 {
            let _span = info_span!("tensors").entered();
            let rows = 1 + number % 7;
            sum += Tensor::zeros((rows, 256), DType::F32, &device)?.elem_count();
        } else {
            queue.push_back(block(number));
        }
        if queue.len() > LIVE {
            sum += queue.pop_front().map_or(0, |block| block.len());
        }
    }
    println!("{events} events, {sum} bytes and elements");
    Ok(())
}

/// From 1 KiB, the smallest block that the ledger follows on the host, to 9 KiB.
fn block(number: usize) -> Vec<u8> {
    vec![0; 1024 + number % 9 * 1024]
}
