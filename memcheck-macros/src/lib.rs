//! The attribute `#[mem_test]` of `memcheck-runtime`. This crate only parses and generates code.
//!
//! This is a part of memcheck, and any version can change it. Depend on `memcheck-runtime` instead.
//!
//! The generated `#[test]` has the name of the function and contains the function unchanged. It
//! passes a description of the test, and the body, to a single entry point of the runtime. The
//! description is also registered, so that a test binary can list its memory tests.
//!
//! With `cases(…)` the function stays at its place, and a module of the same name holds one such
//! test for each combination of the values.
#![forbid(unsafe_code)]

mod cases;
mod expand;
mod expression;
#[cfg(test)]
mod fuzzing;
mod layer;
mod list;
mod names;
mod options;
mod phases;
mod scaling;
mod values;

use proc_macro::TokenStream;
use syn::parse_macro_input;

/// Makes a function a memory test.
///
/// The function must have one of three signatures:
///
/// - `fn(trial: &mut Trial)`: the body controls the set-up and the iterations through the `Trial`.
/// - `fn(device: &Device)`: the body is one iteration.
/// - `fn()`: the body is one iteration and runs without a device.
///
/// Without the feature `candle` of memcheck-runtime there is no second signature, and a body can
/// use a GPU with each of the others.
///
/// With `cases(dtype = [f32, bf16])`, a test is made for each combination of the values. The
/// function must then have the first signature, because the `Trial` hands the values to the body.
///
/// The function can be `async` if the attribute names a function that runs its future:
/// `#[mem_test(block_on = pollster::block_on)]`.
///
/// `docs/reference/test.md` lists the options, their meaning and their defaults.
#[proc_macro_attribute]
pub fn mem_test(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let options = parse_macro_input!(attribute as options::AttributeOptions);
    let function = match syn::parse(item.clone()) {
        Ok(function) => function,
        Err(error) => {
            return expand::not_a_function(item.into(), error).into_compile_error().into();
        }
    };
    expand::expand(&options, &function, cfg!(feature = "candle"))
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
