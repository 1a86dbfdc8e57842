//! Parses `word(name …, name …)`, the form that `cases(…)`, `scaling(…)` and `phases(…)`
//! share.

use syn::parse::{Parse, ParseStream};
use syn::{Ident, Token};

/// The form of a list behind a word, and the texts of its error messages.
pub(crate) struct List {
    /// A correct example: `` `cases(batch = [1, 8])` ``.
    pub(crate) form: &'static str,
    /// The effect of an empty list: `no cases make no test`.
    pub(crate) empty: &'static str,
}

impl List {
    /// Parses the parentheses behind `word`, which must contain at least one element.
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

    /// Parses the name at the start of an element.
    pub(crate) fn name(&self, input: ParseStream<'_>) -> syn::Result<Ident> {
        let expected =
            |error: syn::Error| syn::Error::new(error.span(), format!("expected {}", self.form));
        input.parse().map_err(expected)
    }
}
