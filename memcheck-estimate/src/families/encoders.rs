//! Encoders: one pass over the whole input, and nothing that stays. Heads are
//! not part of them: what they return is the last hidden states.

use candle_core::{DType, Module, Result, Tensor};
use candle_transformers::models as m;

use super::{Context, Family, Kind, Loaded, Model};

pub(super) const TABLE: &[Family] = &[
    Family::encoder(&["bert"], bert),
    Family::encoder(&["distilbert"], distilbert),
    Family::encoder(&["camembert", "roberta", "xlm-roberta"], xlm_roberta),
    // Nothing is normalised before the first attention; candle asks all the same.
    Family {
        mask: 4,
        absent: &["layers.0.attn_norm.weight"],
        ..Family::encoder(&["modernbert"], modernbert)
    },
    Family::encoder(&["jina-bert"], jina_bert),
    Family::encoder(&["nomic_bert"], nomic_bert),
    Family::encoder(&["deberta-v2"], deberta),
];

/// A model with one pass.
struct Encoder<M> {
    model: M,
    forward: fn(&M, &Tensor) -> Result<Tensor>,
}

impl<M> Model for Encoder<M> {
    fn prompt(&mut self, ids: &Tensor) -> Result<Tensor> {
        (self.forward)(&self.model, ids)
    }

    fn step(&mut self, _: &Tensor, _: usize) -> Result<Tensor> {
        candle_core::bail!("{:?} generates nothing", Kind::Encoder)
    }
}

fn bert(context: &Context) -> Loaded {
    let config = context.read()?;
    let model = m::bert::BertModel::load(context.weights.clone(), &config)?;
    let forward =
        |model: &m::bert::BertModel, ids: &Tensor| model.forward(ids, &ids.zeros_like()?, None);
    Ok(Box::new(Encoder { model, forward }))
}

fn distilbert(context: &Context) -> Loaded {
    use m::distilbert::DistilBertModel;
    let config = context.read()?;
    let model = DistilBertModel::load(context.weights.clone(), &config)?;
    let forward = |model: &DistilBertModel, ids: &Tensor| {
        let (batch, seq) = ids.dims2()?;
        // Nothing is padding.
        let mask = Tensor::zeros((batch, 1, 1, seq), DType::U8, ids.device())?;
        model.forward(ids, &mask)
    };
    Ok(Box::new(Encoder { model, forward }))
}

fn xlm_roberta(context: &Context) -> Loaded {
    use m::xlm_roberta::XLMRobertaModel;
    let config = context.read()?;
    let model = XLMRobertaModel::new(&config, context.weights.clone())?;
    let forward = |model: &XLMRobertaModel, ids: &Tensor| {
        model.forward(ids, &ids.ones_like()?, &ids.zeros_like()?, None, None, None)
    };
    Ok(Box::new(Encoder { model, forward }))
}

fn modernbert(context: &Context) -> Loaded {
    use m::modernbert::ModernBert;
    let config = context.read()?;
    let model = ModernBert::load(context.weights.clone(), &config)?;
    let forward = |model: &ModernBert, ids: &Tensor| model.forward(ids, &ids.ones_like()?);
    Ok(Box::new(Encoder { model, forward }))
}

fn jina_bert(context: &Context) -> Loaded {
    let config = context.read()?;
    let model = m::jina_bert::BertModel::new(context.weights.clone(), &config)?;
    Ok(Box::new(Encoder { model, forward: Module::forward }))
}

fn nomic_bert(context: &Context) -> Loaded {
    use m::nomic_bert::NomicBertModel;
    let config = context.read()?;
    let model = NomicBertModel::load(context.weights.clone(), &config)?;
    let forward = |model: &NomicBertModel, ids: &Tensor| model.forward(ids, None, None);
    Ok(Box::new(Encoder { model, forward }))
}

fn deberta(context: &Context) -> Loaded {
    use m::debertav2::DebertaV2Model;
    let config = context.read()?;
    let model = DebertaV2Model::load(context.weights.clone(), &config)?;
    let forward = |model: &DebertaV2Model, ids: &Tensor| model.forward(ids, None, None);
    Ok(Box::new(Encoder { model, forward }))
}
