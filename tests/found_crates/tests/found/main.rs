//! Defects and avoidable peaks of crates on top of candle, as those of `tests/found` in the package
//! above.

mod moshi;
mod onnx;
mod optimisers;
#[path = "../../../tests/found/pair.rs"]
mod pair;

#[allow(
    warnings,
    clippy::all,
    reason = "sources of published crates, with the changes of the folder `changes`"
)]
mod changed {
    include!(concat!(env!("OUT_DIR"), "/changed.rs"));
}

pub(crate) use pair::{compare, input, pair, size, weights};
