//! `word(name …, name …)`: how `cases(…)` and `scaling(…)` are opened.

use syn::parse::{Parse, ParseStream};
use syn::{Ident, Token};

/// A list behind a word, and what is said where it is not there.
pub(crate) struct List {
    /// One that is right: `` `cases(batch = [1, 8])` ``.
    pub(crate) form: &'static str,
    /// What one without anything in it does: `no cases make no test`.
    pub(crate) empty: &'static str,
}

impl List {
    /// Reads what stands in the parentheses behind `word`; at least one.
    pub(crate) fn parse<T: Parse>(
        &self,
        word: &Ident,
        input: ParseStream<'_>,
    ) -> syn::Result<Vec<T>> {
        let Self { form, empty } = self;
        if !input.peek(syn::token::Paren) {
            return Err(syn::Error::new(word.span(), format!("expected {form}")));
        }
        let content;
        let parentheses = syn::parenthesized!(content in input);
        if content.is_empty() {
            let message = format!("{empty}, expected {form}");
            return Err(syn::Error::new(parentheses.span.join(), message));
        }
        Ok(content.parse_terminated(T::parse, Token![,])?.into_iter().collect())
    }

    /// Reads the name that each of it begins with.
    pub(crate) fn name(&self, input: ParseStream<'_>) -> syn::Result<Ident> {
        let expected =
            |error: syn::Error| syn::Error::new(error.span(), format!("expected {}", self.form));
        input.parse().map_err(expected)
    }
}
