//! `not-measured`: what this run proves nothing about.

use crate::finding::{Code, Finding};
use crate::limits::{Limits, Source};
use crate::record::{Outcome, Record};
use crate::space::Space;

/// An instrument that did not see everything.
pub(super) fn blind(record: &Record) -> Vec<Finding> {
    let mut findings = Vec::new();
    if record.judged.is_empty() {
        findings.push(Finding::new(Code::NotMeasured, "no memory space was judged"));
    }
    for space in &record.judged {
        if record.spaces.get(space).is_none_or(|measured| !measured.armed) {
            let finding = Finding {
                space: Some(*space),
                ..Finding::new(
                    Code::NotMeasured,
                    format!("the canary allocation of this run was not seen in {space}"),
                )
            };
            findings.push(finding.hint(match space {
                Space::Host => {
                    "is another #[global_allocator] in place? wrap it: `memcheck_runtime::Tracking<A>`"
                }
                _ => "the binary calls CUDA in a way that the probe does not intercept",
            }));
        }
    }
    if record.lost_events > 0 {
        findings.push(Finding::new(
            Code::NotMeasured,
            format!("{} events were lost: the ledger was full", record.lost_events),
        ));
    }
    if !record.unsupported_calls.is_empty() {
        findings.push(Finding::new(
            Code::NotMeasured,
            format!("the simulated device does not know {}", record.unsupported_calls.join(", ")),
        ));
    }
    findings
}

/// A body that returned although its iterations did not come to their end, or
/// that never iterated although its growth is limited: nothing is proven.
pub(super) fn incomplete(record: &Record, limits: &Limits) -> Option<Finding> {
    let planned = limits.iterations.value;
    let asked = !matches!(limits.max_growth.source, Source::BuiltIn | Source::Default);
    // A panic that is expected may end the iterations.
    let panicked = matches!(record.outcome, Outcome::Panicked { .. });
    if record.iterated && record.iterations < planned && !panicked {
        let finding = Finding::new(
            Code::NotMeasured,
            format!("{} of {planned} measured iterations came to their end", record.iterations),
        );
        return Some(
            finding.hint("return the error of `Trial::iterate`, or handle it in the iteration"),
        );
    }
    (!record.iterated && asked && !panicked).then(|| {
        Finding::new(
            Code::NotMeasured,
            "growth is limited, and the body never called `Trial::iterate`",
        )
        .hint("without iterations there is no growth to measure: drop `max_growth`, or iterate")
    })
}
