//! A crate of macros exports nothing else, so that its modules are compiled here.
#![no_main]

#[path = "../../memcheck-macros/src/cases.rs"]
mod cases;
#[path = "../../memcheck-macros/src/expand.rs"]
mod expand;
#[path = "../../memcheck-macros/src/fuzzing.rs"]
mod fuzzing;
#[path = "../../memcheck-macros/src/layer.rs"]
mod layer;
#[path = "../../memcheck-macros/src/list.rs"]
mod list;
#[path = "../../memcheck-macros/src/names.rs"]
mod names;
#[path = "../../memcheck-macros/src/options.rs"]
mod options;
#[path = "../../memcheck-macros/src/scaling.rs"]
mod scaling;
#[path = "../../memcheck-macros/src/expression.rs"]
mod expression;
#[path = "../../memcheck-macros/src/values.rs"]
mod values;

libfuzzer_sys::fuzz_target!(|input: &[u8]| fuzzing::attribute(input));
