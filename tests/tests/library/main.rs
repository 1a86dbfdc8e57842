//! Tests of the library itself. A formula must agree with the model or the graph whose bytes it
//! states, a workload must compute correct results on the CPU, and the corpus of leaks must be
//! complete.
//!
//! They are ordinary tests, without memory tests. Each module has the tests of the library's module
//! of the same name.

mod bert;
mod checkpointing;
mod choices;
mod leaks;
mod llama;
mod mixed_precision;
mod overhead;
mod recordings;
mod scenarios;
mod t5;
mod training;
mod whisper;

use candle_core::{DType, Device, Result};
use candle_nn::{VarBuilder, VarMap};
use memcheck_tests::token_ids;

/// The number of elements that `load` requests from a variable builder, to compare parameter
/// formulas with it.
fn loaded_elements<M>(load: impl FnOnce(VarBuilder<'_>) -> Result<M>) -> usize {
    let vars = VarMap::new();
    let builder = VarBuilder::from_varmap(&vars, DType::F32, &Device::Cpu);
    load(builder).map(drop).unwrap();
    vars.all_vars().iter().map(|var| var.elem_count()).sum()
}

#[test]
fn token_ids_wrap_at_the_vocabulary() {
    let ids = token_ids(2, 3, 4, &Device::Cpu).unwrap();
    assert_eq!(ids.to_vec2::<u32>().unwrap(), [[0, 1, 2], [3, 0, 1]]);
}
