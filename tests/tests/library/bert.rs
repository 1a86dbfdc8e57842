//! The formula of parameters, and a forward pass.

use candle_core::Device;
use candle_transformers::models::bert::{BertModel, Config};
use memcheck_tests::bert::{Bert, parameters, tiny_config};

use crate::loaded_elements;

#[test]
fn the_parameter_formula_agrees_with_the_model() {
    let config = tiny_config();
    let loaded = loaded_elements(|builder| BertModel::load(builder, &config));
    assert_eq!(parameters(&config), loaded);
}

#[test]
fn bert_base_has_its_published_size() {
    assert_eq!(parameters(&Config::default()) * 4, 435_566_592);
}

#[test]
fn a_forward_pass_gives_a_hidden_state_per_token() {
    let bert = Bert::tiny(&Device::Cpu).unwrap();
    let hidden = bert.forward(&bert.inputs(3, 16).unwrap()).unwrap();
    assert_eq!(hidden.dims(), [3, 16, 64]);
}
