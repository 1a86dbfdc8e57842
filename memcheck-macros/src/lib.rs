//! `#[mem_test]`: the attribute of `memcheck-runtime`. Syntax only.
//!
//! The function is kept as it is, inside a function of the same name that is
//! an ordinary `#[test]`. That one hands a description of the test and the
//! body to a single entry point of the runtime; the description is also
//! registered, so that a binary can answer which memory tests it carries.
//!
//! With `cases(…)` the function stays where it is, and a module of the same name
//! holds one such test for each combination of the values.
#![forbid(unsafe_code)]

mod cases;
mod expand;
mod layer;
mod list;
mod names;
mod options;
mod plain;
mod scaling;
mod values;

use proc_macro::TokenStream;
use syn::parse_macro_input;

/// Makes a function a memory test.
///
/// Three forms: `fn(trial: &mut Trial)` for full control, `fn(device: &Device)`
/// and `fn()` whose body is one iteration. With `cases(dtype = [f32, bf16])` it
/// is a test for each combination. The options, what they mean and their
/// defaults are in `docs/reference/test.md`.
#[proc_macro_attribute]
pub fn mem_test(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let options = parse_macro_input!(attribute as options::Options);
    let function = match syn::parse(item.clone()) {
        Ok(function) => function,
        Err(error) => return expand::no_function(item.into(), error).into_compile_error().into(),
    };
    expand::expand(&options, &function).unwrap_or_else(syn::Error::into_compile_error).into()
}
