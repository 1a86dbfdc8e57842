//! An estimate for unit tests.

use memcheck_core::wire::estimate::Estimate;

/// A model of 50 parameters that was only loaded.
pub(crate) fn loaded() -> Estimate {
    Estimate {
        model: "llama".to_owned(),
        dtype: "bf16".to_owned(),
        batch: 1,
        seq: 8,
        generate: 0,
        parameters: 50,
        weights: 100,
        types: Vec::new(),
        files: None,
        tables: 0,
        load_peak: 100,
        inference: None,
        training: None,
        peak: 100,
        notes: Vec::new(),
    }
}
