//! Formats a finding as lines of text: one line of summary, then sites, cause and hint.

mod entries;

use crate::judgement::diagnosis::Cause;
use crate::judgement::finding::{Code, Finding, GrownHolder, HeadLine};
use crate::judgement::headline::callers;
use crate::measurement::unknown_reads::UnknownReads;
use crate::presentation::sizes;
use crate::size::{self, Size};

use entries::LineEntry;
pub use entries::blocks;

/// The part of a finding that is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Much {
    /// At most three sites, and eight further lines of a long message.
    Few,
    /// Everything.
    All,
}

/// What is known of the line that keeps memory, if other lines called the one that computes it.
pub const ONE_KEEPS_IT: &str = "one of these lines keeps it, or what they call";

/// What is written after the line of a test whose process crashed at a line that is not known.
pub const LINE_OF_TEST: &str = "the test";
/// The same, if the line calls the iterations.
pub const LINE_OF_ITERATIONS: &str = "iterates here";

const FEW_SITES: usize = 3;
const FEW_LINES: usize = 8;

impl Much {
    fn limit(self, few: usize, all: usize) -> usize {
        match self {
            // One more takes the place of the line that says that it is left out.
            Self::Few if few > 1 && all == few + 1 => all,
            Self::Few => all.min(few),
            Self::All => all,
        }
    }
}

/// The question that a line of a finding answers, by which a terminal colors it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinePart {
    /// What happened: the code, and the first line of the message.
    Summary,
    /// Further lines of the message.
    Message,
    /// A line of the program.
    Place,
    /// The text of that line, which only some reports have.
    Source,
    /// The operation and the tensor that were allocated.
    Operation,
    /// How much: blocks and bytes.
    Amount,
    /// How much is not printed.
    More,
    /// Why: the cause with its evidence.
    Cause,
    /// What to do.
    Remedy,
}

/// A line of a finding, with its indentation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The question that the line answers.
    pub part: LinePart,
    /// The text.
    pub text: String,
}

fn line(part: LinePart, text: impl Into<String>) -> Line {
    Line { part, text: text.into() }
}

/// A note about reads of unknown values, with the page that explains them; `None` if a finding
/// contains it.
pub fn unknown_reads_note(reads: &UnknownReads, findings: &[Finding]) -> Option<String> {
    let sentence = reads.sentence();
    let is_known = findings
        .iter()
        .any(|finding| finding.code == Code::NotMeasured && finding.message == sentence);
    (!is_known).then(|| format!("{sentence}: `cargo memcheck explain unknown-values`"))
}

/// The texts of [`parts`].
pub fn lines(finding: &Finding, extent: Much) -> Vec<String> {
    parts(finding, extent).into_iter().map(|line| line.text).collect()
}

/// The lines of a finding, the first one being `code: message`.
pub fn parts(finding: &Finding, extent: Much) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut message = finding.message.lines();
    let first = message.next().unwrap_or_default();
    lines.push(line(LinePart::Summary, format!("{}: {first}", finding.code)));
    lines.extend(place_of_crash(finding));
    // An error text of the body can have many lines.
    let rest: Vec<&str> = message.collect();
    let shown = extent.limit(FEW_LINES, rest.len());
    lines.extend(rest[..shown].iter().map(|text| line(LinePart::Message, format!("  {text}"))));
    if shown < rest.len() {
        lines.push(more(&size::counted((rest.len() - shown) as u64, "more line", "more lines")));
    }
    // The line to change comes before those that only allocate.
    lines.extend(keeper(finding));
    lines.extend(headline(finding));
    lines.extend(changed(
        &finding.grown,
        extent,
        "more holder that grew",
        "more holders that grew",
    ));
    lines.extend(changed(
        &finding.shrunk,
        extent,
        "more holder that shrank",
        "more holders that shrank",
    ));
    let others = finding.other_holders.iter();
    lines.extend(others.map(|others| line(LinePart::More, format!("  {}", grown(others)))));
    let entries: Vec<LineEntry> = match extent {
        Much::Few => self::entries::entries(&finding.sites),
        Much::All => finding.sites.iter().map(|site| LineEntry::new(&[site])).collect(),
    };
    let most = extent.limit(most_entries(finding), entries.len());
    // The line of the finding comes before the cause, and the other call sites after it.
    let is_line = finding.cause.is_some() && finding.caller().is_none();
    let (first, others) = entries.split_at(most.min(usize::from(is_line)));
    lines.extend(first.iter().flat_map(|entry| entry.lines(finding.code)));
    if let Some(cause) = &finding.cause {
        lines.push(line(LinePart::Cause, format!("  cause: {} ({})", cause.title, cause.code)));
    }
    if let Some(evidence) = finding.evidence() {
        let indent = if finding.cause.is_some() { "    " } else { "  " };
        lines.push(line(LinePart::Cause, format!("{indent}evidence: {evidence}")));
    }
    if let Some(cause) = &finding.cause {
        lines.push(line(LinePart::Remedy, format!("    remedy: {}", cause.remedy)));
    } else if let Some(rise) = finding.reason() {
        lines.push(line(LinePart::Cause, format!("  cause: {}", rise.cause)));
        lines.push(line(LinePart::Remedy, format!("    remedy: {}", rise.remedy)));
    }
    if most > 0 {
        lines.extend(sites(others, most - first.len(), finding.code));
    }
    if let Some(hint) = &finding.hint {
        lines.push(line(LinePart::Remedy, format!("  hint: {hint}")));
    }
    lines
}

/// The lines with call sites that a short text has. The holders that changed explain a regression, and
/// the sites have the unchanged ones too. Of more allocations, the first line is the likeliest.
fn most_entries(finding: &Finding) -> usize {
    match finding.code {
        _ if !finding.grown.is_empty() => 0,
        Code::AllocationsRegression => 1,
        _ => FEW_SITES,
    }
}

/// The words before a line of the program that are true for each call site of a finding: the first
/// site of a refused allocation holds nothing.
pub fn relation(code: Code) -> &'static str {
    match code {
        Code::OutOfMemory | Code::DoesNotFit | Code::FaultUnsafe => "",
        _ => "allocated at ",
    }
}

/// The words before the headline of a finding, if it called the lines of the sites.
pub const CALLED: &str = "allocated in calls at ";

/// The line of [`Finding::kept_through`], and the words before and after it.
pub fn kept_through(finding: &Finding) -> Option<(&HeadLine, [&'static str; 2])> {
    let is_graph = finding.cause.as_ref().is_none_or(Cause::is_graph);
    let words = match is_graph {
        true => ["kept by the result of ", ", which holds the other tensors"],
        false => ["can be in the list that grows at ", ""],
    };
    finding.kept_through.as_ref().map(|at| (at, words))
}

fn keeper(finding: &Finding) -> Option<Line> {
    let (at, [before, after]) = kept_through(finding)?;
    Some(line(LinePart::Place, format!("  {before}{}{after}", placed(at))))
}

/// `src/model.rs:42 (model::forward)`.
fn placed(HeadLine { file, line, function }: &HeadLine) -> String {
    let function = function.as_deref().map(|function| format!(" ({function})"));
    format!("{file}:{line}{}", function.unwrap_or_default())
}

/// The headline of a finding, unless the first place that is printed has the same line.
fn headline(finding: &Finding) -> Vec<Line> {
    let Some(at) = finding.caller() else { return Vec::new() };
    let mut lines = vec![line(LinePart::Place, format!("  {CALLED}{}", placed(at)))];
    let callers = callers(finding);
    if !callers.is_empty() {
        let places: Vec<String> =
            callers.iter().map(|HeadLine { file, line, .. }| format!("{file}:{line}")).collect();
        let text = format!("    called from {}: {ONE_KEEPS_IT}", places.join(", "));
        lines.push(line(LinePart::Operation, text));
    }
    lines
}

/// The line at which a process crashed or, if it is not known, that of its test.
fn place_of_crash(finding: &Finding) -> Option<Line> {
    let HeadLine { file, line: number, function } = finding.stopped_at()?;
    let unknown = if finding.iterates { LINE_OF_ITERATIONS } else { LINE_OF_TEST };
    let function = function.as_deref().unwrap_or(unknown);
    Some(line(LinePart::Place, format!("  {file}:{number} ({function})")))
}

fn more(what: &str) -> Line {
    line(LinePart::More, format!("  … {what}"))
}

fn changed(all: &[GrownHolder], extent: Much, one: &str, several: &str) -> Vec<Line> {
    let (shown, hidden) = all.split_at(extent.limit(FEW_SITES, all.len()));
    let mut lines: Vec<Line> =
        shown.iter().map(|holder| line(LinePart::Amount, format!("  {}", grown(holder)))).collect();
    if !hidden.is_empty() {
        let bytes =
            hidden.iter().fold(0, |sum: u64, it| sum.saturating_add(it.now.abs_diff(it.then)));
        let count = size::counted(hidden.len() as u64, one, several);
        lines.push(more(&format!("{count}, {} in all", Size(bytes))));
    }
    lines
}

fn sites(all: &[LineEntry], most: usize, code: Code) -> Vec<Line> {
    let (shown, hidden) = all.split_at(most);
    let mut lines: Vec<Line> = shown.iter().flat_map(|entry| entry.lines(code)).collect();
    if !hidden.is_empty() {
        let placed = hidden.iter().filter(|entry| entry.place.is_some()).count();
        let (one, several) = if placed == hidden.len() {
            ("more call site", "more call sites")
        } else {
            ("more group of blocks", "more groups of blocks")
        };
        let bytes = hidden.iter().fold(0, |sum: u64, entry| sum.saturating_add(entry.bytes));
        // A group without a call site is followed by the sites that hold its blocks, so that their
        // sum would count these blocks twice.
        let is_sum = placed == 0 || placed == hidden.len();
        let bytes = if is_sum { format!(", {}", Size(bytes)) } else { String::new() };
        let count = hidden.iter().map(|entry| entry.sites as u64).sum();
        lines.push(more(&(size::counted(count, one, several) + &bytes)));
    }
    lines
}

/// Formats a holder that has more bytes at the peak than in the baseline, or fewer.
pub fn grown(holder: &GrownHolder) -> String {
    let GrownHolder { place, then, now, .. } = holder;
    let (sign, difference) = (if now < then { '-' } else { '+' }, now.abs_diff(*then));
    let was = match (*then, *now) {
        (0, _) if holder.is_unlisted => "not among the largest of the baseline".to_owned(),
        (0, _) => "new at the peak".to_owned(),
        (then, 0) => format!("was {}, is gone", Size(then)),
        (then, now) => {
            let [before, after] = sizes::apart(then, now);
            let share = sizes::share(then, now).map(|share| format!(", {share}"));
            format!("{before} → {after}{}", share.unwrap_or_default())
        }
    };
    let place = place.as_ref().map(|place| format!(" at {place}")).unwrap_or_default();
    let setup = if holder.is_setup { ", before the iterations" } else { "" };
    format!("{sign}{} {}{place} ({was}{setup})", Size(difference), holder.description())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judgement::finding::{Site, Via};
    use crate::measurement::stack::Frame;

    #[test]
    fn a_call_site_is_printed_with_its_line_its_tensor_and_its_blocks() {
        let site = |line| Site {
            function: Some("mem::step".into()),
            file: Some("tests/mem.rs".into()),
            line: Some(line),
            operation: Some("matmul".into()),
            tensor: Some("[8,128] f32".into()),
            scope: Some("layer.3".into()),
            block: Some(4_096),
            bytes: 40_960,
            count: 10,
            note: Some("steady".into()),
            ..Site::default()
        };
        let finding = Finding {
            sites: (1..=5).map(site).collect(),
            ..Finding::new(Code::Leak, "first\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11").hint("what to do")
        };
        let few = lines(&finding, Much::Few);
        assert_eq!((few[0].as_str(), few[8].as_str()), ("leak: first", "  9"));
        assert_eq!(few[9], "  … 2 more lines");
        assert_eq!(
            few[10..13],
            [
                "  allocated at tests/mem.rs:1 (mem::step)",
                "    matmul [8,128] f32 in layer.3",
                "    10 x 4,096 B (4.00 KiB): steady"
            ]
        );
        assert_eq!(few[19..], ["  … 2 more call sites, 80.0 KiB", "  hint: what to do"]);
        let four = Finding { sites: finding.sites[..4].to_vec(), ..finding.clone() };
        let four = lines(&four, Much::Few);
        assert!(!four.iter().any(|line| line.contains("more call site")), "{four:?}");
        let by_size = Site { file: None, function: None, ..finding.sites[0].clone() };
        let sizes = Finding { sites: vec![by_size; 5], ..finding.clone() };
        assert!(
            lines(&sizes, Much::Few).contains(&"  … 2 more groups of blocks, 80.0 KiB".to_owned())
        );
        let via = Via {
            file: "candle-mi-0.2.2/src/util/masks.rs".into(),
            line: 97,
            function: "candle_mi::util::masks::create_causal_mask".into(),
        };
        let frame =
            Frame { function: via.function.clone(), file: Some(via.file.clone()), line: Some(97) };
        let in_thread = Site { via: Some(via.clone()), stack: vec![frame], ..Site::default() };
        assert_eq!(
            LineEntry::new(&[&in_thread]).lines(Code::Leak)[0].text,
            "  allocated at candle_mi::util::masks::create_causal_mask (candle-mi-0.2.2/src/util/masks.rs:97)"
        );
        assert_eq!(
            LineEntry::new(&[&Site { via: Some(via), ..site(14) }]).lines(Code::Leak)[0].text,
            "  allocated at candle_mi::util::masks::create_causal_mask (candle-mi-0.2.2/src/util/masks.rs:97), \
             called from tests/mem.rs:14 (mem::step)"
        );
        let all = lines(&finding, Much::All);
        assert_eq!(all.len(), 11 + 5 * 3 + 1);
        assert!(!all.iter().any(|line| line.contains("more")), "{all:?}");
    }

    #[test]
    fn a_crash_has_its_line_or_that_of_its_test_below_its_message() {
        let crash = |function: Option<&str>| {
            let function = function.map(str::to_owned);
            let keeps_at = Some(HeadLine { file: "a.rs".to_owned(), line: 7, function });
            let finding = Finding { keeps_at, ..Finding::new(Code::Crashed, "why\ncalled from b") };
            lines(&finding, Much::Few)
        };
        let expected = ["crashed: why", "  a.rs:7 (mem::a)", "  called from b"];
        assert_eq!(crash(Some("mem::a")), expected);
        assert_eq!(crash(None)[1], "  a.rs:7 (the test)");
    }

    #[test]
    fn the_holders_of_a_regression_are_printed_instead_of_the_unchanged_sites() {
        let holder = |name: &str, then, now| GrownHolder {
            holder: name.to_owned(),
            place: (now > 0).then(|| "src/model.rs:42".to_owned()),
            then,
            now,
            ..GrownHolder::default()
        };
        let site = Site { file: Some("src/unchanged.rs".into()), count: 1, ..Site::default() };
        let mut finding = Finding {
            grown: vec![holder("softmax", 0, 4_096), holder("matmul", 2_048, 3_072)],
            shrunk: vec![holder("relu", 4_096, 0)],
            sites: vec![site],
            ..Finding::new(Code::PeakRegression, "higher")
        };
        let expected = [
            "peak-regression: higher",
            "  +4.00 KiB softmax at src/model.rs:42 (new at the peak)",
            "  +1.00 KiB matmul at src/model.rs:42 (2.00 KiB → 3.00 KiB, +50.0%)",
            "  -4.00 KiB relu (was 4.00 KiB, is gone)",
            "  cause: `softmax` at src/model.rs:42 is new at the peak (+4.00 KiB); \
             `matmul` at src/model.rs:42 holds more memory than in the baseline (+1.00 KiB)",
            "    remedy: remove the allocation of src/model.rs:42, or drop its tensor before the peak",
        ];
        assert_eq!(lines(&finding, Much::Few), expected);
        assert!(lines(&finding, Much::All).iter().any(|line| line.contains("unchanged")));
        finding.grown = vec![GrownHolder { is_unlisted: true, ..holder("softmax", 0, 4_096) }];
        let unlisted =
            "  +4.00 KiB softmax at src/model.rs:42 (not among the largest of the baseline)";
        assert_eq!(lines(&finding, Much::Few)[1], unlisted);
        finding.grown = vec![GrownHolder {
            was_tensor: Some("[128,8] f32".to_owned()),
            is_setup: true,
            ..holder("randn [192,8] f32", 4_096, 6_144)
        }];
        finding.other_holders =
            Some(GrownHolder { place: None, ..holder("other call sites", 9, 1) });
        let few = lines(&finding, Much::Few);
        let larger = "  +2.00 KiB randn [128,8] → [192,8] f32 at src/model.rs:42 (4.00 KiB → 6.00 KiB, \
                      +50.0%, before the iterations)";
        assert_eq!(
            [few[1].as_str(), few[3].as_str()],
            [larger, "  -8 B other call sites (9 B → 1 B, -88.9%)"]
        );
        finding.other_holders = None;
        finding.grown = vec![holder("softmax", 0, 1_024); 5];
        let few = lines(&finding, Much::Few);
        assert!(
            few.contains(&"  … 2 more holders that grew, 2.00 KiB in all".to_owned()),
            "{few:?}"
        );
        finding.grown.clear();
        assert!(lines(&finding, Much::Few).iter().any(|line| line.contains("unchanged")));
    }

    #[test]
    fn the_line_comes_before_the_cause_and_the_other_call_sites_after_it() {
        let site = |line| Site {
            file: Some("a.rs".into()),
            line: Some(line),
            count: 1,
            ..Site::default()
        };
        let [code, title, evidence, remedy] = ["c", "t", "e", "r"].map(str::to_owned);
        let mut finding = Finding {
            sites: (1..=5).map(site).collect(),
            cause: Some(super::Cause { code, title, evidence, remedy }),
            ..Finding::new(Code::Leak, "grows")
        };
        let parts = |finding: &Finding| -> Vec<LinePart> {
            let mut parts: Vec<LinePart> =
                super::parts(finding, Much::Few).into_iter().map(|line| line.part).collect();
            parts.dedup();
            parts
        };
        use LinePart::{Amount, Cause, More, Place, Remedy, Summary};
        let after = [Cause, Remedy, Place, Amount, Place, Amount, More];
        let own = [&[Summary, Place, Amount], &after[..]].concat();
        assert_eq!(parts(&finding), own, "the first call site is the line");
        let at = |line| HeadLine { file: "a.rs".into(), line, function: None };
        finding.keeps_at = Some(at(9));
        finding.kept_through = Some(at(8));
        let called = [Summary, Place, Cause, Remedy, Place, Amount];
        assert_eq!(parts(&finding)[..6], called);
        let few = lines(&finding, Much::Few);
        assert_eq!(few[2], "  allocated in calls at a.rs:9");
        assert_eq!(few[1], "  can be in the list that grows at a.rs:8");
        let mut of_graph = finding.clone();
        of_graph.cause.as_mut().expect("a cause").code = "graph-kept".to_owned();
        let of_graph = lines(&of_graph, Much::Few);
        let through = "  kept by the result of a.rs:8, which holds the other tensors";
        assert_eq!(of_graph[1], through);
        assert!(!lines(&finding, Much::Few).iter().any(|line| line.contains(ONE_KEEPS_IT)));
        let frame =
            |line| Frame { function: "app::f".into(), file: Some("a.rs".into()), line: Some(line) };
        finding.sites[0].stack = [1, 9, 13, 20].map(frame).into();
        let expected =
            "    called from a.rs:13, a.rs:20: one of these lines keeps it, or what they call";
        assert!(lines(&finding, Much::Few).contains(&expected.to_owned()));
    }

    #[test]
    fn more_allocations_have_one_line_in_the_short_text() {
        let site = |line| Site { file: Some("a.rs".into()), line: Some(line), ..Site::default() };
        let of = |code| Finding { sites: [1, 2].map(site).into(), ..Finding::new(code, "more") };
        let regression = of(Code::AllocationsRegression);
        assert_eq!(
            lines(&regression, Much::Few),
            [
                "allocations-regression: more",
                "  allocated at a.rs:1",
                "    0 blocks, 0 B",
                "  … 1 more call site, 0 B"
            ]
        );
        assert_eq!(lines(&regression, Much::All).len(), 5);
        assert!(lines(&of(Code::AllocationsLimit), Much::Few).len() > 1);
    }

    #[test]
    fn groups_and_the_sites_that_hold_them_are_not_added_up() {
        let group = Site { bytes: 64, count: 1, block: Some(64), ..Site::default() };
        let holder = Site { file: Some("src/model.rs".into()), ..group.clone() };
        let sites = vec![group.clone(), group.clone(), group.clone(), group, holder];
        let finding = Finding { sites, ..Finding::new(Code::Leak, "first") };
        let few = lines(&finding, Much::Few);
        assert_eq!(few.last().unwrap(), "  … 2 more groups of blocks");
    }
}
