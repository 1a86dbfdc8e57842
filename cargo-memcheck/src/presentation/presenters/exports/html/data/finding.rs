//! The data of a finding: its message, its lines and its cause.

use memcheck_core::judgement::diagnosis::Cause;
use memcheck_core::judgement::finding::{GrownHolder, HeadLine, Site};
use memcheck_core::judgement::rise::Rise;
use memcheck_core::measurement::stack::Stack;
use memcheck_core::presentation::by_line::sites_by_line;
use memcheck_core::presentation::text::{self, ONE_KEEPS_IT};
use serde::Serialize;

use super::super::changes::{self, Changes};
use super::super::ending::{Ending, Extent};
use super::tree::Tree;
use crate::discovery::task::TestOutcome;
use crate::presentation::presenters::findings::{self, Folded};

/// Lines of call sites, and call sites of one line. A report of a run with a million holders stays small.
const MOST_LINES: usize = 50;
const MOST_SITES: usize = 20;

#[derive(Debug, Serialize)]
pub(super) struct FindingData {
    code: String,
    message: String,
    /// True if the finding makes the test fail.
    fails: bool,
    /// The words before the line at which the test ended or that called those that allocate.
    title: &'static str,
    at: Option<CallerData>,
    /// True if that is only the line of the test, because the place is not known.
    is_test: bool,
    callers: Vec<CallerData>,
    /// A remark about the callers.
    callers_note: Option<&'static str>,
    /// The line of the tensor that holds a kept graph, with the words before and after it.
    kept_through: Option<(CallerData, [&'static str; 2])>,
    last_output: Option<String>,
    space: Option<String>,
    /// The table of a peak that rose.
    changes: Option<Changes>,
    /// Holders that hold more at the peak, by line.
    grown: Vec<Vec<GrownHolder>>,
    lines: Vec<LineData>,
    /// Lines that are left out, and their bytes.
    more: Option<(usize, u64)>,
    cause: Option<Cause>,
    /// The cause of a regression.
    rise: Option<Rise>,
    hint: Option<String>,
    /// The findings that follow from this one.
    consequences: Vec<FindingData>,
}

/// A line of the program and its function.
#[derive(Debug, Serialize)]
struct CallerData {
    place: String,
    function: Option<String>,
}

/// The call sites of one line, with their sums.
#[derive(Debug, Serialize)]
struct LineData {
    bytes: u64,
    blocks: u64,
    rate: u64,
    sites: Vec<SiteData>,
    /// Call sites of the line that are left out.
    more: usize,
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
        let Ending { title, is_test, at, extent, callers, further, last_output } =
            Ending::new(finding, outcome);
        let first = finding.message.lines().next().unwrap_or_default().to_owned();
        // The evidence of a cause has it.
        let longer_run = finding.longer_run.clone().filter(|_| finding.cause.is_none());
        let message: Vec<String> = [first].into_iter().chain(further).chain(longer_run).collect();
        let at = at.map(|at| CallerData::with_lines(at, extent, tree));
        let callers: Vec<CallerData> =
            callers.into_iter().map(|caller| CallerData::new(caller, tree)).collect();
        let is_kept = !callers.is_empty() && finding.caller().is_some();
        let through = text::kept_through(finding);
        let kept_through = through.map(|(at, words)| (CallerData::new(at.clone(), tree), words));
        let grown = changes::lines(&finding.grown);
        for place in grown.iter().filter_map(|of| of.first()?.place.as_deref()) {
            tree.show_place(place);
        }
        let mut lines = sites_by_line(&finding.sites, Site::place);
        // Blocks without a call site come before the call sites that hold them.
        if finding.sites.iter().all(|site| site.place().is_some()) {
            lines.sort_by_key(|sites| std::cmp::Reverse((rate(sites), bytes(sites))));
        }
        let left_out = lines.split_off(lines.len().min(MOST_LINES));
        let more = left_out.iter().map(|sites| bytes(sites)).sum();
        Self {
            code: finding.code.to_string(),
            message: message.join("\n"),
            fails: findings::is_denied(finding, &outcome.verdict),
            title,
            at,
            is_test,
            callers,
            callers_note: is_kept.then_some(ONE_KEEPS_IT),
            kept_through,
            last_output,
            space: finding.space.map(|space| space.to_string()),
            changes: Changes::new(finding),
            grown: grown.into_iter().map(|of| of.into_iter().map(described).collect()).collect(),
            lines: lines.iter().map(|sites| LineData::new(sites, tree)).collect(),
            more: (!left_out.is_empty()).then_some((left_out.len(), more)),
            cause: finding
                .cause
                .clone()
                .map(|cause| Cause { evidence: finding.evidence().unwrap_or_default(), ..cause }),
            rise: finding.reason(),
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

/// With the shape that its tensor had.
fn described(holder: &GrownHolder) -> GrownHolder {
    GrownHolder { holder: holder.description(), ..holder.clone() }
}

fn bytes(sites: &[&Site]) -> u64 {
    sites.iter().fold(0, |sum, site| sum.saturating_add(site.bytes))
}

fn rate(sites: &[&Site]) -> u64 {
    sites.iter().fold(0, |sum, site| sum.saturating_add(site.bytes_per_iteration))
}

impl CallerData {
    fn new(at: HeadLine, tree: &mut Tree) -> Self {
        Self::with_lines(at, Extent::Around, tree)
    }

    fn with_lines(at: HeadLine, extent: Extent, tree: &mut Tree) -> Self {
        let HeadLine { file, line, function } = at;
        tree.show_lines(&file, line, extent);
        Self { place: format!("{file}:{line}"), function }
    }
}

impl LineData {
    fn new(sites: &[&Site], tree: &mut Tree) -> Self {
        let shown = &sites[..sites.len().min(MOST_SITES)];
        Self {
            bytes: bytes(sites),
            blocks: sites.iter().fold(0, |sum, site| sum.saturating_add(site.count)),
            rate: rate(sites),
            sites: shown.iter().map(|site| SiteData::new(site, tree)).collect(),
            more: sites.len() - shown.len(),
        }
    }
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
