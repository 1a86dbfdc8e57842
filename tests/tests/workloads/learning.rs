//! A training run computes the CPU's losses on the device: a small attention model, cross-entropy
//! and AdamW.

use candle_core::{D, DType, Device, Result, Tensor, Var};
use candle_nn::{AdamW, Optimizer as _, ParamsAdamW, loss, ops};
use memcheck_runtime::{Trial, mem_test};

const STEPS: usize = 50;
const VOCAB: usize = 16;
const WIDTH: usize = 16;
const TOKENS: usize = 24;

/// A model of one layer with fixed weights.
struct Model {
    embedding: Var,
    query: Var,
    key: Var,
    value: Var,
    up: Var,
    down: Var,
    head: Var,
}

impl Model {
    fn new(device: &Device) -> Result<Self> {
        let variable = |number: usize, rows: usize, columns: usize| {
            let elements: Vec<f32> = (0..rows * columns)
                .map(|at| ((at * 37 + number * 11) % 41) as f32 / 82.0 - 0.25)
                .collect();
            Var::from_tensor(&Tensor::from_vec(elements, (rows, columns), device)?)
        };
        Ok(Self {
            embedding: variable(0, VOCAB, WIDTH)?,
            query: variable(1, WIDTH, WIDTH)?,
            key: variable(2, WIDTH, WIDTH)?,
            value: variable(3, WIDTH, WIDTH)?,
            up: variable(4, WIDTH, 2 * WIDTH)?,
            down: variable(5, 2 * WIDTH, WIDTH)?,
            head: variable(6, WIDTH, VOCAB)?,
        })
    }

    fn variables(&self) -> Vec<Var> {
        let Self { embedding, query, key, value, up, down, head } = self;
        [embedding, query, key, value, up, down, head].map(Var::clone).to_vec()
    }

    fn loss(&self, ids: &Tensor, targets: &Tensor) -> Result<Tensor> {
        let hidden = self.embedding.embedding(ids)?;
        let scores = hidden.matmul(&self.query)?.matmul(&hidden.matmul(&self.key)?.t()?)?;
        let weights = ops::softmax(&(scores / (WIDTH as f64).sqrt())?, D::Minus1)?;
        let hidden = (&hidden + weights.matmul(&hidden.matmul(&self.value)?)?)?;
        let norm = hidden.sqr()?.mean_keepdim(D::Minus1)?.affine(1.0, 1e-5)?.sqrt()?;
        let normal = hidden.broadcast_div(&norm)?;
        let hidden = (hidden + normal.matmul(&self.up)?.silu()?.matmul(&self.down)?)?;
        loss::cross_entropy(&hidden.matmul(&self.head)?, targets)
    }
}

/// The loss of each step.
fn losses(device: &Device) -> Result<Vec<f32>> {
    let model = Model::new(device)?;
    let rates = ParamsAdamW { lr: 0.02, ..ParamsAdamW::default() };
    let mut optimizer = AdamW::new(model.variables(), rates)?;
    let ids: Vec<u32> = (0..TOKENS).map(|at| (at * 5 % VOCAB) as u32).collect();
    let targets: Vec<u32> = ids.iter().map(|id| (id * 3 + 1) % VOCAB as u32).collect();
    let (ids, targets) = (Tensor::new(ids, device)?, Tensor::new(targets, device)?);
    (0..STEPS)
        .map(|_| {
            let loss = model.loss(&ids, &targets)?;
            optimizer.backward_step(&loss)?;
            loss.to_dtype(DType::F32)?.to_scalar()
        })
        .collect()
}

#[mem_test(device = "cuda", baseline = false, iterations = 1, warmup = 0)]
fn fifty_steps_reach_the_loss_of_the_cpu(trial: &mut Trial) -> anyhow::Result<()> {
    let (there, here) = (losses(trial.device())?, losses(&Device::Cpu)?);
    assert!(here[STEPS - 1] < here[0] / 20.0, "the model does not learn: {here:?}");
    for (step, (there, here)) in there.iter().zip(&here).enumerate() {
        // The rounding errors of all earlier steps add up.
        let tolerance = 1e-3 * here.abs().max(1e-2);
        assert!((there - here).abs() <= tolerance, "step {step}: {there}, and {here} on the CPU");
    }
    Ok(())
}
