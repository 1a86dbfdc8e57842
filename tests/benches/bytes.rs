//! Criterion measures bytes instead of time: the bytes that a forward pass of a tiny BERT
//! allocates, and its peak of live bytes.
//!
//! `cargo memcheck bench -p memcheck-tests -F benches --bench bytes` runs it on the simulated GPU.
//! The figures are deterministic, so criterion reports any change as significant.

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
    // Product and relu are live at the same time.
    group.bench_function("peak", |bencher| {
        bencher.iter_peak(&device, || input.matmul(&weights).and_then(|product| product.relu()));
    });
    group.finish();
    criterion.final_summary();
    Ok(())
}
