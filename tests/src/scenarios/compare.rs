//! Compares a finding with the expectations of a scenario.

use std::path::Path;

use serde_json::{Value, json};

use super::{Family, Pattern, Scenario};

/// The parts of a report that agree with a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreement {
    /// The first finding has the expected code.
    pub found: bool,
    /// The figure equals the formula, to the byte. For growth without a rate ([`Pattern::Growing`],
    /// [`Pattern::Irregular`]) the figure is the number of bytes that the measured iterations left,
    /// and growth that accelerates has their mean as its rate.
    pub bytes: bool,
    /// The top site is the line that allocates.
    pub line: bool,
    /// The top site has the pattern. `None` if the scenario does not grow.
    pub pattern: Option<bool>,
    /// The cause is diagnosed.
    pub cause: bool,
}

impl Agreement {
    /// True if every part agrees.
    pub fn is_whole(self) -> bool {
        let Self { found, bytes, line, pattern, cause } = self;
        found && bytes && line && pattern.unwrap_or(true) && cause
    }
}

impl Scenario {
    /// Compares a `test-finished` line of the leaky program's test, which was judged on `leg`, with
    /// the expectations. A field that is missing or `null` disagrees.
    pub fn compare(&self, leg: Family, finished: &Value) -> Agreement {
        let finding = &finished["findings"][0];
        let top = &finding["sites"][0];
        let file = top["file"].as_str().unwrap_or_default();
        Agreement {
            found: finding["code"] == self.expected.code(),
            bytes: match self.pattern {
                Some(Pattern::Irregular) => top["bytes"] == (self.bytes)(leg),
                Some(Pattern::Growing) => {
                    let (bytes, measured) = ((self.bytes)(leg), measured_iterations(finished));
                    let mean = (bytes + measured / 2) / measured;
                    top["bytes"] == bytes && top["bytes_per_iteration"] == mean
                }
                _ => finding[self.expected.figure()] == (self.bytes)(leg),
            },
            line: top["line"] == self.line && Path::new(file).ends_with(self.file),
            pattern: self.pattern.map(|pattern| top["pattern"] == json!(pattern)),
            cause: finding["cause"]["code"] == self.cause,
        }
    }
}

/// The number of measured iterations of a test, which is at least 1.
fn measured_iterations(finished: &Value) -> u64 {
    let series = finished["iterations"][0]["allocated"].as_array();
    series.map_or(1, |series| series.len().max(1) as u64)
}
