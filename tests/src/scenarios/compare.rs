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
    /// [`Pattern::Irregular`]) the figure is the number of bytes that the measured iterations left.
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
                Some(Pattern::Irregular | Pattern::Growing) => top["bytes"] == (self.bytes)(leg),
                _ => finding[self.expected.figure()] == (self.bytes)(leg),
            },
            line: top["line"] == self.line && Path::new(file).ends_with(self.file),
            pattern: self.pattern.map(|pattern| match pattern {
                // On the host the containers of the growing blocks are part of the site, which can
                // make its pattern irregular.
                Pattern::Growing => {
                    [pattern, Pattern::Irregular].iter().any(|one| top["pattern"] == json!(one))
                }
                pattern => top["pattern"] == json!(pattern),
            }),
            cause: finding["cause"]["code"] == self.cause,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenarios::named;

    #[test]
    fn a_complete_finding_agrees_with_its_scenario() {
        let scenario = named("every_third_time");
        let finished = json!({"findings": [{
            "code": "leak", "bytes_per_iteration": 1024, "cause": {"code": "tensor-kept"},
            "sites": [{
                "file": "/home/me/memcheck/tests/src/scenarios/rhythms.rs",
                "line": scenario.line, "pattern": "periodic",
            }],
        }]});
        assert!(scenario.compare(Family::Cuda, &finished).is_whole());
    }

    #[test]
    fn a_test_without_findings_disagrees_in_every_part() {
        for scenario in crate::scenarios::all() {
            let agreement = scenario.compare(Family::Cuda, &json!({"findings": []}));
            let Agreement { found, bytes, line, pattern, cause } = agreement;
            assert!(!(found || bytes || line || cause), "{}", scenario.name);
            assert_eq!(pattern, scenario.pattern.map(|_| false));
        }
    }

    #[test]
    fn a_retained_finding_has_no_pattern() {
        let scenario = named("workspace_of_the_largest_request");
        let finished = json!({"findings": [{"code": "retained", "figure": 32768}]});
        let agreement = scenario.compare(Family::Cpu, &finished);
        assert!(agreement.found && agreement.bytes && !agreement.line && !agreement.is_whole());
    }
}
