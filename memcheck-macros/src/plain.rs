//! Unwraps expressions that a macro has passed on.

use syn::Expr;

/// Returns the expression without the invisible group in which a `macro_rules!` macro passes
/// `$value:expr` or `$value:literal`.
pub(crate) fn plain(value: &Expr) -> &Expr {
    match value {
        Expr::Group(group) => plain(&group.expr),
        _ => value,
    }
}
