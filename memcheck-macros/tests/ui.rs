//! Compile-fail tests: each error of a wrong attribute must be on its own token and must list the
//! valid choices.

#[test]
fn wrong_attributes_are_spanned_errors() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
