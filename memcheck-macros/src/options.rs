//! Parses the options of the attribute, also those that a macro has passed on in groups.
//!
//! A wrong option is an error on its own token, and the message lists the correct options. All
//! wrong options of one attribute are reported together.

use memcheck_limits::device::Need;
use memcheck_limits::limits::kinds::{
    AtLeastOne, Bytes, Count, Deviation, Faults, Kept, LimitKind, Number, Optional, Room, Share,
    Switch, Time,
};
use memcheck_limits::limits::{KEYS, Layer};
use memcheck_limits::with_limits;
use syn::parse::{Parse, ParseStream};
use syn::{Expr, Ident, LitStr, Path, Token};

use crate::cases::Cases;
use crate::expression::parse_value;
use crate::names::quoted_list;
use crate::phases::PhasesOption;
use crate::scaling::ScalingOption;
use crate::values::{LimitValue, error_at, parse_mib, string_literal};

/// Makes the reader of the limits from the table of limits.
macro_rules! define {
    ($(
        $(#[$doc:meta])+
        $name:ident $(or $mib:ident)?: $kind:ty,
        $($variable:literal,)? programs: $programs:literal, default: $default:expr;
    )*) => {
        /// Reads the value of the limit `name`.
        fn read_limit(limits: &mut Layer, name: &Ident, value: &Expr) -> syn::Result<()> {
            match name.to_string().as_str() {
                $(
                    stringify!($name) => limits.$name = Some(<$kind>::read(value)?),
                    $(stringify!($mib) => limits.$name = Some(parse_mib(value)?.into()),)?
                )*
                _ => return Err(unknown(name)),
            }
            Ok(())
        }

        /// The value of the limit `name` if its name stands alone; `None` if it needs a value.
        fn value_if_bare(name: &Ident) -> Option<&'static str> {
            match name.to_string().as_str() {
                $(stringify!($name) => <$kind>::IF_BARE.first().copied(),)*
                _ => None,
            }
        }
    };
}

with_limits!(all define);

/// The options that are not limits.
const OTHERS: [&str; 6] = ["cases", "scaling", "phases", "block_on", "device", "crate"];

/// The names of all options, as errors list them.
fn names() -> Vec<&'static str> {
    [KEYS, &OTHERS].concat()
}

#[derive(Default)]
pub(crate) struct AttributeOptions {
    pub(crate) limits: Layer,
    pub(crate) need: Need,
    pub(crate) krate: Option<Path>,
    /// The function that runs the future of an `async` body.
    pub(crate) block_on: Option<Path>,
    pub(crate) cases: Option<Cases>,
    pub(crate) scaling: Option<ScalingOption>,
    pub(crate) phases: Option<PhasesOption>,
}

/// One option: `name = value` with an uninterpreted value, `cases(…)`, `scaling(…)` or `phases(…)`.
struct Pair {
    name: Ident,
    value: Value,
}

enum Value {
    Expr(Expr),
    /// The name alone, of an option that has a value for this.
    Bare(&'static str),
    Crate(Path),
    BlockOn(Path),
    Cases(Cases),
    Scaling(ScalingOption),
    Phases(PhasesOption),
}

impl Parse for AttributeOptions {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut options = Self::default();
        let mut seen: Vec<String> = Vec::new();
        let mut errors: Option<syn::Error> = None;
        while !input.is_empty() {
            let result = Pair::parse(input).and_then(|pair| options.set(pair, &mut seen));
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
            return Ok(Self { name, value: Value::Crate(parse_path(input, CRATE)?) });
        }
        let name: Ident = input.parse().map_err(|error| {
            syn::Error::new(error.span(), format!("expected {}", quoted_list(&names())))
        })?;
        if !names().contains(&name.to_string().as_str()) {
            return Err(unknown(&name));
        }
        if name == "cases" {
            let cases = Cases::parse(&name, input)?;
            return Ok(Self { name, value: Value::Cases(cases) });
        }
        if name == "scaling" {
            let scaling = ScalingOption::parse(&name, input)?;
            return Ok(Self { name, value: Value::Scaling(scaling) });
        }
        if name == "phases" {
            let phases = PhasesOption::parse(&name, input)?;
            return Ok(Self { name, value: Value::Phases(phases) });
        }
        if !input.peek(Token![=])
            && let Some(value) = value_if_bare(&name)
        {
            return Ok(Self { name, value: Value::Bare(value) });
        }
        if !input.peek(Token![=]) {
            return Err(syn::Error::new(name.span(), format!("expected `{name} = …`")));
        }
        input.parse::<Token![=]>()?;
        if name == "block_on" {
            return Ok(Self { name, value: Value::BlockOn(parse_path(input, BLOCK_ON)?) });
        }
        Ok(Self { name, value: Value::Expr(parse_value(input)?) })
    }
}

/// The errors for a value that is not a path.
const CRATE: &str = "expected a path, such as `crate = renamed` or `crate = \"renamed\"`";
const BLOCK_ON: &str =
    "expected the path of a function that runs a future, such as `block_on = pollster::block_on`";

/// Parses a path, or a string that contains a path, which is how serde spells the crate.
fn parse_path(input: ParseStream<'_>, expected: &str) -> syn::Result<Path> {
    if input.peek(LitStr) {
        let text: LitStr = input.parse()?;
        let parsed = text.parse_with(Path::parse_mod_style);
        return parsed.map_err(|_| syn::Error::new(text.span(), expected));
    }
    input.parse().map_err(|error: syn::Error| syn::Error::new(error.span(), expected))
}

fn unknown(name: &Ident) -> syn::Error {
    syn::Error::new(
        name.span(),
        format!("unknown option `{name}`, expected {}", quoted_list(&names())),
    )
}

impl AttributeOptions {
    fn set(&mut self, pair: Pair, seen: &mut Vec<String>) -> syn::Result<()> {
        let name = pair.name.to_string();
        let limit = name.trim_end_matches("_mb").to_owned();
        if seen.contains(&limit) {
            return Err(syn::Error::new(pair.name.span(), format!("`{limit}` is set twice")));
        }
        seen.push(limit);
        let value = match pair.value {
            Value::Crate(path) => {
                self.krate = Some(path);
                return Ok(());
            }
            Value::BlockOn(path) => {
                self.block_on = Some(path);
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
            Value::Phases(phases) => {
                self.phases = Some(phases);
                return Ok(());
            }
            Value::Expr(value) => value,
            Value::Bare(value) => syn::parse_str(value)?,
        };
        let value = &value;
        match name.as_str() {
            "device" => self.need = parse_need(value)?,
            _ => read_limit(&mut self.limits, &pair.name, value)?,
        }
        Ok(())
    }
}

fn parse_need(value: &Expr) -> syn::Result<Need> {
    let expected = quoted_list(&Need::NAMES.map(|name| match name {
        "any" => "\"any\"",
        "cpu" => "\"cpu\"",
        _ => "\"cuda\"",
    }));
    let text = string_literal(value, &expected)?.value();
    Need::from_name(&text)
        .ok_or_else(|| error_at(value, format!("unknown device `{text}`, expected {expected}")))
}

#[cfg(test)]
mod tests {
    use memcheck_limits::bound::Bound;
    use memcheck_limits::size::Size;
    use proc_macro2::{Delimiter, Group, TokenStream};
    use quote::quote;

    use super::*;

    /// Builds the invisible group in which the compiler passes the tokens of `$value:expr`.
    fn passed_by_macro(value: TokenStream) -> Group {
        Group::new(Delimiter::None, value)
    }

    #[test]
    fn a_value_that_a_macro_passes_on_is_accepted() {
        let (growth, peak) = (passed_by_macro(quote!("64 KiB")), passed_by_macro(quote!(1.5)));
        // Passed through two macros.
        let iterations = passed_by_macro(TokenStream::from(proc_macro2::TokenTree::from(
            passed_by_macro(quote!(7)),
        )));
        let (baseline, sizes) = (passed_by_macro(quote!(false)), passed_by_macro(quote!([1, 8])));
        let below = passed_by_macro(quote!(-2));
        let order = passed_by_macro(quote!("batch"));
        let options: AttributeOptions = syn::parse2(quote! {
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
        let rows: Vec<_> = options.scaling.iter().flat_map(ScalingOption::rows).collect();
        assert_eq!(rows, [("peak_allocated", "batch".to_owned())]);
    }

    #[test]
    fn a_wrong_value_that_a_macro_passes_on_is_an_error() {
        for (option, value) in [
            (quote!(max_growth_mb), quote!(-1.0)),
            (quote!(max_growth), quote!(64)),
            (quote!(iterations), quote!(0)),
            (quote!(iterations), quote!(several)),
        ] {
            let value = passed_by_macro(value);
            let options = syn::parse2::<AttributeOptions>(quote!(#option = #value));
            assert!(options.is_err(), "{option} = {value}");
        }
    }

    #[test]
    fn the_crate_is_a_path_or_a_string_that_contains_a_path() {
        for written in ["crate = ::a::b", "crate = \"::a::b\", baseline = false"] {
            let path = syn::parse_str::<AttributeOptions>(written).unwrap().krate.unwrap();
            assert_eq!(quote!(#path).to_string(), ":: a :: b", "{written}");
        }
    }

    #[test]
    fn a_number_may_be_as_large_as_its_limit() {
        let limits = |written: &str| syn::parse_str::<AttributeOptions>(written).map(|o| o.limits);
        assert_eq!(limits("iterations = 4_294_967_295").unwrap().iterations, Some(u32::MAX));
        assert!(limits("iterations = 4_294_967_296").is_err());
        let most = limits("max_allocations = 0xffff_ffff_ffff_ffff").unwrap();
        assert_eq!(most.max_allocations, Some(u64::MAX));
    }
}
