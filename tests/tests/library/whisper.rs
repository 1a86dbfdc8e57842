//! The formula of parameters, and both ways of decoding.

use candle_core::Device;
use candle_transformers::models::whisper::{Config, model::Whisper as Model};
use memcheck_tests::whisper::{Whisper, parameters, tiny_config};

use crate::loaded_elements;

#[test]
fn the_parameter_formula_agrees_with_the_model() {
    let config = Config { decoder_layers: 3, ..tiny_config() };
    let loaded = loaded_elements(|builder| Model::load(&builder, config.clone()));
    assert_eq!(parameters(&config), loaded);
}

#[test]
fn both_ways_of_decoding_give_logits_again_and_again() {
    let mut whisper = Whisper::tiny(&Device::Cpu).unwrap();
    let inputs = whisper.inputs(2).unwrap();
    for _ in 0..2 {
        assert_eq!(whisper.transcribe(&inputs, 4).unwrap().dims(), [2, 1, 512]);
    }
    for _ in 0..2 {
        assert_eq!(whisper.transcribe_without_reset(&inputs, 4).unwrap().dims(), [2, 1, 512]);
    }
}

#[test]
fn more_text_than_positions_is_an_error() {
    let mut whisper = Whisper::tiny(&Device::Cpu).unwrap();
    let inputs = whisper.inputs(1).unwrap();
    assert!(whisper.transcribe(&inputs, 33).is_err());
    assert!(whisper.transcribe(&inputs, 0).is_err());
}
