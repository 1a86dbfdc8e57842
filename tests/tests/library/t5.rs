//! The formula of parameters, and both ways of decoding.

use candle_core::Device;
use candle_transformers::models::t5::{Config, T5ForConditionalGeneration};
use memcheck_tests::t5::{T5, parameters, tiny_config};

use crate::loaded_elements;

#[test]
fn the_parameter_formula_agrees_with_the_model() {
    let config = Config { num_decoder_layers: Some(3), ..tiny_config() };
    let loaded = loaded_elements(|builder| T5ForConditionalGeneration::load(builder, &config));
    assert_eq!(parameters(&config), loaded);
}

#[test]
fn t5_small_has_its_published_size() {
    assert_eq!(parameters(&Config::default()), 60_506_624);
}

#[test]
fn both_ways_of_decoding_give_logits_again_and_again() {
    let mut t5 = T5::tiny(&Device::Cpu).unwrap();
    let source = t5.source(2, 12).unwrap();
    for _ in 0..3 {
        assert_eq!(t5.generate(&source, 4).unwrap().dims(), [2, 512]);
    }
    for _ in 0..3 {
        assert_eq!(t5.generate_without_clearing(&source, 4).unwrap().dims(), [2, 512]);
    }
}

#[test]
fn no_token_is_an_error() {
    let mut t5 = T5::tiny(&Device::Cpu).unwrap();
    let source = t5.source(1, 4).unwrap();
    assert!(t5.generate(&source, 0).is_err());
}
