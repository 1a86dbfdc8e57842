//! `scaling(peak_allocated <= "seq", growth <= "1")`: bounds on how fast figures may grow over the
//! cases. Each is checked on its own token.

use memcheck_limits::law::Order;
use memcheck_limits::shape::{LEAST_VALUES, Metric, whole_numbers};
use proc_macro2::Span;
use syn::parse::{Parse, ParseStream};
use syn::{Ident, LitStr, Token};

use crate::cases::Cases;
use crate::list::List;
use crate::names::quoted_list;

const LIST: List =
    List { form: "`scaling(peak_allocated <= \"seq\")`", empty: "`scaling` has no bounds" };

/// The rows of `scaling(…)`; never empty.
pub(crate) struct ScalingOption {
    word: Span,
    rows: Vec<Row>,
}

/// One row: `peak_allocated <= "seq"`.
struct Row {
    metric: Metric,
    most: Order,
    /// The span of the order.
    order: Span,
}

impl ScalingOption {
    /// Parses the list behind the word `scaling`, which is at `word`.
    pub(crate) fn parse(word: &Ident, input: ParseStream<'_>) -> syn::Result<Self> {
        let mut rows: Vec<Row> = Vec::new();
        for ParsedRow(name, row) in LIST.parse(word, input)? {
            if rows.iter().any(|known| known.metric == row.metric) {
                let message = format!("`{name}` is bounded twice");
                return Err(syn::Error::new(name.span(), message));
            }
            rows.push(row);
        }
        Ok(Self { word: word.span(), rows })
    }

    /// Returns the figure and the order of each row, in the order of the attribute.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.rows.iter().map(|row| (row.metric.name(), row.most.to_string()))
    }

    /// Checks that the cases have the sizes that the rows need.
    pub(crate) fn check(&self, cases: Option<&Cases>) -> syn::Result<()> {
        let Some(cases) = cases else {
            let message = "`scaling` needs cases: add `cases(seq = [64, 128, 256, 512])`";
            return Err(syn::Error::new(self.word, message));
        };
        if !cases.parameters().any(|(_, values)| can_be_size(&values)) {
            let message = format!(
                "`scaling` needs a size: a case with {LEAST_VALUES} or more different whole numbers"
            );
            return Err(syn::Error::new(self.word, message));
        }
        self.rows.iter().try_for_each(|row| row.check(cases))
    }
}

impl Row {
    fn check(&self, cases: &Cases) -> syn::Result<()> {
        for size in self.most.sizes() {
            let error = |message: String| Err(syn::Error::new(self.order, message));
            let Some((_, values)) = cases.parameters().find(|(name, _)| *name == size) else {
                let names: Vec<&str> = cases.parameters().map(|(name, _)| name).collect();
                return error(format!(
                    "there is no case `{size}`, expected {}",
                    quoted_list(&names)
                ));
            };
            // Two whole numbers can still be too few for an exact law. The search for a law reports
            // that.
            if !can_be_size(&values) {
                return error(format!(
                    "`{size}` is not a size: a size has {LEAST_VALUES} or more different whole numbers"
                ));
            }
        }
        Ok(())
    }
}

/// True if the values can be a size: at least two whole numbers.
fn can_be_size(values: &[&str]) -> bool {
    whole_numbers(values.iter().copied()).is_some()
}

/// A parsed row, and the token of its figure for error messages.
struct ParsedRow(Ident, Row);

impl Parse for ParsedRow {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let name = LIST.name(input)?;
        let metric: Metric = name.to_string().parse().map_err(|_| {
            let message = format!(
                "`scaling` cannot bound `{name}`, expected {}",
                quoted_list(&Metric::NAMES)
            );
            syn::Error::new(name.span(), message)
        })?;
        if !input.peek(Token![<=]) {
            return Err(syn::Error::new(name.span(), format!("expected `{name} <= \"seq\"`")));
        }
        input.parse::<Token![<=]>()?;
        let order: LitStr = input.parse().map_err(|error| {
            let message = "expected an order of growth in quotes, such as `\"batch*seq\"`";
            syn::Error::new(error.span(), message)
        })?;
        let most = order.value().parse().map_err(|error| syn::Error::new(order.span(), error))?;
        Ok(Self(name, Row { metric, most, order: order.span() }))
    }
}
