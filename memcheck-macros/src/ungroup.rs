//! Unwraps expressions that a macro has passed on.

use syn::Expr;

/// Returns the expression without the invisible group in which a `macro_rules!` macro passes
/// `$value:expr` or `$value:literal`.
pub(crate) fn ungroup(value: &Expr) -> &Expr {
    match value {
        Expr::Group(group) => ungroup(&group.expr),
        _ => value,
    }
}
