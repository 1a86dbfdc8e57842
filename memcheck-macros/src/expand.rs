//! Turns a function into a test, or into one test for each case. Each test is one `#[test]`, one
//! registration and one call.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{
    Attribute, FnArg, GenericParam, Ident, Item, ItemFn, Path, ReturnType, Type, parse_quote,
};

use crate::cases::Cases;
use crate::layer;
use crate::options::AttributeOptions;
use crate::phases::PhasesOption;
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

const NEEDS_BLOCK_ON: &str = "an async mem_test needs a function that runs its future: \
     `#[mem_test(block_on = path)]`, where `path(future)` returns the output, such as \
     `pollster::block_on` or a function of the test that starts a tokio runtime";

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
    check_signature(options, function)?;
    let form = parse_form(function, has_candle)?;
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
    /// The function's name.
    name: Span,
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
        let name = function.sig.ident.span();
        Self { options, form, name, diverges, private, on_test, on_body, should_panic }
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
        // A path in the options can be relative to the module that contains the function.
        let paths = [&self.options.krate, &self.options.block_on];
        let reach = paths.into_iter().flatten().next().map(|_| {
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
        // Without parentheses around the call of a plain body, which would be a warning.
        let call_body = |argument: TokenStream| match &self.options.block_on {
            Some(block_on) => quote!(#block_on(#body(#argument))),
            None => quote!(#body(#argument)),
        };
        let (of_trial, of_device, of_nothing) =
            (call_body(quote!(trial)), call_body(quote!(&device)), call_body(quote!()));
        // The line that calls the iterations is that of the function. The names are resolved at the
        // attribute, because a macro can have made the function from a name that it was given.
        let trial = format_ident!("trial");
        let iterate =
            |body: TokenStream| quote_spanned!(self.name => #trial.iterate(|_| #returns { #body }));
        let call = match self.form {
            // The return type of a closure with a plain call is known, so the compiler coerces `!`
            // to it. As the argument of the generic `Returned::report`, `!` would be the type
            // parameter itself.
            Form::Trial if self.diverges => quote!(|trial| #of_trial),
            Form::Trial => quote!(|trial| #private::Returned::report(#of_trial)),
            Form::Device => {
                let iterations = iterate(of_device);
                quote!(|trial| {
                    let device = #private::Clone::clone(trial.device());
                    #private::Returned::report(#iterations)
                })
            }
            Form::NoArgument => {
                let iterations = iterate(of_nothing);
                quote!(|trial| #private::Returned::report(#iterations))
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
        let phases = self.options.phases.iter().flat_map(PhasesOption::rows);
        let phases = phases.map(|(phase, bytes)| quote!((#phase, #bytes)));
        // Reports recognize the closures of this static by its name and leave them out of call
        // stacks.
        let test = format_ident!("{}", memcheck_limits::TEST);
        // That of the function and not of the attribute, which can be many lines above it.
        let line = quote_spanned!(self.name => ::core::line!());
        quote! {
            static #test: #private::Description = #private::Description {
                name: #name,
                module: ::core::module_path!(),
                case: &[#(#case),*],
                file: ::core::file!(),
                line: #line,
                package: ::core::env!("CARGO_PKG_NAME"),
                manifest_dir: ::core::env!("CARGO_MANIFEST_DIR"),
                ignored: #ignored,
                should_panic: #should_panic,
                deviceless: #deviceless,
                need: #private::Need::#need,
                limits: || #limits,
                scaling: &[#(#scaling),*],
                phases: &[#(#phases),*],
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

fn check_signature(options: &AttributeOptions, function: &ItemFn) -> syn::Result<()> {
    let signature = &function.sig;
    let other = function.attrs.iter().find_map(|other| Some((other, instead_of(other)?)));
    if let Some((other, instead)) = other {
        return Err(syn::Error::new_spanned(other, instead));
    }
    match (&signature.asyncness, &options.block_on) {
        (Some(asyncness), None) => {
            return Err(syn::Error::new_spanned(asyncness, NEEDS_BLOCK_ON));
        }
        (None, Some(block_on)) => {
            return Err(syn::Error::new_spanned(
                block_on,
                "`block_on` runs the future of an `async fn`, and this function is not async",
            ));
        }
        _ => {}
    }
    // A lifetime parameter is allowed because the reference in the argument can name it.
    let is_lifetime = |parameter: &&GenericParam| matches!(parameter, GenericParam::Lifetime(_));
    if let Some(parameter) = signature.generics.params.iter().find(|one| !is_lifetime(one)) {
        return Err(syn::Error::new_spanned(parameter, "a mem_test cannot be generic"));
    }
    Ok(())
}

/// The error about another attribute that makes the function a test; `None` if it does not.
fn instead_of(other: &Attribute) -> Option<String> {
    let segments: Vec<String> =
        other.path().segments.iter().map(|segment| segment.ident.to_string()).collect();
    let written = segments.join("::");
    let instead = match segments.last()?.as_str() {
        "rstest" | "test_case" | "test_matrix" => {
            "`#[mem_test(cases(batch = [1, 8]))]` makes a test for each combination of values"
        }
        // The attribute that stands first has left `#[test]` or the one of `core` behind.
        "test" if segments.len() == 1 || segments[0] == "core" => {
            "if `#[tokio::test]` or `#[rstest]` has added it, write \
             `#[mem_test(block_on = path)]` for an `async fn`, and `cases(…)` for parameters"
        }
        "test" => {
            "`#[mem_test(block_on = path)]` runs an `async fn`, where `path(future)` runs a future"
        }
        _ => return None,
    };
    Some(format!("#[mem_test] already makes the function a test: remove #[{written}]; {instead}"))
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

    #[test]
    fn another_attribute_of_tests_is_refused_with_what_replaces_it() {
        for (other, expected) in [
            ("test", "remove #[test]"),
            ("::core::prelude::v1::test", "remove #[core::prelude::v1::test]; if `#[tokio::test]`"),
            ("tokio::test", "remove #[tokio::test]; `#[mem_test(block_on = path)]`"),
            ("tokio::test(flavor = \"multi_thread\")", "remove #[tokio::test];"),
            ("rstest", "remove #[rstest]; `#[mem_test(cases("),
            ("rstest::rstest", "remove #[rstest::rstest];"),
        ] {
            for function in ["fn a()", "async fn a(trial: &mut Trial)", "fn a(x: u32, y: u32)"] {
                let refused = error(&format!("#[{other}] {function} {{}}"), true).unwrap();
                assert!(refused.contains(expected), "{other}: {refused}");
            }
        }
        assert_eq!(error("#[ignore] #[should_panic] fn a() {}", true), None);
    }

    #[test]
    fn an_async_body_needs_a_function_that_runs_it() {
        let refused = error("async fn a() {}", true).unwrap();
        assert!(refused.contains("#[mem_test(block_on = path)]"), "{refused}");
    }
}
