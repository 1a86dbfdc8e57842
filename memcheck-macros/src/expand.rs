//! Turns a function into a test, or into one test for each case. Each test is one `#[test]`, one
//! registration and one call.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{
    Attribute, FnArg, GenericParam, Ident, Item, ItemFn, Path, ReturnType, Type, parse_quote,
};

use crate::cases::Cases;
use crate::layer;
use crate::options::AttributeOptions;
use crate::scaling::ScalingOption;

#[derive(Clone, Copy)]
enum Form {
    Trial,
    Device,
    NoArgument,
}

const FORMS: &str = "a mem_test takes `trial: &mut Trial`, `device: &Device`, or nothing";

/// The forms without candle's types.
const FORMS_WITHOUT_CANDLE: &str = "a mem_test takes `trial: &mut Trial` or nothing";

const NEEDS_CANDLE: &str = "a device needs the feature `candle` of memcheck-runtime: without it, a mem_test takes \
     `trial: &mut Trial` or nothing, and its body opens the device";

const NEEDS_TRIAL: &str =
    "a test with cases takes `trial: &mut Trial`, which passes the values to the body";

const NOT_A_FUNCTION: &str =
    "#[mem_test] needs a function: `fn(trial: &mut Trial)`, `fn(device: &Device)` or `fn()`";

/// Returns the error for an item that does not parse as a function. `error` is kept if the item is
/// a malformed function; any other kind of item gets the message that the attribute belongs on a
/// function.
pub(crate) fn not_a_function(item: TokenStream, error: syn::Error) -> syn::Error {
    match syn::parse2(item) {
        Ok(Item::Fn(_) | Item::Verbatim(_)) | Err(_) => error,
        Ok(_) => syn::Error::new(error.span(), NOT_A_FUNCTION),
    }
}

/// `has_candle` is true if the runtime has candle's types.
pub(crate) fn expand(
    options: &AttributeOptions,
    function: &ItemFn,
    has_candle: bool,
) -> syn::Result<TokenStream> {
    let form = parse_form(function, has_candle)?;
    check_signature(function)?;
    let test = Test::new(options, function, form);
    match &options.cases {
        None => Ok(test.single(function)),
        Some(_) if !matches!(form, Form::Trial) => Err(match function.sig.inputs.first() {
            Some(argument) => syn::Error::new_spanned(argument, NEEDS_TRIAL),
            None => syn::Error::new(function.sig.ident.span(), NEEDS_TRIAL),
        }),
        Some(cases) => Ok(test.several(function, cases)),
    }
}

/// The parts that all tests of one function share.
struct Test<'a> {
    options: &'a AttributeOptions,
    form: Form,
    /// True if the body returns `!`: it panics, as `#[should_panic]` expects.
    diverges: bool,
    /// The path of the hidden module that the generated code uses.
    private: TokenStream,
    /// The attributes that belong on the test only.
    on_test: Vec<&'a Attribute>,
    /// All other attributes (`#[expect]`, `#[cfg]`, docs), which apply to the body as well as to
    /// the test.
    on_body: Vec<&'a Attribute>,
    should_panic: TokenStream,
}

fn has_name(attribute: &Attribute, name: &str) -> bool {
    attribute.path().is_ident(name)
}

impl<'a> Test<'a> {
    fn new(options: &'a AttributeOptions, function: &'a ItemFn, form: Form) -> Self {
        let krate: Path = options.krate.clone().unwrap_or_else(|| parse_quote!(::memcheck_runtime));
        let (on_test, on_body) = function.attrs.iter().partition(|attribute| {
            has_name(attribute, "ignore") || has_name(attribute, "should_panic")
        });
        let should_panic = should_panic(function);
        let diverges = matches!(&function.sig.output, ReturnType::Type(_, ty) if matches!(**ty, Type::Never(_)));
        let private = quote!(#krate::__private);
        Self { options, form, diverges, private, on_test, on_body, should_panic }
    }

    fn attributes_named(&self, name: &str) -> Vec<&Attribute> {
        self.on_body.iter().copied().filter(|attribute| has_name(attribute, name)).collect()
    }

    /// Generates a test of the function's name that contains the function.
    fn single(&self, function: &ItemFn) -> TokenStream {
        let name = &function.sig.ident;
        let mut body = function.clone();
        body.attrs =
            self.on_body.iter().filter(|a| !has_name(a, "doc")).map(|a| (*a).clone()).collect();
        body.sig.ident = format_ident!("body", span = name.span());
        body.vis = syn::Visibility::Inherited;
        let body_name = &body.sig.ident;
        let run = self.run(&name.to_string(), &quote!(#body_name), &[]);
        let (on_test, visibility) = (&self.on_test, &function.vis);
        let (cfgs, docs) = (self.attributes_named("cfg"), self.attributes_named("doc"));
        quote! {
            #(#cfgs)*
            #(#docs)*
            #[::core::prelude::v1::test]
            #(#on_test)*
            #visibility fn #name() {
                #body
                #run
            }
        }
    }

    /// Generates the unchanged function, and a module of its name with a test for each case.
    fn several(&self, function: &ItemFn, cases: &Cases) -> TokenStream {
        let name = &function.sig.ident;
        let mut body = function.clone();
        body.attrs = self.on_body.iter().map(|a| (*a).clone()).collect();
        let (on_test, cfgs) = (&self.on_test, self.attributes_named("cfg"));
        let tests = cases.combinations().into_iter().map(|combination| {
            let test = Ident::new(&combination.test, name.span());
            let run = self.run(&combination.test, &quote!(super::#name), &combination.case);
            quote! {
                #[::core::prelude::v1::test]
                #(#on_test)*
                fn #test() {
                    #run
                }
            }
        });
        // The path in `crate = …` can be relative to the module that contains the function.
        let reach = self.options.krate.as_ref().map(|_| {
            quote! {
                #[allow(unused_imports)]
                use super::*;
            }
        });
        quote! {
            #[cfg(test)]
            #body

            #[cfg(test)]
            #(#cfgs)*
            // The name of a test keeps the spelling of its values.
            #[allow(non_snake_case)]
            mod #name {
                #reach
                #(#tests)*
            }
        }
    }

    /// Generates the statements of one test: its description, its registration and the call.
    fn run(&self, name: &str, body: &TokenStream, case: &[(&str, &str)]) -> TokenStream {
        let (private, should_panic) = (&self.private, &self.should_panic);
        let ignored = self.on_test.iter().any(|attribute| has_name(attribute, "ignore"));
        let deviceless = match self.form {
            Form::NoArgument => quote!(#private::DEVICELESS),
            Form::Trial | Form::Device => quote!(false),
        };
        let returns = self.diverges.then(|| quote!(-> ()));
        let call = match self.form {
            // The return type of a closure with a plain call is known, so the compiler coerces `!`
            // to it. As the argument of the generic `Returned::report`, `!` would be the type
            // parameter itself.
            Form::Trial if self.diverges => quote!(|trial| #body(trial)),
            Form::Trial => quote!(|trial| #private::Returned::report(#body(trial))),
            Form::Device => quote!(|trial| {
                let device = #private::Clone::clone(trial.device());
                #private::Returned::report(trial.iterate(|_| #returns { #body(&device) }))
            }),
            Form::NoArgument => {
                quote!(|trial| #private::Returned::report(trial.iterate(|_| #returns { #body() })))
            }
        };
        let limits = layer::expression(&self.options.limits, private);
        let need = match self.options.need {
            memcheck_limits::device::Need::Any => quote!(Any),
            memcheck_limits::device::Need::Cpu => quote!(Cpu),
            memcheck_limits::device::Need::Cuda => quote!(Cuda),
        };
        let case = case.iter().map(|(name, value)| quote!((#name, #value)));
        let scaling = self.options.scaling.iter().flat_map(ScalingOption::rows);
        let scaling = scaling.map(|(metric, most)| quote!((#metric, #most)));
        // Reports recognize the closures of this static by its name and leave them out of call
        // stacks.
        let test = format_ident!("{}", memcheck_limits::TEST);
        quote! {
            static #test: #private::Description = #private::Description {
                name: #name,
                module: ::core::module_path!(),
                case: &[#(#case),*],
                file: ::core::file!(),
                line: ::core::line!(),
                package: ::core::env!("CARGO_PKG_NAME"),
                manifest_dir: ::core::env!("CARGO_MANIFEST_DIR"),
                ignored: #ignored,
                should_panic: #should_panic,
                deviceless: #deviceless,
                need: #private::Need::#need,
                limits: || #limits,
                scaling: &[#(#scaling),*],
                body: #call,
            };
            const _: () = {
                #[#private::linkme::distributed_slice(#private::DESCRIPTIONS)]
                #[linkme(crate = #private::linkme)]
                static REGISTERED: &#private::Description = &#test;
            };
            #private::run(&#test)
        }
    }
}

/// Returns the text that `#[should_panic]` expects, as an expression of type `Option`.
fn should_panic(function: &ItemFn) -> TokenStream {
    let mut attributes = function.attrs.iter().filter(|a| a.path().is_ident("should_panic"));
    let Some(attribute) = attributes.next() else {
        return quote!(::core::option::Option::None);
    };
    let expected: syn::Expr = match &attribute.meta {
        syn::Meta::NameValue(pair) => pair.value.clone(),
        // The compiler reports an argument that is wrong.
        syn::Meta::List(list) => list
            .parse_args::<syn::MetaNameValue>()
            .map_or_else(|_| parse_quote!(""), |pair| pair.value),
        syn::Meta::Path(_) => parse_quote!(""),
    };
    quote!(::core::option::Option::Some(#expected))
}

fn parse_form(function: &ItemFn, has_candle: bool) -> syn::Result<Form> {
    let forms = if has_candle { FORMS } else { FORMS_WITHOUT_CANDLE };
    let mut inputs = function.sig.inputs.iter();
    let Some(first) = inputs.next() else { return Ok(Form::NoArgument) };
    if let Some(second) = inputs.next() {
        return Err(syn::Error::new_spanned(second, forms));
    }
    let FnArg::Typed(argument) = first else {
        return Err(syn::Error::new_spanned(first, forms));
    };
    // The mutability decides, because the type can be renamed or written with any path.
    match ungroup_type(&argument.ty) {
        Type::Reference(reference) if reference.mutability.is_some() => Ok(Form::Trial),
        reference @ Type::Reference(_) if !has_candle => {
            Err(syn::Error::new_spanned(reference, NEEDS_CANDLE))
        }
        Type::Reference(_) => Ok(Form::Device),
        other => Err(syn::Error::new_spanned(other, forms)),
    }
}

/// Returns the type without the invisible group in which a `macro_rules!` macro passes it.
fn ungroup_type(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => ungroup_type(&group.elem),
        _ => ty,
    }
}

fn check_signature(function: &ItemFn) -> syn::Result<()> {
    let signature = &function.sig;
    if let Some(asyncness) = &signature.asyncness {
        return Err(syn::Error::new_spanned(
            asyncness,
            "a mem_test cannot be async: block on the future in its body",
        ));
    }
    // A lifetime parameter is allowed because the reference in the argument can name it.
    let is_lifetime = |parameter: &&GenericParam| matches!(parameter, GenericParam::Lifetime(_));
    if let Some(parameter) = signature.generics.params.iter().find(|one| !is_lifetime(one)) {
        return Err(syn::Error::new_spanned(parameter, "a mem_test cannot be generic"));
    }
    if let Some(test) = function.attrs.iter().find(|attribute| attribute.path().is_ident("test")) {
        return Err(syn::Error::new_spanned(
            test,
            "#[mem_test] already makes the function a test: remove #[test]",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(function: &str, has_candle: bool) -> Option<String> {
        let function: ItemFn = syn::parse_str(function).unwrap();
        let options = AttributeOptions::default();
        expand(&options, &function, has_candle).err().map(|error| error.to_string())
    }

    #[test]
    fn a_body_takes_a_device_only_with_candle() {
        let of_device = "fn a(device: &candle_core::Device) {}";
        assert_eq!(error(of_device, true), None);
        let refused = error(of_device, false).unwrap();
        assert!(refused.contains("the feature `candle` of memcheck-runtime"), "{refused}");
        for other in ["fn a() {}", "fn a(trial: &mut Trial) {}"] {
            assert_eq!(error(other, false), None, "{other}");
        }
        let forms = error("fn a(number: usize) {}", false).unwrap();
        assert!(!forms.contains("Device"), "{forms}");
    }
}
