//! Live bytes over time, in a bounded number of points.
//!
//! Time is the number of the event, which is the same in every run. A point represents a stretch of
//! events and stores the highest value in it. When all points are used, each pair is merged into
//! one, and the stretch of each point doubles.

/// The most points that are stored, which is enough for any screen.
const POINTS: usize = 512;

/// A series of highest values.
#[derive(Debug, Clone)]
pub(crate) struct Timeline {
    stretch: u64,
    points: Vec<u64>,
    /// The number of events in the last point.
    filled: u64,
}

impl Default for Timeline {
    fn default() -> Self {
        Self { stretch: 1, points: Vec::new(), filled: 0 }
    }
}

impl Timeline {
    /// Adds the value after one more event.
    pub(crate) fn push(&mut self, live: u64) {
        if self.filled == 0 {
            if self.points.len() == POINTS {
                self.halve();
            }
            self.points.push(live);
        } else if let Some(last) = self.points.last_mut() {
            *last = live.max(*last);
        }
        self.filled = (self.filled + 1) % self.stretch;
    }

    fn halve(&mut self) {
        self.points =
            self.points.chunks(2).map(|pair| pair.iter().copied().max().unwrap_or(0)).collect();
        self.stretch *= 2;
    }

    /// The number of events of each point, and the points.
    pub(crate) fn into_parts(self) -> (u64, Vec<u64>) {
        (self.stretch, self.points)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_million_values_fit_and_keep_their_peak() {
        let mut timeline = Timeline::default();
        for i in 0..10_000_000u64 {
            timeline.push(if i == 7_654_321 { 9 } else { i % 3 });
        }
        let (stretch, points) = timeline.into_parts();
        assert!(points.len() <= POINTS);
        assert_eq!(points.iter().max(), Some(&9));
        let at = points.iter().position(|&value| value == 9).unwrap() as u64;
        assert_eq!(at, 7_654_321 / stretch);
    }
}
