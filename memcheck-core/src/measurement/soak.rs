//! The result of a soak: the iterations of a test ran for a time that the user asked for, in a
//! process of their own. It comes after all other runs, so that no figure depends on it, and has call
//! stacks at once, because a leak that takes ten minutes to show should not have to show twice.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::size::counted;

/// A soak of a test.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Soaked {
    /// The time that was asked for, in milliseconds.
    pub asked: u64,
    /// The time from the beginning of the first iteration to the end of the last, in milliseconds.
    pub taken: u64,
    /// All iterations, warm-up included.
    pub iterations: u32,
    /// The reason why the soak ended before its time; `None` if it took all of it, or if it found
    /// growth above the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
}

impl Soaked {
    /// A soak that was not begun, for this reason.
    pub fn refused(asked: Duration, reason: &str) -> Self {
        Self { asked: milliseconds(asked), ended: Some(reason.to_owned()), ..Self::default() }
    }

    /// False if the test has no soak that can be reported.
    pub fn has_begun(&self) -> bool {
        self.iterations > 0
    }

    /// `181,234 iterations in 10m`, with the reason if it ended early.
    pub fn sentence(&self) -> String {
        let iterations = counted(self.iterations.into(), "iteration", "iterations");
        let (taken, asked) = (shown(self.taken), shown(self.asked));
        match &self.ended {
            Some(why) if !self.has_begun() => format!("it was not begun, because {why}"),
            None => format!("{iterations} in {taken}"),
            Some(why) => format!("{iterations} in {taken} of {asked}, because {why}"),
        }
    }
}

/// Whole milliseconds.
pub fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// `9m 59s`. Less than ten seconds have tenths, as milliseconds.
pub fn shown(milliseconds: u64) -> String {
    let unit = if milliseconds < 10_000 { 100 } else { 1_000 };
    let rounded = Duration::from_millis(milliseconds - milliseconds % unit);
    humantime::format_duration(rounded).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_has_the_iterations_the_time_and_the_reason_of_an_early_end() {
        for (time, text) in [
            (0, "0s"),
            (9_940, "9s 900ms"),
            (60_000, "1m"),
            (600_900, "10m"),
            (3_725_999, "1h 2m 5s"),
        ] {
            assert_eq!(shown(time), text);
        }
        let whole = Soaked { asked: 600_000, taken: 600_010, iterations: 181_234, ended: None };
        assert_eq!(whole.sentence(), "181,234 iterations in 10m");
        let ended = Some("the body returned an error".to_owned());
        let early = Soaked { taken: 4_000, iterations: 1, ended, ..whole };
        let text = "1 iteration in 4s of 10m, because the body returned an error";
        assert_eq!(early.sentence(), text);
        let never = Soaked::refused(Duration::MAX, "it has one iteration");
        assert_eq!((never.asked, never.has_begun()), (u64::MAX, false));
        assert_eq!(never.sentence(), "it was not begun, because it has one iteration");
    }
}
