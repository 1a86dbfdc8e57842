//! The comparison of calls with a recording.

use memcheck_tests::recordings::{Maker, check, write};

fn calls(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn maker() -> Maker {
    Maker { device: "sim".to_owned(), facts: vec!["now".to_owned()] }
}

/// Compares the calls `made` with a recording of the calls `recorded`, and returns the description
/// of the first difference.
fn difference(recorded: &str, made: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let card = folder.path().join("card");
    write(&card, "new", &calls(recorded), &maker()).unwrap();
    let error = check(folder.path(), "new", calls(made), &maker()).err()?.to_string();
    let head = format!("sim differs from {}:\n", card.join("new.calls").display());
    Some(error.strip_prefix(&head).expect("both devices are named").to_owned())
}

#[test]
fn equal_calls_have_no_difference() {
    assert_eq!(difference("a b", "a b"), None);
}

#[test]
fn the_first_difference_is_shown_with_the_calls_before_it() {
    let text = difference("a b c", "a b d").unwrap();
    assert_eq!(text, "call 3 of 3: recorded `c`, made `d`\n    after b\n    after a");
    let short = difference("a b", "a").unwrap();
    assert!(short.contains("recorded `b`, made `nothing more`"), "{short}");
    let long = difference("a", "a b").unwrap();
    assert!(long.contains("recorded `nothing more`, made `b`"), "{long}");
}

#[test]
fn frees_in_a_row_are_compared_as_a_set() {
    let ordered = "Free.1 Free.2 Alloc.3 Free.9 Alloc.1 Alloc.0";
    assert_eq!(difference(ordered, "Free.2 Free.1 Alloc.3 Free.9 Alloc.1 Alloc.0"), None);
}

#[test]
fn a_workload_without_a_recording_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let error = check(folder.path(), "new", calls("a"), &maker()).unwrap_err();
    assert!(error.to_string().contains("no recording of `new`"), "{error}");
    write(&folder.path().join("card"), "new", &calls("a b"), &maker()).unwrap();
    check(folder.path(), "new", calls("a b"), &maker()).unwrap();
    let error = check(folder.path(), "new", calls("a c"), &maker()).unwrap_err();
    assert!(error.to_string().contains("recorded `b`, made `c`"), "{error}");
}
