//! The ignored tests of a leg.

use memcheck_core::judgement::verdict::Status;

use crate::presentation::presenters::style;

/// More ignored tests are counted and not named.
const NAMED: usize = 3;

/// All ignored tests in one line. Verbose output has a line for each instead.
pub(super) fn line(names: &[String]) -> Option<String> {
    let status = style::status(Status::Ignored);
    let hint = "--run-ignored all runs";
    match names {
        [] => None,
        [one] => Some(format!("{status} {one} ({hint} it)")),
        few if few.len() <= NAMED => Some(format!("{status} {} ({hint} them)", few.join(", "))),
        all => Some(format!("{status} {} tests (--verbose lists them, {hint} them)", all.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_ignored_tests_are_named_and_more_are_counted() {
        let of = |count: usize| {
            let names: Vec<String> = (0..count).map(|test| format!("t{test}")).collect();
            line(&names).map(|line| console::strip_ansi_codes(&line).trim().to_owned())
        };
        assert_eq!(of(0), None);
        assert!(of(1).unwrap().ends_with("t0 (--run-ignored all runs it)"));
        assert!(of(3).unwrap().ends_with("t0, t1, t2 (--run-ignored all runs them)"));
        let many = of(4).unwrap();
        assert!(many.contains("4 tests (--verbose lists them") && !many.contains("t0"), "{many}");
    }
}
