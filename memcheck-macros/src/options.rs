//! The options of the attribute.
//!
//! A wrong option is an error on its own token, and the message lists the correct options. All
//! wrong options of one attribute are reported together.

use std::time::Duration;

use memcheck_limits::bound::Bound;
use memcheck_limits::capacity::Capacity;
use memcheck_limits::device::Need;
use memcheck_limits::limits::{Layer, parse_evidence, parse_timeout};
use memcheck_limits::size::Size;
use memcheck_limits::tolerance::Tolerance;
use syn::parse::{Parse, ParseStream};
use syn::{Expr, ExprLit, ExprUnary, Ident, Lit, LitStr, Path, Token, UnOp};

use crate::cases::Cases;
use crate::names::list;
use crate::plain::plain;
use crate::scaling::Scaling;

/// The names in the order in which error messages list them.
const NAMES: [&str; 21] = [
    "max_growth_mb",
    "max_growth",
    "max_peak_mb",
    "max_peak",
    "max_retained_mb",
    "max_retained",
    "max_allocations",
    "max_reserved_growth_mb",
    "max_reserved_growth",
    "fits",
    "cases",
    "scaling",
    "iterations",
    "warmup",
    "max_iterations",
    "evidence",
    "tolerance",
    "baseline",
    "device",
    "timeout",
    "crate",
];

#[derive(Default)]
pub(crate) struct Options {
    pub(crate) limits: Layer,
    pub(crate) need: Need,
    pub(crate) krate: Option<Path>,
    pub(crate) cases: Option<Cases>,
    pub(crate) scaling: Option<Scaling>,
}

/// One option: `name = value` with an uninterpreted value, `cases(…)` or `scaling(…)`.
struct Pair {
    name: Ident,
    value: Value,
}

enum Value {
    Expr(Expr),
    Path(Path),
    Cases(Cases),
    Scaling(Scaling),
}

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut options = Self::default();
        let mut seen: Vec<String> = Vec::new();
        let mut errors: Option<syn::Error> = None;
        while !input.is_empty() {
            let result = Pair::parse(input).and_then(|pair| options.take(pair, &mut seen));
            if let Err(error) = result {
                match &mut errors {
                    Some(errors) => errors.combine(error),
                    None => errors = Some(error),
                }
                skip_to_comma(input)?;
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        if errors.is_none()
            && let Some(scaling) = &options.scaling
        {
            errors = scaling.check(options.cases.as_ref()).err();
        }
        errors.map_or(Ok(options), Err)
    }
}

/// Skips the rest of a wrong option, so that the next one is checked too.
fn skip_to_comma(input: ParseStream<'_>) -> syn::Result<()> {
    while !input.is_empty() && !input.peek(Token![,]) {
        input.parse::<proc_macro2::TokenTree>()?;
    }
    Ok(())
}

impl Parse for Pair {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        if input.peek(Token![crate]) {
            let name = Ident::new("crate", input.parse::<Token![crate]>()?.span);
            input.parse::<Token![=]>()?;
            return Ok(Self { name, value: Value::Path(path(input)?) });
        }
        let name: Ident = input
            .parse()
            .map_err(|error| syn::Error::new(error.span(), format!("expected {}", list(&NAMES))))?;
        if !NAMES.contains(&name.to_string().as_str()) {
            return Err(unknown(&name));
        }
        if name == "cases" {
            let cases = Cases::parse(&name, input)?;
            return Ok(Self { name, value: Value::Cases(cases) });
        }
        if name == "scaling" {
            let scaling = Scaling::parse(&name, input)?;
            return Ok(Self { name, value: Value::Scaling(scaling) });
        }
        if !input.peek(Token![=]) {
            return Err(syn::Error::new(name.span(), format!("expected `{name} = …`")));
        }
        input.parse::<Token![=]>()?;
        Ok(Self { name, value: Value::Expr(input.parse()?) })
    }
}

/// Parses a path, or a string that contains a path, which is how serde spells this option.
fn path(input: ParseStream<'_>) -> syn::Result<Path> {
    const EXPECTED: &str = "expected a path, such as `crate = renamed` or `crate = \"renamed\"`";
    if input.peek(LitStr) {
        let text: LitStr = input.parse()?;
        let parsed = text.parse_with(Path::parse_mod_style);
        return parsed.map_err(|_| syn::Error::new(text.span(), EXPECTED));
    }
    input.parse().map_err(|error: syn::Error| syn::Error::new(error.span(), EXPECTED))
}

fn unknown(name: &Ident) -> syn::Error {
    syn::Error::new(name.span(), format!("unknown option `{name}`, expected {}", list(&NAMES)))
}

impl Options {
    fn take(&mut self, pair: Pair, seen: &mut Vec<String>) -> syn::Result<()> {
        let name = pair.name.to_string();
        let limit = name.trim_end_matches("_mb").to_owned();
        if seen.contains(&limit) {
            return Err(syn::Error::new(pair.name.span(), format!("`{limit}` is already said")));
        }
        seen.push(limit);
        let value = match pair.value {
            Value::Path(path) => {
                self.krate = Some(path);
                return Ok(());
            }
            Value::Cases(cases) => {
                self.cases = Some(cases);
                return Ok(());
            }
            Value::Scaling(scaling) => {
                self.scaling = Some(scaling);
                return Ok(());
            }
            Value::Expr(value) => value,
        };
        let value = &value;
        let limits = &mut self.limits;
        match name.as_str() {
            "max_growth_mb" => limits.max_growth = Some(mib(value)?),
            "max_growth" => limits.max_growth = Some(size(value)?),
            "max_peak_mb" => limits.max_peak = Some(mib(value)?.into()),
            "max_peak" => limits.max_peak = Some(bound(value)?),
            "max_retained_mb" => limits.max_retained = Some(mib(value)?),
            "max_retained" => limits.max_retained = Some(size(value)?),
            "max_allocations" => limits.max_allocations = Some(integer(value, u64::MAX)?),
            "max_reserved_growth_mb" => limits.max_reserved_growth = Some(mib(value)?),
            "max_reserved_growth" => limits.max_reserved_growth = Some(size(value)?),
            "fits" => limits.fits = Some(capacity(value)?),
            "iterations" => limits.iterations = Some(at_least_one(value)?),
            "warmup" => limits.warmup = Some(integer(value, u32::MAX)?),
            "max_iterations" => limits.max_iterations = Some(at_least_one(value)?),
            "evidence" => limits.evidence = Some(evidence(value)?),
            "tolerance" => limits.tolerance = Some(tolerance(value)?),
            "baseline" => limits.baseline = Some(boolean(value)?),
            "timeout" => limits.timeout = Some(timeout(value)?),
            "device" => self.need = need(value)?,
            _ => return Err(unknown(&pair.name)),
        }
        Ok(())
    }
}

fn wrong(value: &Expr, message: impl std::fmt::Display) -> syn::Error {
    syn::Error::new_spanned(value, message)
}

fn literal(value: &Expr) -> Option<&Lit> {
    match plain(value) {
        Expr::Lit(ExprLit { lit, .. }) => Some(lit),
        _ => None,
    }
}

fn text<'a>(value: &'a Expr, expected: &str) -> syn::Result<&'a LitStr> {
    match literal(value) {
        Some(Lit::Str(text)) => Ok(text),
        _ => Err(wrong(value, format!("expected {expected}"))),
    }
}

fn mib(value: &Expr) -> syn::Result<Size> {
    const EXPECTED: &str = "expected a number of MiB, zero or more, such as `1.0`";
    if matches!(plain(value), Expr::Unary(ExprUnary { op: UnOp::Neg(_), .. })) {
        return Err(wrong(value, EXPECTED));
    }
    let number: f64 = match literal(value) {
        Some(Lit::Float(number)) => number.base10_parse()?,
        Some(Lit::Int(number)) => number.base10_parse()?,
        _ => return Err(wrong(value, EXPECTED)),
    };
    Size::from_mib(number).ok_or_else(|| wrong(value, EXPECTED))
}

fn size(value: &Expr) -> syn::Result<Size> {
    let text = text(value, "a size such as `\"64 KiB\"`")?.value();
    if text.contains(" x ") {
        return Err(wrong(
            value,
            format!(
                "`{text}` is no size: `max_peak` alone may be a share of another test's figure"
            ),
        ));
    }
    text.parse().map_err(|error| wrong(value, error))
}

fn bound(value: &Expr) -> syn::Result<Bound> {
    let text =
        text(value, "a size such as `\"64 KiB\"` or a share such as `\"0.6 x other_test\"`")?;
    text.value().parse().map_err(|error| wrong(value, error))
}

fn capacity(value: &Expr) -> syn::Result<Capacity> {
    let text = text(value, "a size such as `\"24 GiB\"` or a card such as `\"rtx4090\"`")?;
    text.value().parse().map_err(|error| wrong(value, error))
}

fn tolerance(value: &Expr) -> syn::Result<Tolerance> {
    let text = text(value, "a tolerance such as `\"2%\"` or `\"2% | 64 KiB\"`")?;
    text.value().parse().map_err(|error| wrong(value, error))
}

fn evidence(value: &Expr) -> syn::Result<Duration> {
    let text = text(value, "a duration such as `\"10s\"`")?;
    parse_evidence(&text.value()).map_err(|error| wrong(value, error))
}

fn timeout(value: &Expr) -> syn::Result<Duration> {
    let text = text(value, "a duration such as `\"60s\"`")?;
    parse_timeout(&text.value()).map_err(|error| wrong(value, error))
}

fn integer<T: TryFrom<u128> + std::fmt::Display>(value: &Expr, most: T) -> syn::Result<T> {
    let Some(Lit::Int(number)) = literal(value) else {
        return Err(wrong(value, "expected a whole number, zero or more"));
    };
    // A number that does not fit into `u128` is too large for every limit.
    let read = number.base10_parse::<u128>().ok();
    read.and_then(|number| T::try_from(number).ok())
        .ok_or_else(|| wrong(value, format!("expected at most {most}")))
}

fn at_least_one(value: &Expr) -> syn::Result<u32> {
    match integer(value, u32::MAX)? {
        0 => Err(wrong(value, "expected at least 1: nothing would be measured")),
        number => Ok(number),
    }
}

fn boolean(value: &Expr) -> syn::Result<bool> {
    match literal(value) {
        Some(Lit::Bool(boolean)) => Ok(boolean.value),
        _ => Err(wrong(value, "expected `true` or `false`")),
    }
}

fn need(value: &Expr) -> syn::Result<Need> {
    let expected = list(&Need::NAMES.map(|name| match name {
        "any" => "\"any\"",
        "cpu" => "\"cpu\"",
        _ => "\"cuda\"",
    }));
    let text = text(value, &expected)?.value();
    Need::from_name(&text)
        .ok_or_else(|| wrong(value, format!("unknown device `{text}`, expected {expected}")))
}

#[cfg(test)]
mod tests {
    use proc_macro2::{Delimiter, Group, TokenStream};
    use quote::quote;

    use super::*;

    /// Builds the invisible group in which the compiler passes the tokens of `$value:expr`.
    fn handed_on(value: TokenStream) -> Group {
        Group::new(Delimiter::None, value)
    }

    #[test]
    fn a_value_that_a_macro_hands_on_is_the_value() {
        let (growth, peak) = (handed_on(quote!("64 KiB")), handed_on(quote!(1.5)));
        // Passed through two macros.
        let iterations =
            handed_on(TokenStream::from(proc_macro2::TokenTree::from(handed_on(quote!(7)))));
        let (baseline, sizes) = (handed_on(quote!(false)), handed_on(quote!([1, 8])));
        let below = handed_on(quote!(-2));
        let order = handed_on(quote!("batch"));
        let options: Options = syn::parse2(quote! {
            max_growth = #growth, max_peak_mb = #peak, iterations = #iterations,
            baseline = #baseline, cases(batch = #sizes, from = [#below]),
            scaling(peak_allocated <= #order)
        })
        .unwrap();
        let limits = &options.limits;
        assert_eq!(limits.max_growth, Some(Size(65_536)));
        assert_eq!(limits.max_peak, Some(Bound::Bytes(Size(3 << 19))));
        assert_eq!((limits.iterations, limits.baseline), (Some(7), Some(false)));
        let cases = options.cases.unwrap();
        let tests: Vec<String> =
            cases.combinations().into_iter().map(|combination| combination.test).collect();
        assert_eq!(tests, ["batch_1_from_minus_2", "batch_8_from_minus_2"]);
        let rows: Vec<_> = options.scaling.iter().flat_map(Scaling::rows).collect();
        assert_eq!(rows, [("peak_allocated", "batch".to_owned())]);
    }

    #[test]
    fn a_wrong_value_that_a_macro_hands_on_is_wrong() {
        for (option, value) in [
            (quote!(max_growth_mb), quote!(-1.0)),
            (quote!(max_growth), quote!(64)),
            (quote!(iterations), quote!(0)),
            (quote!(iterations), quote!(several)),
        ] {
            let value = handed_on(value);
            let options = syn::parse2::<Options>(quote!(#option = #value));
            assert!(options.is_err(), "{option} = {value}");
        }
    }

    #[test]
    fn the_crate_is_a_path_or_a_text_that_is_one() {
        for written in ["crate = ::a::b", "crate = \"::a::b\", baseline = false"] {
            let path = syn::parse_str::<Options>(written).unwrap().krate.unwrap();
            assert_eq!(quote!(#path).to_string(), ":: a :: b", "{written}");
        }
    }

    #[test]
    fn a_number_may_be_as_large_as_its_limit() {
        let limits = |written: &str| syn::parse_str::<Options>(written).map(|o| o.limits);
        assert_eq!(limits("iterations = 4_294_967_295").unwrap().iterations, Some(u32::MAX));
        assert!(limits("iterations = 4_294_967_296").is_err());
        let most = limits("max_allocations = 0xffff_ffff_ffff_ffff").unwrap();
        assert_eq!(most.max_allocations, Some(u64::MAX));
    }
}
