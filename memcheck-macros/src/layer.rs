//! Generates the expression that builds the attribute's limits inside the test.

use std::time::Duration;

use memcheck_limits::bound::Bound;
use memcheck_limits::capacity::Capacity;
use memcheck_limits::limits::Layer;
use memcheck_limits::size::Size;
use proc_macro2::TokenStream;
use quote::quote;

/// Returns the expression; `private` is the path of the types that it uses.
pub(crate) fn expression(layer: &Layer, private: &TokenStream) -> TokenStream {
    fn option(value: Option<impl quote::ToTokens>) -> TokenStream {
        match value {
            Some(value) => quote!(::core::option::Option::Some(#value)),
            None => quote!(::core::option::Option::None),
        }
    }
    let size = |size: Option<Size>| option(size.map(|Size(bytes)| quote!(#private::Size(#bytes))));
    // The pattern must stay exhaustive, so that a new limit cannot be forgotten here.
    let Layer {
        max_growth,
        max_peak,
        max_retained,
        max_allocations,
        max_reserved_growth,
        fits,
        iterations,
        warmup,
        max_iterations,
        evidence,
        tolerance,
        baseline,
        timeout,
    } = layer.clone();
    let (max_growth, max_retained, max_reserved_growth) =
        (size(max_growth), size(max_retained), size(max_reserved_growth));
    let max_peak = match max_peak {
        // The runtime parses the text again. It cannot fail, because the options have parsed it
        // before.
        Some(Bound::Relative(relative)) => {
            let text = relative.to_string();
            quote!(#private::bound(#text))
        }
        Some(Bound::Bytes(Size(bytes))) => {
            option(Some(quote!(#private::Bound::Bytes(#private::Size(#bytes)))))
        }
        None => option(None::<TokenStream>),
    };
    let max_allocations = option(max_allocations);
    let fits = match fits {
        // The generated code looks the card up by its id, because the table of cards is in the
        // runtime.
        Some(Capacity::Card(card)) => {
            let id = card.id;
            quote!(#private::card(#id).map(#private::Capacity::Card))
        }
        Some(Capacity::Bytes(Size(bytes))) => {
            option(Some(quote!(#private::Capacity::Bytes(#private::Size(#bytes)))))
        }
        None => option(None::<TokenStream>),
    };
    let (iterations, warmup) = (option(iterations), option(warmup));
    let max_iterations = option(max_iterations);
    let duration = |duration: Option<Duration>| {
        option(duration.map(|duration| {
            let (seconds, nanos) = (duration.as_secs(), duration.subsec_nanos());
            quote!(::core::time::Duration::new(#seconds, #nanos))
        }))
    };
    let (evidence, timeout) = (duration(evidence), duration(timeout));
    let tolerance = option(tolerance.map(|tolerance| {
        let (percent, bytes) = (tolerance.percent, tolerance.bytes);
        quote!(#private::Tolerance { percent: #percent, bytes: #bytes })
    }));
    let baseline = option(baseline);
    quote! {
        #private::Layer {
            max_growth: #max_growth,
            max_peak: #max_peak,
            max_retained: #max_retained,
            max_allocations: #max_allocations,
            max_reserved_growth: #max_reserved_growth,
            fits: #fits,
            iterations: #iterations,
            warmup: #warmup,
            max_iterations: #max_iterations,
            evidence: #evidence,
            tolerance: #tolerance,
            baseline: #baseline,
            timeout: #timeout,
        }
    }
}
