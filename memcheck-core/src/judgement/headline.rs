//! The headline of a finding: the line of the program that its reader must look at. It is found
//! once, so that all reports begin with the same line.

use std::cmp::Reverse;

use crate::judgement::diagnosis::Cause;
use crate::judgement::finding::{Code, Finding, GrownHolder, HeadLine, Site};
use crate::measurement::stack::{Frame, Owner, TEST};

/// The largest call sites that are examined. A finding can have a million.
const MOST_SITES: usize = 256;

/// The line that the program keeps memory at; `None` if the finding names no line.
///
/// Memory that is kept can be allocated at several lines of one call, such as the layers that compute
/// a loss. Its headline is the innermost line that called them. Other findings are about the line
/// that holds the most.
pub(super) fn headline(finding: &Finding) -> Option<HeadLine> {
    // The sites of a regression are all holders of the peak, so that those that grew come first.
    let of_grown = || finding.grown.iter().find_map(of_holder);
    let of_caller = || {
        let is_kept = matches!(finding.code, Code::Leak | Code::Retained);
        let holds_graph = finding.cause.as_ref().is_some_and(Cause::is_graph);
        is_kept.then(|| caller(&finding.sites, holds_graph)).flatten()
    };
    of_grown().or_else(of_caller).or_else(|| finding.sites.iter().find_map(of_site))
}

fn of_holder(holder: &GrownHolder) -> Option<HeadLine> {
    let (file, line) = holder.line()?;
    Some(HeadLine { file: file.to_owned(), line, function: None })
}

/// A site whose only line repeats the body is not a place to look at.
fn of_site(site: &Site) -> Option<HeadLine> {
    let (file, line) = (site.file.clone()?, site.line?);
    let has_stack = !site.stack.is_empty();
    if has_stack && lines_of_iteration(site).next().is_none() {
        return None;
    }
    Some(HeadLine { file, line, function: site.function.clone() })
}

/// The innermost line of an iteration that called the sites of all but a hundredth of the memory: a
/// small rest, such as the scalar that a loss is added to, can have another line. If the memory is a
/// graph, the line that computes it is not at fault, but the caller that keeps the result.
fn caller(sites: &[Site], holds_graph: bool) -> Option<HeadLine> {
    let sites = &sites[..sites.len().min(MOST_SITES)];
    let known: Vec<&Site> = sites.iter().filter(|site| of_site(site).is_some()).collect();
    let has_rates = known.iter().all(|site| site.bytes_per_iteration > 0);
    let weight =
        |site: &Site| u128::from(if has_rates { site.bytes_per_iteration } else { site.bytes });
    let all: u128 = known.iter().map(|site| weight(site)).sum();
    let called = |frame: &&Frame| {
        let of_frame = known.iter().filter(|site| lines_of_iteration(site).any(|of| of == *frame));
        100 * of_frame.map(|site| weight(site)).sum::<u128>() >= 99 * all
    };
    let heaviest = known.iter().min_by_key(|site| Reverse(weight(site))).copied()?;
    let own = lines_of_iteration(heaviest).next()?;
    let own_function = own.path();
    // Another line of the function that allocates kept memory keeps the result in the function.
    let keeps_nothing = || {
        let mut lines = known.iter().filter_map(|site| lines_of_iteration(site).next());
        lines.all(|line| line == own || line.path() != own_function)
    };
    // A closure on the line that calls the iteration shows nothing of what keeps the result.
    let outside = &heaviest.stack[heaviest.stack.len().saturating_sub(heaviest.outside)..];
    let repeats = |frame: &Frame| {
        outside.iter().any(|other| (&other.file, other.line) == (&frame.file, frame.line))
    };
    let mut callers = lines_of_iteration(heaviest)
        .filter(|frame| frame.path() != own_function && !repeats(frame));
    let keeper = if holds_graph && keeps_nothing() { callers.find(called) } else { None };
    let frame = keeper.or_else(|| lines_of_iteration(heaviest).find(called))?;
    let (file, line) = (frame.file.clone()?, frame.line?);
    Some(HeadLine { file, line, function: Some(frame.path()) })
}

/// More callers of a headline are left out.
const MOST_CALLERS: usize = 3;

/// The lines of the program that called the headline, the innermost first. Each of them can keep the
/// memory. Empty if the headline is the line of the first call site.
pub fn callers(finding: &Finding) -> Vec<HeadLine> {
    finding.caller().map(|at| callers_of(&finding.sites, at)).unwrap_or_default()
}

fn callers_of(sites: &[Site], at: &HeadLine) -> Vec<HeadLine> {
    let is_it =
        |frame: &Frame| frame.file.as_deref() == Some(&*at.file) && frame.line == Some(at.line);
    let sites = &sites[..sites.len().min(MOST_SITES)];
    let Some(site) = sites.iter().find(|site| lines_of_iteration(site).any(is_it)) else {
        return Vec::new();
    };
    let mut callers: Vec<HeadLine> = Vec::new();
    for frame in lines_of_iteration(site).skip_while(|frame| !is_it(frame)) {
        let (Some(file), Some(line)) = (frame.file.clone(), frame.line) else { continue };
        let caller = HeadLine { file, line, function: Some(frame.path()) };
        let is_known = callers.iter().any(|it| (&it.file, it.line) == (&caller.file, line));
        if !is_it(frame) && !is_known {
            callers.push(caller);
        }
    }
    callers.truncate(MOST_CALLERS);
    callers
}

/// The frames of the program with a line, the innermost first, without the caller of the iteration
/// and without the signature of the test, which `#[mem_test]` gives its closures.
fn lines_of_iteration(site: &Site) -> impl Iterator<Item = &Frame> {
    let inside = &site.stack[..site.stack.len().saturating_sub(site.outside)];
    inside.iter().filter(|frame| {
        frame.owner() == Owner::User
            && frame.file.is_some()
            && frame.line.is_some()
            // A type argument of a function of the program can be a closure of the test.
            && !(frame.function.contains(TEST) && frame.path().contains(TEST))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A function has the lines of one ten.
    fn frame(line: u32) -> Frame {
        let (function, file) = (format!("app::step_{}", line / 10), Some("src/a.rs".to_owned()));
        Frame { function, file, line: Some(line) }
    }

    /// A call site with the lines of its calls, of which the last `outside` repeat the body.
    fn site(lines: &[u32], outside: usize, rate: u64) -> Site {
        let function = "candle_core::tensor::Tensor::matmul".to_owned();
        let of_candle = Frame { function, file: None, line: None };
        Site {
            function: Some("app::step".to_owned()),
            file: Some("src/a.rs".to_owned()),
            line: lines.first().copied(),
            stack: [of_candle].into_iter().chain(lines.iter().map(|line| frame(*line))).collect(),
            outside,
            bytes: 10 * rate,
            bytes_per_iteration: rate,
            ..Site::default()
        }
    }

    fn line(code: Code, sites: Vec<Site>) -> Option<u32> {
        headline(&Finding { sites, ..Finding::new(code, "") }).map(|at| at.line)
    }

    #[test]
    fn the_innermost_line_that_called_the_kept_memory_is_the_headline() {
        let all = || vec![site(&[3, 7, 9], 0, 5), site(&[4, 7, 9], 0, 5), site(&[7, 9], 0, 5)];
        assert_eq!(line(Code::Leak, all()), Some(7));
        assert_eq!(line(Code::Retained, all()), Some(7));
        // A peak is about the line that holds the most.
        assert_eq!(line(Code::PeakLimit, all()), Some(3));
        assert_eq!(line(Code::Leak, vec![site(&[3, 7, 9], 0, 5)]), Some(3));
    }

    #[test]
    fn the_caller_of_the_iteration_is_never_the_headline() {
        // The loss is computed on line 11 and added on line 13 of the body, which line 10 repeats.
        let readme = vec![site(&[11, 10], 1, 65_536), site(&[11, 10], 1, 65_536)];
        let total = site(&[13, 10], 1, 4);
        assert_eq!(line(Code::Leak, [readme, vec![total]].concat()), Some(11));
        // Two lines of the body hold about as much, so the heavier one is it.
        let two = vec![site(&[11, 10], 1, 6), site(&[13, 10], 1, 5)];
        assert_eq!(line(Code::Leak, two), Some(11));
        assert_eq!(line(Code::Leak, vec![site(&[10], 1, 6), site(&[13, 10], 1, 5)]), Some(13));
        assert_eq!(line(Code::Leak, vec![site(&[10], 1, 6)]), None);
    }

    #[test]
    fn a_graph_is_at_the_line_that_keeps_the_result_of_the_function_that_computes_it() {
        let at = |sites: &[Site], code: &str| {
            let [code, title, evidence, remedy] = [code, "", "", ""].map(str::to_owned);
            let cause = Some(Cause { code, title, evidence, remedy });
            let finding = Finding { sites: sites.to_vec(), cause, ..Finding::new(Code::Leak, "") };
            headline(&finding).map(|at| at.line)
        };
        // `total = (&total + layer.loss()?)?`, of which line 3 is in `loss`.
        let running = [site(&[3, 71, 90], 0, 64), site(&[3, 71, 90], 0, 64), site(&[71, 90], 0, 1)];
        assert_eq!(at(&running, "graph-kept"), Some(71));
        assert_eq!(at(&running[..2], "graph-kept"), Some(71));
        assert_eq!(at(&running[..2], "tensor-kept"), Some(3));
        // The function that computes the loss adds it to the total, too.
        let step = [site(&[30, 90], 0, 1_000), site(&[31, 90], 0, 1)];
        assert_eq!(at(&step, "graph-kept"), Some(30));
        // `trial.iterate(|_| trainer.step())` is line 90 of the test and of its closure.
        assert_eq!(at(&[site(&[30, 90, 90], 1, 1_000)], "graph-kept"), Some(30));
        // There is no caller within the iteration.
        assert_eq!(at(&[site(&[11, 90], 1, 64)], "graph-kept"), Some(11));
    }

    #[test]
    fn the_signature_of_the_test_is_never_the_headline() {
        let mut glued = site(&[3, 7], 0, 5);
        glued.stack[2].function = format!("mem::leaks::{TEST}::{{{{closure}}}}");
        let other = Site { stack: glued.stack[2..].to_vec(), ..glued.clone() };
        assert_eq!(line(Code::Leak, vec![other.clone()]), None);
        assert_eq!(line(Code::Leak, vec![other, glued]), Some(3));
    }

    #[test]
    fn the_callers_of_the_headline_are_the_lines_of_the_iteration_around_it() {
        let of = |sites: &[Site], line| {
            let at = HeadLine { file: "src/a.rs".to_owned(), line, function: None };
            callers_of(sites, &at).iter().map(|it| it.line).collect::<Vec<_>>()
        };
        let sites = [site(&[4], 0, 1), site(&[3, 7, 13, 13, 21, 90], 1, 5)];
        assert_eq!(of(&sites, 7), [13, 21], "without the line that repeats the body");
        assert_eq!(of(&sites, 21), [0; 0]);
        assert_eq!(of(&sites, 8), [0; 0], "no stack has it");
        assert_eq!(of(&[site(&[1, 11, 21, 31, 41, 51], 0, 1)], 1), [11, 21, 31]);
    }

    #[test]
    fn a_small_rest_at_another_line_does_not_hide_the_caller() {
        let layers = |total| vec![site(&[3, 7], 0, 50), site(&[4, 7], 0, 49), site(&[8], 0, total)];
        assert_eq!(line(Code::Leak, layers(1)), Some(7));
        assert_eq!(line(Code::Leak, layers(2)), Some(3));
        // A size without a call site is followed by the sites that hold its blocks.
        let size = Site { stack: Vec::new(), file: None, line: None, ..site(&[1], 0, 90) };
        let holds = |lines: &[u32]| Site { bytes_per_iteration: 0, ..site(lines, 0, 45) };
        assert_eq!(line(Code::Leak, vec![size, holds(&[3, 7]), holds(&[4, 7])]), Some(7));
    }

    #[test]
    fn a_regression_is_at_the_line_that_grew() {
        let holder = |place: Option<&str>| GrownHolder {
            holder: "x".to_owned(),
            place: place.map(str::to_owned),
            now: 1,
            ..GrownHolder::default()
        };
        let at = |grown: Vec<GrownHolder>| {
            let sites = vec![site(&[1], 0, 0)];
            let finding = Finding { sites, grown, ..Finding::new(Code::PeakRegression, "") };
            headline(&finding).map(|at| format!("{}:{}", at.file, at.line)).unwrap_or_default()
        };
        assert_eq!(at(Vec::new()), "src/a.rs:1");
        assert_eq!(at(vec![holder(None), holder(Some("src/b.rs:7"))]), "src/b.rs:7");
        assert_eq!(at(vec![holder(Some("candle_core::matmul"))]), "src/a.rs:1");
    }
}
