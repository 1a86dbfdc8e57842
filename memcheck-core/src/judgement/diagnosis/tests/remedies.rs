//! The remedies name the lines to change, if they are known.

use super::*;
use crate::measurement::stack::Passage;

fn found(run: Run) -> Cause {
    let record = run.record();
    diagnose(&Evidence::of(&record, GPU).unwrap()).unwrap()
}

fn rule(code: &str) -> &'static Rule {
    RULES.iter().find(|rule| rule.code == code).unwrap()
}

#[test]
fn a_remedy_names_the_lines_that_allocate_if_those_are_to_change() {
    let mut with_lines = 0;
    for Marks { code, fires, .. } in marks() {
        let names_lines = matches!(rule(code).at_lines, Some(RemedyAt::Allocating(_)));
        let cause = found(fires);
        assert_eq!(cause.remedy.contains(" src/step.rs:1"), names_lines, "{}", cause.remedy);
        assert_eq!(cause.remedy == rule(code).remedy, !names_lines, "{}", cause.remedy);
        with_lines += u32::from(names_lines);
    }
    assert!(with_lines >= 10, "{with_lines}");
}

#[test]
fn a_remedy_without_a_known_line_is_the_general_one() {
    let backward = "candle_core::backprop::Tensor::backward";
    let step = || tensors(&[MATMUL, backward]);
    assert_eq!(
        found(step()).remedy,
        "drop the `GradStore` of src/step.rs:1 at the end of the step; keep scalars of it, not the \
         store"
    );
    let several = (0..4).fold(step(), |run, _| run.place(&[backward], steady(512)));
    let remedy = found(several).remedy;
    assert!(remedy.contains("src/step.rs:1, :2, :3 and 2 more lines at the end"), "{remedy}");
    assert_eq!(found(step().without_program()).remedy, rule("grad-store-kept").remedy);
}

#[test]
fn memory_that_remains_has_the_line_that_allocated_it() {
    let left =
        || Run::default().place(&[ZEROS], once(8_192, 2)).totals(3, 12_288).retained(1, 8_192);
    let remedy = |run: Run| {
        let record = run.record();
        diagnose_retained(&Evidence::of(&record, GPU).unwrap()).unwrap().remedy
    };
    assert!(remedy(left()).starts_with("drop the buffer of src/step.rs:1 "), "{}", remedy(left()));
    assert_eq!(remedy(left().without_program()), rule("cache-keeps-largest").remedy);
}

#[test]
fn the_line_that_keeps_the_memory_replaces_the_list_of_suspects() {
    let at = |file: &str| HeadLine { file: file.to_owned(), line: 7, function: None };
    let kept = |run: Run, file| found(run).kept_at(&at(file)).remedy;
    let graph = HeldBy { whole: 10, graph: 5, ..HeldBy::default() };
    assert_eq!(
        kept(held(graph), "src/a.rs"),
        "keep `detach()` of the result of src/a.rs:7, or its number from `to_scalar`, after the \
         backward pass"
    );
    let listed =
        "remove entries from the list at src/a.rs:7, or store a number instead of the tensor";
    assert_eq!(kept(leak(&[MATMUL]), "src/a.rs"), listed);
    let buffers = "remove entries from the list at src/a.rs:7, or bound its length";
    assert_eq!(kept(leak(&["serde_json::to_vec"]), "src/a.rs"), buffers);
    assert_eq!(kept(leak(&[MATMUL]), "/registry/a.rs"), rule("tensor-kept").remedy);
    // The line that allocates is the one to change.
    let cached = || cache(1, 10).through(Passage::List);
    assert_eq!(kept(cached(), "src/a.rs"), found(cached()).remedy);
}
