use super::*;

#[test]
fn every_rule_has_a_page_that_shows_the_mistake_and_the_fix() {
    for rule in RULES {
        assert!(rule.page.starts_with(&format!("# {}\n", rule.code)), "{}", rule.code);
        for part in ["## What happens", "## How it is recognised", "## What to do"] {
            assert!(rule.page.contains(part), "{}: no `{part}`", rule.code);
        }
    }
}

#[test]
fn codes_are_unique_and_are_no_findings() {
    let mut codes: Vec<_> = RULES.iter().map(|rule| rule.code).collect();
    codes.sort_unstable();
    let before = codes.len();
    codes.dedup();
    assert_eq!(codes.len(), before);
    for code in codes {
        assert!(code.parse::<crate::finding::Code>().is_err(), "{code}");
    }
}
