//! A fault sweep: the effect of each refused allocation, its figures, its lines and its remedy.

use super::*;
use crate::measurement::fault_sweep::{Calls, Effect, LeftBlocks, SweepResult, UnsafeAllocation};
use crate::measurement::stack::{Frame, Stack};

fn at(line: u32) -> Calls {
    let function = "app::step".to_owned();
    let frame = Frame { function, file: Some("src/step.rs".to_owned()), line: Some(line) };
    Calls::Named(Stack { frames: vec![frame], ..Stack::default() })
}

fn refused(number: u64, line: u32, effect: Effect) -> UnsafeAllocation {
    UnsafeAllocation { number, requested: 64, calls: at(line), effect }
}

fn left(bytes: u64) -> Effect {
    Effect::Left { space: GPU, bytes, blocks: Vec::new() }
}

fn sweep(failures: Vec<UnsafeAllocation>) -> Vec<Finding> {
    let sweep = SweepResult { allocations: 107, refused: 107, failures, ..SweepResult::default() };
    judged(sweep)
}

fn judged(sweep: SweepResult) -> Vec<Finding> {
    let run = Record { fault_sweep: Some(sweep), ..record(armed(Metrics::default())) };
    judge(&run, &Baseline::Off, &limits(Layer::default()), |code| code.default_level(false))
        .findings
}

fn only(failures: Vec<UnsafeAllocation>) -> Finding {
    let mut findings = sweep(failures);
    assert_eq!(findings.len(), 1, "{findings:?}");
    let finding = findings.remove(0);
    assert_eq!(finding.code, Code::FaultUnsafe);
    finding
}

#[test]
fn each_effect_has_its_message_its_figures_and_its_remedy() {
    let refusal = "allocation 3 of 107 at src/step.rs:7 (64 B)";
    let differs =
        Effect::Differs { space: GPU, figure: "peak_allocated".to_owned(), before: 10, after: 12 };
    let failed = Effect::NextFailed { error: "shape mismatch\n\nStack backtrace:\n".to_owned() };
    let cases = [
        (
            left(32),
            (Some(GPU), Some(32), Some(0)),
            format!("32 B stay in cuda:0 after {refusal} was refused"),
            "free the memory on the error path",
        ),
        (
            Effect::Panicked { message: "no\n   0: main".to_owned() },
            (None, None, None),
            format!("the body panicked after {refusal} was refused: no"),
            "return the error with `?`",
        ),
        (
            Effect::Hung { seconds: 1 },
            (None, None, None),
            format!("the body had not returned 1 second after {refusal} was refused"),
            "a loop that tries again",
        ),
        (
            Effect::Ended,
            (None, None, None),
            format!("the test process ended after {refusal} was refused, by a signal"),
            "--no-capture",
        ),
        (
            differs,
            (Some(GPU), Some(12), None),
            format!(
                "the iteration after {refusal} was refused differs from those before: its \
                 `peak_allocated` in cuda:0 is 12 B instead of 10 B"
            ),
            "reset it when the iteration begins",
        ),
        (
            failed,
            (None, None, None),
            format!(
                "the iteration after {refusal} was refused failed, although it was not refused \
                 memory: shape mismatch"
            ),
            "reset it when the iteration begins",
        ),
    ];
    for (effect, figures, message, remedy) in cases {
        let finding = only(vec![refused(3, 7, effect)]);
        assert_eq!((finding.space, finding.figure, finding.limit), figures, "{message}");
        assert!(finding.message.starts_with(&message), "{}", finding.message);
        assert!(finding.hint.as_ref().is_some_and(|hint| hint.contains(remedy)), "{finding:?}");
        let site = &finding.sites[0];
        assert_eq!((site.line, site.bytes, site.count), (Some(7), 64, 1));
        assert_eq!(site.note.as_deref(), Some("requested and refused"));
    }
}

#[test]
fn blocks_that_are_left_follow_the_refused_line() {
    let blocks = vec![LeftBlocks { calls: at(9), bytes: 32, count: 2 }];
    let finding = only(vec![refused(3, 7, Effect::Left { space: GPU, bytes: 32, blocks })]);
    let site = &finding.sites[1];
    assert_eq!((site.line, site.bytes, site.count), (Some(9), 32, 2));
    assert_eq!(site.note.as_deref(), Some("left behind"));
    // Call stacks without names are no lines.
    let unnamed = UnsafeAllocation { calls: Calls::Addresses(vec![1]), ..refused(3, 7, left(32)) };
    let finding = only(vec![unnamed]);
    assert!(finding.sites.is_empty() && finding.message.contains("3 of 107 (64 B)"), "{finding:?}");
}

#[test]
fn refusals_with_the_same_line_and_effect_are_one_finding_of_the_worst() {
    let finding =
        only(vec![refused(3, 7, left(32)), refused(4, 7, left(64)), refused(5, 7, left(8))]);
    assert_eq!(finding.figure, Some(64));
    let also = "was refused; 2 other refusals on this line had the same effect";
    assert!(finding.message.ends_with(also), "{}", finding.message);
    let other_line = sweep(vec![refused(3, 7, left(32)), refused(4, 8, left(32))]);
    let other_effect = sweep(vec![refused(3, 7, left(32)), refused(4, 7, Effect::Ended)]);
    assert_eq!((other_line.len(), other_effect.len()), (2, 2));
}

#[test]
fn lines_beyond_the_eighth_are_counted() {
    let of = |lines: u32| {
        let failures = (1..=lines).map(|line| refused(u64::from(line), line, left(8)));
        let findings = sweep(failures.collect());
        assert_eq!(findings.len() as u32, lines.min(8));
        findings.into_iter().next_back().unwrap().message
    };
    assert!(of(8).ends_with("was refused"), "{}", of(8));
    let further = "; 2 further lines of refused allocations had an effect too";
    assert!(of(10).ends_with(further), "{}", of(10));
}

#[test]
fn a_sweep_that_refused_nothing_is_not_measured() {
    let ended = Some("the iteration allocates nothing".to_owned());
    let of = |refused| {
        let sweep = SweepResult { refused, ended: ended.clone(), ..SweepResult::default() };
        judged(sweep).into_iter().map(|finding| (finding.code, finding.message)).collect::<Vec<_>>()
    };
    let why = "the fault sweep refused no allocation: the iteration allocates nothing";
    assert_eq!(of(0), [(Code::NotMeasured, why.to_owned())]);
    assert_eq!(of(1), []);
}
