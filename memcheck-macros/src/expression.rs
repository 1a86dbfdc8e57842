//! Reads the expressions that are values of the attribute.

use proc_macro2::{TokenStream, TokenTree};
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Expr, ExprArray, ExprPath, ExprUnary, Token, UnOp};

/// Returns the expression without the invisible group in which a `macro_rules!` macro passes
/// `$value:expr` or `$value:literal`.
pub(crate) fn ungroup(value: &Expr) -> &Expr {
    match value {
        Expr::Group(group) => ungroup(&group.expr),
        _ => value,
    }
}

/// Parses an expression. One that no option accepts is returned as its tokens
/// ([`Expr::Verbatim`]), because syn takes exponential time to turn nested operators and ranges into
/// tokens, which the error about it needs.
pub(crate) fn parse_value(input: ParseStream<'_>) -> syn::Result<Expr> {
    let ahead = input.fork();
    let value = input.parse::<Expr>()?;
    let mut tokens = Vec::new();
    while ahead.cursor() != input.cursor() {
        tokens.push(ahead.parse::<TokenTree>()?);
    }
    match ungroup(&value) {
        Expr::Lit(_) => Ok(value),
        Expr::Path(path) if is_plain(path) => Ok(value),
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. })
            if matches!(ungroup(expr), Expr::Lit(_)) =>
        {
            Ok(value)
        }
        Expr::Array(list) => match array_tokens(&tokens) {
            Some(elements) => {
                let elems = Punctuated::<Expr, Token![,]>::parse_terminated_with;
                let parse = |input: ParseStream<'_>| elems(input, parse_value);
                let elems = parse.parse2(elements)?;
                Ok(Expr::Array(ExprArray { elems, ..list.clone() }))
            }
            None => Ok(Expr::Verbatim(tokens.into_iter().collect())),
        },
        _ => Ok(Expr::Verbatim(tokens.into_iter().collect())),
    }
}

fn is_plain(path: &ExprPath) -> bool {
    path.qself.is_none() && path.path.segments.iter().all(|segment| segment.arguments.is_none())
}

/// The tokens between the brackets of an array, which macros can have passed on in groups.
fn array_tokens(tokens: &[TokenTree]) -> Option<TokenStream> {
    let [TokenTree::Group(group)] = tokens else { return None };
    match group.delimiter() {
        proc_macro2::Delimiter::Bracket => Some(group.stream()),
        proc_macro2::Delimiter::None => {
            array_tokens(&group.stream().into_iter().collect::<Vec<_>>())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use quote::ToTokens;

    use super::*;

    fn parsed(text: &str) -> Expr {
        parse_value.parse_str(text).unwrap()
    }

    #[test]
    fn values_that_no_option_accepts_stay_tokens() {
        for accepted in ["1", "-1.5", "\"a\"", "true", "name", "[1, -2, name]"] {
            assert!(!matches!(parsed(accepted), Expr::Verbatim(_)), "{accepted}");
        }
        for other in ["- -1", "1 + 2", "&1", "1..2", "a::<{ &..1 }>", "f(1)", "<T as A>::B"] {
            let value = parsed(other);
            assert!(matches!(value, Expr::Verbatim(_)), "{other}");
            let tokens: TokenStream = other.parse().unwrap();
            assert_eq!(value.to_token_stream().to_string(), tokens.to_string());
        }
        let Expr::Array(list) = parsed("[1, 2 + 3]") else { panic!("a list") };
        let kinds: Vec<_> = list.elems.iter().map(|it| matches!(it, Expr::Verbatim(_))).collect();
        assert_eq!(kinds, [false, true]);
    }
}
