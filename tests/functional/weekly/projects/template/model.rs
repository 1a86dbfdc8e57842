use CANDLE::{DType, Device, Module, Result, Tensor};
use candle_nn::Linear;

const TOKENS: usize = 16;
const INPUTS: usize = 64;
const INNER: usize = 128;
const OUTPUTS: usize = 32;

/// Two linear layers, and a softmax between them.
pub struct Model {
    first: Linear,
    second: Linear,
    /// A program with its own feature for CUDA is another program.
    _workspace: Option<Tensor>,
}

impl Model {
    pub fn new(device: &Device) -> Result<Self> {
        let weights = |rows, columns| Tensor::zeros((rows, columns), DType::F32, device);
        let workspace = cfg!(OWN_FEATURE).then(|| Tensor::zeros(1024, DType::F32, device));
        Ok(Self {
            first: Linear::new(weights(INNER, INPUTS)?, None),
            second: Linear::new(weights(OUTPUTS, INNER)?, None),
            _workspace: workspace.transpose()?,
        })
    }

    pub fn inputs(&self) -> Result<Tensor> {
        let device = self.first.weight().device();
        Tensor::zeros((TOKENS, INPUTS), DType::F32, device)
    }

    pub fn forward(&self, inputs: &Tensor) -> Result<Tensor> {
        let scores = self.first.forward(inputs)?;
        let exponentials = scores.broadcast_sub(&scores.max_keepdim(1)?)?.exp()?;
        let weights = exponentials.broadcast_div(&exponentials.sum_keepdim(1)?)?;
        self.second.forward(&weights)
    }
}
