//! The formulas of parameters and caches, and decoding up to the last position.

use candle_core::{DType, Device};
use candle_transformers::models::llama::{Config, Llama as Model};
use memcheck_tests::llama::{
    Llama, Session, kv_bytes_per_token, parameters, rope_table_bytes, tiny_config,
};

use crate::loaded_elements;

#[test]
fn the_parameter_formula_agrees_with_the_model() {
    for tie_word_embeddings in [false, true] {
        let config = Config { tie_word_embeddings, ..tiny_config() };
        let loaded = loaded_elements(|builder| Model::load(builder, &config));
        assert_eq!(parameters(&config), loaded);
    }
}

#[test]
fn llama_2_7b_has_its_published_size() {
    let config = Config::config_7b_v2(false);
    assert_eq!(parameters(&config), 6_738_415_616);
    assert_eq!(2048 * kv_bytes_per_token(&config, 1, DType::F16), 1_073_741_824);
    assert_eq!(rope_table_bytes(&config, DType::F16), 1_048_576);
}

#[test]
fn decoding_works_in_every_dtype() {
    for dtype in [DType::F32, DType::F16, DType::BF16] {
        let llama = Llama::tiny(&Device::Cpu, dtype).unwrap();
        let prompt = llama.prompt(2, 8).unwrap();
        assert_eq!(llama.prefill_and_decode(&prompt, 2).unwrap().dims(), [2, 512]);
    }
}

#[test]
fn a_session_ends_with_an_error_when_its_positions_are_used_up() {
    let llama = Llama::tiny(&Device::Cpu, DType::F32).unwrap();
    let mut session = Session::new(&llama, &llama.prompt(1, 511).unwrap()).unwrap();
    assert_eq!(session.step().unwrap().dims(), [1, 512]);
    assert!(session.step().is_err());
}
