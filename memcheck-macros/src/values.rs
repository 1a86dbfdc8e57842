//! The values of limits: each kind is read from an expression of the attribute, and
//! written as an expression into the generated code.

use std::fmt::Display;

use memcheck_limits::bound::Bound;
use memcheck_limits::capacity::Capacity;
use memcheck_limits::limits::kinds::{
    AtLeastOne, Bytes, Count, Deviation, Faults, Kept, LimitKind, Number, Optional, Room, Share,
    Switch, Time,
};
use memcheck_limits::size::Size;
use memcheck_limits::sweep::FaultSweep;
use memcheck_limits::values::Contents;
use proc_macro2::TokenStream;
use quote::quote;
use syn::{Expr, ExprLit, ExprUnary, Lit, LitStr, UnOp};

use crate::expression::ungroup;

/// A kind of limit, as the attribute writes it.
pub(crate) trait LimitValue: LimitKind {
    /// Reads the value.
    fn read(value: &Expr) -> syn::Result<Self::Stated>;

    /// The expression of an `Option` with the value; `private` is the path to its types.
    fn expression(stated: &Self::Stated, private: &TokenStream) -> TokenStream;
}

pub(crate) fn error_at(value: &Expr, message: impl Display) -> syn::Error {
    syn::Error::new_spanned(value, message)
}

fn literal(value: &Expr) -> Option<&Lit> {
    match ungroup(value) {
        Expr::Lit(ExprLit { lit, .. }) => Some(lit),
        _ => None,
    }
}

pub(crate) fn string_literal<'a>(value: &'a Expr, expected: &str) -> syn::Result<&'a LitStr> {
    match literal(value) {
        Some(Lit::Str(text)) => Ok(text),
        _ => Err(error_at(value, format!("expected {expected}"))),
    }
}

/// Parses a text as the kind `K`.
fn parse_string<K: LimitKind>(value: &Expr, expected: &str) -> syn::Result<K::Stated> {
    K::parse(&string_literal(value, expected)?.value()).map_err(|error| error_at(value, error))
}

fn parse_integer<T: TryFrom<u128> + Display>(value: &Expr, most: T) -> syn::Result<T> {
    let Some(Lit::Int(number)) = literal(value) else {
        return Err(error_at(value, "expected a whole number, zero or more"));
    };
    // A number that is too large for this is so for every limit.
    let read = number.base10_parse::<u128>().ok();
    read.and_then(|number| T::try_from(number).ok())
        .ok_or_else(|| error_at(value, format!("expected at most {most}")))
}

/// Reads a size in MiB.
pub(crate) fn parse_mib(value: &Expr) -> syn::Result<Size> {
    const EXPECTED: &str = "expected a number of MiB, zero or more, such as `1.0`";
    if matches!(ungroup(value), Expr::Unary(ExprUnary { op: UnOp::Neg(_), .. })) {
        return Err(error_at(value, EXPECTED));
    }
    let number: f64 = match literal(value) {
        Some(Lit::Float(number)) => number.base10_parse()?,
        Some(Lit::Int(number)) => number.base10_parse()?,
        _ => return Err(error_at(value, EXPECTED)),
    };
    Size::from_mib(number).ok_or_else(|| error_at(value, EXPECTED))
}

fn some(value: impl quote::ToTokens) -> TokenStream {
    quote!(::core::option::Option::Some(#value))
}

impl<K: LimitValue> LimitValue for Optional<K> {
    fn read(value: &Expr) -> syn::Result<K::Stated> {
        K::read(value)
    }

    fn expression(stated: &K::Stated, private: &TokenStream) -> TokenStream {
        K::expression(stated, private)
    }
}

impl LimitValue for Bytes {
    fn read(value: &Expr) -> syn::Result<Size> {
        let text = string_literal(value, "a size such as `\"64 KiB\"`")?.value();
        if text.contains(" x ") {
            return Err(error_at(
                value,
                format!(
                    "`{text}` is not a size: only `max_peak` can be a share of another test's figure"
                ),
            ));
        }
        Self::parse(&text).map_err(|error| error_at(value, error))
    }

    fn expression(Size(bytes): &Size, private: &TokenStream) -> TokenStream {
        some(quote!(#private::Size(#bytes)))
    }
}

impl LimitValue for Share {
    fn read(value: &Expr) -> syn::Result<Bound> {
        parse_string::<Self>(
            value,
            "a size such as `\"64 KiB\"` or a share such as `\"0.6 x other_test\"`",
        )
    }

    fn expression(stated: &Bound, private: &TokenStream) -> TokenStream {
        match stated {
            // As a text, which was parsed here before.
            Bound::Relative(relative) => {
                let text = relative.to_string();
                quote!(#private::bound(#text))
            }
            Bound::Bytes(Size(bytes)) => {
                some(quote!(#private::Bound::Bytes(#private::Size(#bytes))))
            }
        }
    }
}

impl LimitValue for Room {
    fn read(value: &Expr) -> syn::Result<Capacity> {
        parse_string::<Self>(value, "a size such as `\"24 GiB\"` or a card such as `\"rtx4090\"`")
    }

    fn expression(stated: &Capacity, private: &TokenStream) -> TokenStream {
        match stated {
            // By its name, because the runtime has the table of cards.
            Capacity::Card(card) => {
                let id = card.id;
                quote!(#private::card(#id).map(#private::Capacity::Card))
            }
            Capacity::Bytes(Size(bytes)) => {
                some(quote!(#private::Capacity::Bytes(#private::Size(#bytes))))
            }
        }
    }
}

impl LimitValue for Deviation {
    fn read(value: &Expr) -> syn::Result<Self::Stated> {
        parse_string::<Self>(value, "a tolerance such as `\"2%\"` or `\"2% | 64 KiB\"`")
    }

    fn expression(stated: &Self::Stated, private: &TokenStream) -> TokenStream {
        let (percent, bytes) = (stated.percent, stated.bytes);
        some(quote!(#private::Tolerance { percent: #percent, bytes: #bytes }))
    }
}

impl LimitValue for Kept {
    fn read(value: &Expr) -> syn::Result<Contents> {
        parse_string::<Self>(value, "`\"auto\"`, `\"never\"` or a size such as `\"256 MiB\"`")
    }

    fn expression(stated: &Contents, private: &TokenStream) -> TokenStream {
        some(match stated {
            Contents::Auto => quote!(#private::Contents::Auto),
            Contents::Never => quote!(#private::Contents::Never),
            Contents::AtMost(Size(bytes)) => {
                quote!(#private::Contents::AtMost(#private::Size(#bytes)))
            }
        })
    }
}

impl LimitValue for Time {
    fn read(value: &Expr) -> syn::Result<Self::Stated> {
        parse_string::<Self>(value, "a duration such as `\"60s\"`")
    }

    fn expression(stated: &Self::Stated, _: &TokenStream) -> TokenStream {
        let (seconds, nanos) = (stated.as_secs(), stated.subsec_nanos());
        some(quote!(::core::time::Duration::new(#seconds, #nanos)))
    }
}

impl LimitValue for Faults {
    fn read(value: &Expr) -> syn::Result<FaultSweep> {
        match literal(value) {
            Some(Lit::Bool(boolean)) => Ok(boolean.value.into()),
            Some(Lit::Int(_)) => {
                let number = parse_integer(value, u32::MAX)?;
                FaultSweep::try_from(number).map_err(|error| error_at(value, error))
            }
            _ => Err(error_at(value, "expected `true`, `false` or a whole number")),
        }
    }

    fn expression(stated: &FaultSweep, private: &TokenStream) -> TokenStream {
        let text = stated.to_string();
        quote!(#private::fault_sweep(#text))
    }
}

impl LimitValue for Switch {
    fn read(value: &Expr) -> syn::Result<bool> {
        match literal(value) {
            Some(Lit::Bool(boolean)) => Ok(boolean.value),
            _ => Err(error_at(value, "expected `true` or `false`")),
        }
    }

    fn expression(stated: &bool, _: &TokenStream) -> TokenStream {
        some(stated)
    }
}

impl LimitValue for Count {
    fn read(value: &Expr) -> syn::Result<u64> {
        parse_integer(value, u64::MAX)
    }

    fn expression(stated: &u64, _: &TokenStream) -> TokenStream {
        some(stated)
    }
}

impl LimitValue for Number {
    fn read(value: &Expr) -> syn::Result<u32> {
        parse_integer(value, u32::MAX)
    }

    fn expression(stated: &u32, _: &TokenStream) -> TokenStream {
        some(stated)
    }
}

impl LimitValue for AtLeastOne {
    fn read(value: &Expr) -> syn::Result<u32> {
        match parse_integer(value, u32::MAX)? {
            0 => Err(error_at(value, "expected at least 1: nothing would be measured")),
            number => Ok(number),
        }
    }

    fn expression(stated: &u32, _: &TokenStream) -> TokenStream {
        some(stated)
    }
}
