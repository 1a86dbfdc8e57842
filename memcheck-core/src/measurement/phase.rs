//! The figures of a phase of a test's body (`Trial::phase`), and their names in a baseline.

use serde::{Deserialize, Serialize};

use crate::characters::is_word;

/// The figures of one phase in one space, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseFigures {
    /// Highest number of live bytes in the phase, those from before it included.
    pub peak_allocated: u64,
    /// Bytes that were allocated in the phase and that an iteration leaves behind: the mean over the
    /// measured iterations, rounded down. 0 if they became fewer.
    pub growth: u64,
    /// Live bytes when the phase with that peak began.
    pub live_at_start: u64,
}

/// The figures of a phase that a baseline keeps.
const KEPT: [&str; 2] = ["growth", "peak_allocated"];

/// Separates the phase from the figure: `decode/peak_allocated`.
const SEPARATOR: char = '/';

impl PhaseFigures {
    /// Names and values for a baseline.
    pub fn named(&self, phase: &str) -> [(String, u64); 2] {
        let Self { peak_allocated, growth, .. } = *self;
        let values = [growth, peak_allocated];
        std::array::from_fn(|at| (format!("{phase}{SEPARATOR}{}", KEPT[at]), values[at]))
    }
}

/// The phase and the figure of the name of a figure; `None` if it is not that of a phase.
pub fn split(figure: &str) -> Option<(&str, &str)> {
    figure.rsplit_once(SEPARATOR).filter(|(phase, kept)| is_word(phase) && KEPT.contains(kept))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_of_a_phase_has_the_name_of_both() {
        let figures = PhaseFigures { peak_allocated: 7, growth: 3, live_at_start: 4 };
        let named = figures.named("decode");
        assert_eq!(named, [("decode/growth".into(), 3), ("decode/peak_allocated".into(), 7)]);
        assert_eq!(split(&named[1].0), Some(("decode", "peak_allocated")));
        for other in ["peak_allocated", "decode/setup", "/growth", "a b/growth", "a/b/growth"] {
            assert_eq!(split(other), None, "{other}");
        }
    }
}
