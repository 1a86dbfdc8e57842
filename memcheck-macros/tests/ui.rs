//! Wrong attributes: every error is on its own token and lists what is right.

#[test]
fn wrong_attributes_are_spanned_errors() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
