//! Encoders: one pass over the whole input, after which no memory stays. Heads are not included, so
//! the output is the last hidden states.

use candle_core::{DType, Module, Result, Tensor};
use candle_transformers::models as m;
use serde_json::{Map, Value, json};

use super::adapted::{default, rename};
use super::{Context, Loaded, Model, ModelFamily, defaults};

pub(super) const TABLE: &[ModelFamily] = &[
    ModelFamily::encoder(&["bert"], bert).with_defaults(defaults::BERT),
    ModelFamily::encoder(&["distilbert"], distilbert).with_defaults(defaults::DISTILBERT),
    ModelFamily::encoder(&["camembert", "roberta", "xlm-roberta"], xlm_roberta)
        .with_defaults(defaults::ROBERTA),
    // The first layer has no normalization before its attention, but candle asks for its weight.
    ModelFamily {
        mask: 4,
        absent: &["layers.0.attn_norm.weight"],
        defaults: defaults::MODERNBERT,
        ..ModelFamily::encoder(&["modernbert"], modernbert)
    },
    ModelFamily::encoder(&["jina-bert"], jina_bert),
    #[cfg(not(candle_before = "0.10"))]
    ModelFamily::encoder(&["nomic_bert"], nomic_bert),
    ModelFamily::encoder(&["deberta-v2"], deberta).with_defaults(defaults::DEBERTA),
    // The `model_type` of GTE and of Stella with 400 million parameters is `new`. That of Stella
    // with 1.5 billion parameters is `qwen2`, so the user must change it to `stella_en_v5` to run
    // the model as candle's Stella.
    ModelFamily::encoder(&["new"], stella).adapted_by(small).with_defaults(defaults::STELLA),
    ModelFamily::encoder(&["stella_en_v5"], stella)
        .adapted_by(large)
        .with_defaults(defaults::STELLA),
];

struct Encoder<M> {
    model: M,
    forward: fn(&mut M, &Tensor) -> Result<Tensor>,
}

impl<M> Model for Encoder<M> {
    fn prompt(&mut self, ids: &Tensor) -> Result<Tensor> {
        (self.forward)(&mut self.model, ids)
    }

    fn step(&mut self, _: &Tensor, _: usize) -> Result<Tensor> {
        candle_core::bail!("an encoder cannot generate tokens")
    }
}

fn bert(context: &Context) -> Loaded {
    let config = context.read()?;
    let model = m::bert::BertModel::load(context.weights.clone(), &config)?;
    let forward =
        |model: &mut m::bert::BertModel, ids: &Tensor| model.forward(ids, &ids.zeros_like()?, None);
    Ok(Box::new(Encoder { model, forward }))
}

fn distilbert(context: &Context) -> Loaded {
    use m::distilbert::DistilBertModel;
    let config = context.read()?;
    let model = DistilBertModel::load(context.weights.clone(), &config)?;
    let forward = |model: &mut DistilBertModel, ids: &Tensor| {
        let (batch, seq) = ids.dims2()?;
        // No token is padding.
        let mask = Tensor::zeros((batch, 1, 1, seq), DType::U8, ids.device())?;
        model.forward(ids, &mask)
    };
    Ok(Box::new(Encoder { model, forward }))
}

fn xlm_roberta(context: &Context) -> Loaded {
    use m::xlm_roberta::XLMRobertaModel;
    let config = context.read()?;
    let model = XLMRobertaModel::new(&config, context.weights.clone())?;
    let forward = |model: &mut XLMRobertaModel, ids: &Tensor| {
        model.forward(ids, &ids.ones_like()?, &ids.zeros_like()?, None, None, None)
    };
    Ok(Box::new(Encoder { model, forward }))
}

fn modernbert(context: &Context) -> Loaded {
    use m::modernbert::ModernBert;
    let config = context.read()?;
    let model = ModernBert::load(context.weights.clone(), &config)?;
    let forward = |model: &mut ModernBert, ids: &Tensor| model.forward(ids, &ids.ones_like()?);
    Ok(Box::new(Encoder { model, forward }))
}

fn jina_bert(context: &Context) -> Loaded {
    let config = context.read()?;
    let model = m::jina_bert::BertModel::new(context.weights.clone(), &config)?;
    let forward = |model: &mut m::jina_bert::BertModel, ids: &Tensor| model.forward(ids);
    Ok(Box::new(Encoder { model, forward }))
}

#[cfg(not(candle_before = "0.10"))]
fn nomic_bert(context: &Context) -> Loaded {
    use m::nomic_bert::NomicBertModel;
    let config = context.read()?;
    let model = NomicBertModel::load(context.weights.clone(), &config)?;
    let forward = |model: &mut NomicBertModel, ids: &Tensor| model.forward(ids, None, None);
    Ok(Box::new(Encoder { model, forward }))
}

fn deberta(context: &Context) -> Loaded {
    use m::debertav2::DebertaV2Model;
    let config = context.read()?;
    let model = DebertaV2Model::load(context.weights.clone(), &config)?;
    let forward = |model: &mut DebertaV2Model, ids: &Tensor| model.forward(ids, None, None);
    Ok(Box::new(Encoder { model, forward }))
}

fn stella(context: &Context) -> Loaded {
    use m::stella_en_v5::Model;
    let config = context.read()?;
    let model = Model::new(&config, context.weights.clone())?;
    let forward = |model: &mut Model, ids: &Tensor| model.forward(ids, &ids.ones_like()?);
    Ok(Box::new(Encoder { model, forward }))
}

fn small(config: &mut Map<String, Value>) {
    rename(config, "layer_norm_eps", "norm_eps");
    rename(config, "num_attention_heads", "num_key_value_heads");
    if let Some(factor) = config.get("rope_scaling").and_then(|it| it.get("factor")).cloned() {
        default(config, "scaling_factor", factor);
    }
    stella_names(config, "Small");
}

fn large(config: &mut Map<String, Value>) {
    rename(config, "rms_norm_eps", "norm_eps");
    stella_names(config, "Large");
}

/// Renames the keys of Stella. The configuration does not contain the sizes of the head, which is
/// not run.
fn stella_names(config: &mut Map<String, Value>, variant: &str) {
    rename(config, "hidden_act", "activation_fn");
    default(config, "variant", json!(variant));
    default(config, "embed_head", json!({ "in_features": 0, "out_features": 0 }));
}
