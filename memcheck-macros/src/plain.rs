//! Expressions that a macro has handed on.

use syn::Expr;

/// The expression itself, where a `macro_rules!` macro has handed it on: what
/// stands for `$value:expr` or `$value:literal` comes in an invisible group.
pub(crate) fn plain(value: &Expr) -> &Expr {
    match value {
        Expr::Group(group) => plain(&group.expr),
        _ => value,
    }
}
