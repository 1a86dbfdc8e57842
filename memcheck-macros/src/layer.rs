//! Generates the expression that builds the attribute's limits inside the test.

use memcheck_limits::limits::Layer;
use memcheck_limits::limits::kinds::{
    AtLeastOne, Bytes, Count, Deviation, Faults, Kept, Number, Optional, Room, Share, Switch, Time,
};
use memcheck_limits::with_limits;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use crate::values::LimitValue;

/// Makes the expression from the table of limits.
macro_rules! define {
    ($(
        $(#[$doc:meta])+
        $name:ident $(or $mib:ident)?: $kind:ty,
        $($variable:literal,)? programs: $programs:literal, default: $default:expr;
    )*) => {
        /// The expression; `private` is the path to its types.
        pub(crate) fn expression(layer: &Layer, private: &TokenStream) -> TokenStream {
            let mut fields = TokenStream::new();
            $({
                let name = format_ident!(stringify!($name));
                let value = match &layer.$name {
                    Some(stated) => <$kind>::expression(stated, private),
                    None => quote!(::core::option::Option::None),
                };
                fields.extend(quote!(#name: #value,));
            })*
            quote!(#private::Layer { #fields })
        }
    };
}

with_limits!(all define);
