//! T5: an encoder pass and decoder steps. The cache is cleared after each request.

use memcheck_runtime::{Trial, mem_test};
use memcheck_tests::t5::T5;

use crate::assert_allocated;

#[mem_test(max_growth = "0 B")]
fn generate(trial: &mut Trial) -> anyhow::Result<()> {
    let mut t5 = T5::tiny(trial.device())?;
    assert_allocated(trial, t5.weight_bytes());
    let source = t5.source(2, 16)?;
    trial.iterate(|_| {
        t5.generate(&source, 4)?;
        Ok(())
    })
}
