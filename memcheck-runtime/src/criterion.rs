//! A measurement for criterion that counts bytes instead of time.
//!
//! ```no_run
//! use candle_core::{DType, Device, Tensor};
//! use memcheck_runtime::criterion::{Bytes, PeakPerIteration as _};
//!
//! # fn main() -> candle_core::Result<()> {
//! let device = Device::cuda_if_available(0)?;
//! let mut criterion = Bytes::criterion(&device);
//! let a = Tensor::zeros((64, 64), DType::F32, &device)?;
//! // What an iteration allocates, in all: 16,384 B.
//! criterion.bench_function("matmul", |b| b.iter(|| a.matmul(&a)));
//! // The most that an iteration has live at once, beyond what was live before.
//! criterion.bench_function("matmul, peak", |b| b.iter_peak(&device, || a.matmul(&a)));
//! # Ok(())
//! # }
//! ```
//!
//! The figures do not vary from run to run, so criterion reports every difference as significant.
//! criterion refuses a benchmark whose iterations allocate nothing, because it takes zero for a
//! mistake. `cargo memcheck bench` runs the bench on the simulated GPU. `cargo bench` runs it on
//! the CPU, or on a GPU if the bench is built for one.

use candle_core::Device;
use criterion::measurement::{Measurement, ValueFormatter};
use criterion::{Bencher, Criterion, Throughput};
use memcheck_core::quiet;
use memcheck_core::space::Space;
use memcheck_ledger as ledger;

use crate::{canary, device, usage};

/// The bytes that an iteration allocates on a device, including those that it frees.
#[derive(Debug)]
pub struct Bytes {
    space: Space,
}

impl Bytes {
    /// A criterion that measures on `device` and parses the command line. It draws no plots,
    /// because figures that do not vary have no density, and criterion 0.8 panics if it compares
    /// two of these.
    ///
    /// # Panics
    /// As [`Bytes::on`] does.
    pub fn criterion(device: &Device) -> Criterion<Self> {
        Criterion::default()
            .with_measurement(Self::on(device))
            .without_plots()
            .configure_from_args()
    }

    /// Measures on `device`.
    ///
    /// # Panics
    /// If the probe of the device does not see the allocations on it. Without the probe the figures
    /// would be zero, which is wrong.
    pub fn on(device: &Device) -> Self {
        let _quiet = quiet::enter();
        usage::arm();
        let space = device::space(device);
        assert!(
            canary::on_device(device).unwrap_or(false),
            "memcheck's probe does not see allocations on {space}: check that its allocator or \
             its CUDA probe is linked into this bench"
        );
        Self { space }
    }
}

impl Measurement for Bytes {
    type Intermediate = u64;
    type Value = u64;

    fn start(&self) -> u64 {
        ledger::snapshot(self.space).allocated_total
    }

    fn end(&self, before: u64) -> u64 {
        ledger::snapshot(self.space).allocated_total - before
    }

    fn add(&self, one: &u64, other: &u64) -> u64 {
        one + other
    }

    fn zero(&self) -> u64 {
        0
    }

    #[expect(clippy::cast_precision_loss, reason = "criterion's statistics are of floats")]
    fn to_f64(&self, value: &u64) -> f64 {
        *value as f64
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        &Binary
    }
}

/// A bencher that can measure the peak of a routine.
pub trait PeakPerIteration {
    /// Runs `routine` and measures the peak of each iteration: the most bytes that are live at once
    /// on `device`, minus the bytes that were live when the iteration began.
    fn iter_peak<O>(&mut self, device: &Device, routine: impl FnMut() -> O);
}

impl PeakPerIteration for Bencher<'_, Bytes> {
    fn iter_peak<O>(&mut self, device: &Device, mut routine: impl FnMut() -> O) {
        let space = device::space(device);
        self.iter_custom(|iterations| {
            (0..iterations)
                .map(|_| {
                    ledger::reset_peak(space);
                    let before = ledger::snapshot(space).live;
                    drop(std::hint::black_box(routine()));
                    ledger::snapshot(space).peak - before
                })
                .sum()
        });
    }
}

/// Formats sizes in binary units, with one unit for all values of a line.
struct Binary;

const UNITS: [(&str, f64); 4] =
    [("GiB", 1_073_741_824.0), ("MiB", 1_048_576.0), ("KiB", 1_024.0), ("B", 1.0)];

fn unit(typical: f64) -> (&'static str, f64) {
    UNITS.into_iter().find(|(_, bytes)| typical >= *bytes).unwrap_or(("B", 1.0))
}

impl ValueFormatter for Binary {
    fn scale_values(&self, typical: f64, values: &mut [f64]) -> &'static str {
        let (name, bytes) = unit(typical);
        values.iter_mut().for_each(|value| *value /= bytes);
        name
    }

    fn scale_throughputs(&self, _: f64, per: &Throughput, values: &mut [f64]) -> &'static str {
        let (count, name) = match per {
            Throughput::Elements(count) => (*count, "B/element"),
            Throughput::ElementsAndBytes { elements, .. } => (*elements, "B/element"),
            Throughput::Bits(count) => (*count, "B/bit"),
            Throughput::Bytes(count) | Throughput::BytesDecimal(count) => (*count, "B/byte"),
        };
        #[expect(clippy::cast_precision_loss, reason = "criterion's statistics are of floats")]
        values.iter_mut().for_each(|value| *value /= count as f64);
        name
    }

    fn scale_for_machines(&self, _: &mut [f64]) -> &'static str {
        "B"
    }
}
