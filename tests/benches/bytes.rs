//! Bytes in the place of time: what a forward pass of a tiny BERT allocates, and
//! the most that it has live at once, by criterion.
//!
//! `cargo memcheck bench -p memcheck-tests -F benches --bench bytes` runs it on the simulated
//! GPU. Any change of a figure is one that criterion calls significant.

use candle_core::{DType, Device, Tensor};
use criterion::BatchSize;
use memcheck_runtime::criterion::{Bytes, PeakPerIteration as _};

fn main() -> candle_core::Result<()> {
    let device = Device::cuda_if_available(0)?;
    let mut criterion = Bytes::criterion(&device).sample_size(10);
    let (rows, columns) = (64, 256);
    let input = Tensor::zeros((rows, columns), DType::F32, &device)?;
    let weights = Tensor::zeros((columns, columns), DType::F32, &device)?;
    let mut group = criterion.benchmark_group("layer");
    // rows * columns * 4 B each for the product and for its relu.
    group.bench_function("allocated", |bencher| {
        bencher.iter_batched(
            || input.clone(),
            |input| input.matmul(&weights).and_then(|product| product.relu()),
            BatchSize::SmallInput,
        );
    });
    // Both are live at once.
    group.bench_function("peak", |bencher| {
        bencher.iter_peak(&device, || input.matmul(&weights).and_then(|product| product.relu()));
    });
    group.finish();
    criterion.final_summary();
    Ok(())
}
