//! The search for the line below a comment.

use memcheck_tests::scenarios::line_of;

const SOURCE: &str = "\
// A comment.
// leaks: one
keep(a);
// leaks: two, two_more
let b = a;
";

#[test]
fn a_line_is_found_by_its_whole_name() {
    assert_eq!(line_of(SOURCE, "one"), 3);
    assert_eq!(line_of(SOURCE, "two"), 5);
    assert_eq!(line_of(SOURCE, "two_more"), 5);
}

#[test]
#[should_panic(expected = "no `leaks:` comment")]
fn a_part_of_a_name_does_not_match() {
    line_of(SOURCE, "more");
}

#[test]
#[should_panic(expected = "two `leaks:` comments")]
fn a_second_line_is_refused() {
    line_of("// leaks: one\n// leaks: one\n", "one");
}
