//! `phases(load <= "2 GiB", decode <= "64 MiB")`: limits on the live bytes in phases of the body. Each
//! is checked on its own token.

use memcheck_limits::size::Size;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{Ident, LitStr, Token};

use crate::list::List;

const LIST: List = List { form: "`phases(decode <= \"64 MiB\")`", empty: "`phases` has no limits" };

/// The rows of `phases(…)`; never empty.
pub(crate) struct PhasesOption {
    rows: Vec<(String, Size)>,
}

impl PhasesOption {
    /// Parses the list behind the word `phases`, which is at `word`.
    pub(crate) fn parse(word: &Ident, input: ParseStream<'_>) -> syn::Result<Self> {
        let mut rows: Vec<(String, Size)> = Vec::new();
        for ParsedLimit(name, size) in LIST.parse(word, input)? {
            let phase = name.unraw().to_string();
            if rows.iter().any(|(known, _)| *known == phase) {
                let message = format!("the phase `{phase}` is limited twice");
                return Err(syn::Error::new(name.span(), message));
            }
            rows.push((phase, size));
        }
        Ok(Self { rows })
    }

    /// Returns each phase and the most bytes that may be live in it, in the order of the attribute.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&str, u64)> {
        self.rows.iter().map(|(phase, Size(bytes))| (phase.as_str(), *bytes))
    }
}

/// A parsed limit: `decode <= "64 MiB"`.
struct ParsedLimit(Ident, Size);

impl Parse for ParsedLimit {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let name = LIST.name(input)?;
        if !input.peek(Token![<=]) {
            return Err(syn::Error::new(name.span(), format!("expected `{name} <= \"64 MiB\"`")));
        }
        input.parse::<Token![<=]>()?;
        let size: LitStr = input.parse().map_err(|error| {
            syn::Error::new(error.span(), "expected a size in quotes, such as `\"64 MiB\"`")
        })?;
        let bytes = size.value().parse().map_err(|error| syn::Error::new(size.span(), error))?;
        Ok(Self(name, bytes))
    }
}
