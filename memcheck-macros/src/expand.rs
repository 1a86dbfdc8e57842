//! From a function to a test: one `#[test]`, one registration, one call.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Attribute, FnArg, Ident, ItemFn, Path, Type, parse_quote};

use crate::options::Options;

/// What the body is given.
enum Form {
    Trial,
    Device,
    Nothing,
}

const FORMS: &str = "a mem_test takes `trial: &mut Trial`, `device: &Device`, or nothing";

pub(crate) fn expand(options: &Options, function: &ItemFn) -> syn::Result<TokenStream> {
    let form = form(function)?;
    refuse_what_no_test_can_be(function)?;
    let krate: Path = options.krate.clone().unwrap_or_else(|| parse_quote!(::memcheck_runtime));
    let private = quote!(#krate::__private);

    let name = &function.sig.ident;
    let text = name.to_string();
    let visibility = &function.vis;
    let is = |attribute: &Attribute, name: &str| attribute.path().is_ident(name);
    let ignored = function.attrs.iter().any(|attribute| is(attribute, "ignore"));
    let should_panic = should_panic(function);
    let deviceless = matches!(form, Form::Nothing);
    // What belongs to the test stays on the test; the rest (`#[expect]`,
    // `#[cfg]`, docs) says something about the body as well as about the test.
    let (on_test, on_body): (Vec<&Attribute>, Vec<&Attribute>) = function
        .attrs
        .iter()
        .partition(|attribute| is(attribute, "ignore") || is(attribute, "should_panic"));
    let cfgs: Vec<_> = on_body.iter().filter(|attribute| is(attribute, "cfg")).collect();

    let mut body = function.clone();
    body.attrs = on_body.iter().filter(|a| !is(a, "doc")).map(|a| (*a).clone()).collect();
    body.sig.ident = format_ident!("body", span = name.span());
    body.vis = syn::Visibility::Inherited;
    let body_name: Ident = body.sig.ident.clone();

    let call = match form {
        Form::Trial => quote!(|trial| #private::Returned::report(#body_name(trial))),
        Form::Device => quote!(|trial| {
            let device = #private::Clone::clone(trial.device());
            #private::Returned::report(trial.iterate(|_| #body_name(&device)))
        }),
        Form::Nothing => {
            quote!(|trial| #private::Returned::report(trial.iterate(|_| #body_name())))
        }
    };
    let limits = limits(options, &private);
    let need = match options.need {
        memcheck_core::device::Need::Any => quote!(Any),
        memcheck_core::device::Need::Cpu => quote!(Cpu),
        memcheck_core::device::Need::Cuda => quote!(Cuda),
    };
    let docs: Vec<_> = on_body.iter().filter(|attribute| is(attribute, "doc")).collect();

    Ok(quote! {
        #(#cfgs)*
        #(#docs)*
        #[::core::prelude::v1::test]
        #(#on_test)*
        #visibility fn #name() {
            #body

            static DESCRIPTION: #private::Description = #private::Description {
                name: #text,
                module: ::core::module_path!(),
                file: ::core::file!(),
                line: ::core::line!(),
                package: ::core::env!("CARGO_PKG_NAME"),
                manifest_dir: ::core::env!("CARGO_MANIFEST_DIR"),
                ignored: #ignored,
                should_panic: #should_panic,
                deviceless: #deviceless,
                need: #private::Need::#need,
                limits: || #limits,
                body: #call,
                snapshot: |name, figures| {
                    #private::insta::assert_snapshot!(name, figures);
                },
            };
            const _: () = {
                #[#private::linkme::distributed_slice(#private::DESCRIPTIONS)]
                #[linkme(crate = #private::linkme)]
                static REGISTERED: &#private::Description = &DESCRIPTION;
            };
            #private::run(&DESCRIPTION)
        }
    })
}

/// The text that `#[should_panic]` expects, as an expression of an `Option`.
fn should_panic(function: &ItemFn) -> TokenStream {
    let mut attributes = function.attrs.iter().filter(|a| a.path().is_ident("should_panic"));
    let Some(attribute) = attributes.next() else {
        return quote!(::core::option::Option::None);
    };
    let expected: syn::Expr = match &attribute.meta {
        syn::Meta::NameValue(pair) => pair.value.clone(),
        // What else stands there is for the compiler to say.
        syn::Meta::List(list) => list
            .parse_args::<syn::MetaNameValue>()
            .map_or_else(|_| parse_quote!(""), |pair| pair.value),
        syn::Meta::Path(_) => parse_quote!(""),
    };
    quote!(::core::option::Option::Some(#expected))
}

/// The limits as an expression that makes the layer anew.
fn limits(options: &Options, private: &TokenStream) -> TokenStream {
    let size = |size: Option<memcheck_core::size::Size>| match size {
        Some(size) => {
            let bytes = size.0;
            quote!(::core::option::Option::Some(#private::Size(#bytes)))
        }
        None => quote!(::core::option::Option::None),
    };
    fn plain<T: quote::ToTokens>(value: Option<T>) -> TokenStream {
        match value {
            Some(value) => quote!(::core::option::Option::Some(#value)),
            None => quote!(::core::option::Option::None),
        }
    }
    // Taken apart field by field: a new limit cannot be forgotten here.
    let memcheck_core::limits::Layer {
        max_growth,
        max_peak,
        max_retained,
        max_allocations,
        iterations,
        warmup,
        tolerance,
        baseline,
        timeout,
    } = options.limits.clone();
    let (max_growth, max_peak, max_retained) =
        (size(max_growth), size(max_peak), size(max_retained));
    let max_allocations = plain(max_allocations);
    let (iterations, warmup) = (plain(iterations), plain(warmup));
    let tolerance = plain(tolerance.map(|tolerance| {
        let (percent, bytes) = (tolerance.percent, tolerance.bytes);
        quote!(#private::Tolerance { percent: #percent, bytes: #bytes })
    }));
    let baseline = plain(baseline);
    let timeout = plain(timeout.map(|timeout| {
        let (seconds, nanos) = (timeout.as_secs(), timeout.subsec_nanos());
        quote!(::core::time::Duration::new(#seconds, #nanos))
    }));
    quote! {
        #private::Layer {
            max_growth: #max_growth,
            max_peak: #max_peak,
            max_retained: #max_retained,
            max_allocations: #max_allocations,
            iterations: #iterations,
            warmup: #warmup,
            tolerance: #tolerance,
            baseline: #baseline,
            timeout: #timeout,
        }
    }
}

fn form(function: &ItemFn) -> syn::Result<Form> {
    let mut inputs = function.sig.inputs.iter();
    let Some(first) = inputs.next() else { return Ok(Form::Nothing) };
    if let Some(second) = inputs.next() {
        return Err(syn::Error::new_spanned(second, FORMS));
    }
    let FnArg::Typed(argument) = first else {
        return Err(syn::Error::new_spanned(first, FORMS));
    };
    // By mutability: the type may be written by any path, or renamed.
    match &*argument.ty {
        Type::Reference(reference) if reference.mutability.is_some() => Ok(Form::Trial),
        Type::Reference(_) => Ok(Form::Device),
        other => Err(syn::Error::new_spanned(other, FORMS)),
    }
}

fn refuse_what_no_test_can_be(function: &ItemFn) -> syn::Result<()> {
    let signature = &function.sig;
    if let Some(asyncness) = &signature.asyncness {
        return Err(syn::Error::new_spanned(
            asyncness,
            "a mem_test cannot be async: block on the future in its body",
        ));
    }
    if let Some(parameter) = signature.generics.params.first() {
        return Err(syn::Error::new_spanned(parameter, "a mem_test cannot be generic"));
    }
    if let Some(test) = function.attrs.iter().find(|attribute| attribute.path().is_ident("test")) {
        return Err(syn::Error::new_spanned(
            test,
            "#[mem_test] makes the function a test, remove #[test]",
        ));
    }
    Ok(())
}
