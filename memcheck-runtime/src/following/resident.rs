//! The series of resident memory that a limit judges.

/// The resident memory after each iteration. PERF: the memory of the series is touched before the
/// first iteration, because it would count as resident memory that grows.
#[derive(Debug)]
pub(super) struct Resident {
    series: Box<[u64]>,
    length: usize,
}

impl Resident {
    /// The most iterations that are kept. Later ones are not judged.
    const MOST: u32 = 1 << 16;

    pub(super) fn new(most: u32) -> Self {
        // Ones, because the system would not map pages of zeros.
        Self { series: vec![1; most.min(Self::MOST) as usize].into(), length: 0 }
    }

    pub(super) fn add(&mut self, bytes: u64) {
        if let Some(place) = self.series.get_mut(self.length) {
            *place = bytes;
            self.length += 1;
        }
    }

    pub(super) fn series(&self) -> &[u64] {
        &self.series[..self.length]
    }
}
