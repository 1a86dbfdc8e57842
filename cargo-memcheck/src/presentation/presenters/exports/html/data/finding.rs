//! The data of a finding: its message, its call sites and its cause.

use std::path::Path;

use memcheck_core::judgement::diagnosis::Cause;
use memcheck_core::judgement::finding::{Code, Finding, GrownHolder, Site};
use memcheck_core::measurement::stack::Stack;
use serde::Serialize;

use super::tree::Tree;
use crate::discovery::task::TestOutcome;
use crate::presentation::presenters::findings::{self, Folded};
use crate::presentation::presenters::{panics, places};

/// A report of a run with a million holders stays small.
const MOST_SITES: usize = 50;

#[derive(Debug, Serialize)]
pub(super) struct FindingData {
    code: String,
    message: String,
    /// True if the finding makes the test fail.
    fails: bool,
    /// The line of a panic or a crash.
    panicked_at: Option<String>,
    space: Option<String>,
    grown: Vec<GrownHolder>,
    sites: Vec<SiteData>,
    /// Call sites that are left out, and their bytes.
    more: Option<(usize, u64)>,
    /// The headline, if it is the line that called those of the call sites.
    called_from: Option<String>,
    cause: Option<Cause>,
    hint: Option<String>,
    /// The findings that follow from this one.
    consequences: Vec<FindingData>,
}

#[derive(Debug, Serialize)]
struct SiteData {
    place: Option<String>,
    function: Option<String>,
    via: Option<String>,
    operation: Option<String>,
    tensor: Option<String>,
    scope: Option<String>,
    note: Option<String>,
    blocks: String,
    bytes: u64,
    rate: u64,
    stack: Option<usize>,
}

impl FindingData {
    pub(super) fn new(
        Folded { finding, consequences }: Folded<'_>,
        outcome: &TestOutcome,
        tree: &mut Tree,
    ) -> Self {
        let shown = finding.sites.len().min(MOST_SITES);
        let (first, rest) = finding.sites.split_at(shown);
        let left_out = (rest.len(), rest.iter().map(|site| site.bytes).sum());
        for (file, line) in places::grown(finding) {
            tree.show(Some(file), Some(line));
        }
        let called_from = places::caller(finding).map(|(file, line)| {
            tree.show(Some(file), Some(line));
            format!("{file}:{line}")
        });
        Self {
            code: finding.code.to_string(),
            message: finding.message.clone(),
            fails: findings::is_denied(finding, &outcome.verdict),
            panicked_at: panicked_at(finding, outcome, tree),
            space: finding.space.map(|space| space.to_string()),
            grown: finding.grown.clone(),
            sites: first.iter().map(|site| SiteData::new(site, tree)).collect(),
            more: (left_out.0 > 0).then_some(left_out),
            called_from,
            cause: finding.cause.clone(),
            hint: finding.hint.clone(),
            consequences: consequences
                .into_iter()
                .map(|finding| {
                    Self::new(Folded { finding, consequences: Vec::new() }, outcome, tree)
                })
                .collect(),
        }
    }
}

/// The line of the crash or panic that a finding reports. A line of a dependency is not a place to look
/// at.
fn panicked_at(finding: &Finding, outcome: &TestOutcome, tree: &mut Tree) -> Option<String> {
    let output = outcome.output.own_lines();
    let crash = finding.crashed_at().map(|at| (at.file.as_str(), at.line));
    let panic = || panics::line(&output).filter(|_| finding.code == Code::TestFailed);
    let (file, line) = crash.or_else(panic)?;
    Path::new(file).is_relative().then(|| {
        tree.show(Some(file), Some(line));
        format!("{file}:{line}")
    })
}

impl SiteData {
    fn new(site: &Site, tree: &mut Tree) -> Self {
        tree.show(site.file.as_deref(), site.line);
        let via = |via: &memcheck_core::judgement::finding::Via| {
            format!("{} ({}:{})", via.function, via.file, via.line)
        };
        let stack = Stack { frames: site.stack.clone(), ..Stack::default() };
        Self {
            place: site.place(),
            function: site.function.clone(),
            via: site.via.as_ref().map(via),
            operation: site.operation.clone(),
            tensor: site.tensor.clone(),
            scope: site.scope.clone(),
            note: site.note.clone(),
            blocks: findings::blocks(site),
            bytes: site.bytes,
            rate: site.bytes_per_iteration,
            stack: (!stack.frames.is_empty()).then(|| tree.stack(&stack)),
        }
    }
}
