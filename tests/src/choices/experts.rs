//! A mixture of experts: a router chooses two experts for each token, and each expert computes the
//! rows of its tokens.

use candle_core::{DType, Device, Result, Tensor};
use candle_nn::ops::softmax_last_dim;

use super::numbers;

/// Tokens of the batch.
pub const TOKENS: usize = 32;
/// Width of a token.
pub const WIDTH: usize = 64;
/// Width inside of an expert.
pub const INNER: usize = 256;
/// Number of experts.
pub const EXPERTS: usize = 4;
/// Experts of a token.
pub const CHOSEN: usize = 2;

#[derive(Debug)]
struct Expert {
    up: Tensor,
    down: Tensor,
}

/// A router, its experts and one batch.
#[derive(Debug)]
pub struct Mixture {
    router: Tensor,
    experts: Vec<Expert>,
    batch: Tensor,
}

/// The rows of one expert: tokens, and the share of the expert in the result of each.
type Rows = (Vec<u32>, Vec<f32>);

impl Mixture {
    /// Weights and batch of [`setup_bytes`]. If `is_skewed`, the router prefers the first expert
    /// for every token.
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn new(is_skewed: bool, device: &Device) -> Result<Self> {
        let mut router = numbers((WIDTH, EXPERTS), 1, 1.0, &Device::Cpu)?.to_vec2::<f32>()?;
        if is_skewed {
            // The first element of each token is 1, see `batch`.
            router[0] = vec![100.0, 0.0, 0.0, 0.0];
        }
        let expert = |number: usize| -> Result<Expert> {
            let salt = 10 + 2 * number as u64;
            Ok(Expert {
                up: numbers((WIDTH, INNER), salt, 0.2, device)?,
                down: numbers((INNER, WIDTH), salt + 1, 0.2, device)?,
            })
        };
        let mut batch = numbers((TOKENS, WIDTH), 2, 1.0, &Device::Cpu)?.to_vec2::<f32>()?;
        batch.iter_mut().for_each(|row| row[0] = 1.0);
        Ok(Self {
            router: Tensor::new(router, device)?,
            experts: (0..EXPERTS).map(expert).collect::<Result<_>>()?,
            batch: Tensor::new(batch, device)?,
        })
    }

    /// The result of the batch, `(TOKENS, WIDTH)`, and the number of tokens of each expert.
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn forward(&self) -> Result<(Tensor, [usize; EXPERTS])> {
        self.run(|_| ())
    }

    /// The leak: keeps the rows of each expert, [`leak_bytes`] in a pass.
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn forward_keeping_rows(
        &self,
        kept: &mut Vec<Tensor>,
    ) -> Result<(Tensor, [usize; EXPERTS])> {
        self.run(|rows| kept.push(rows.clone()))
    }

    fn run(&self, mut keep: impl FnMut(&Tensor)) -> Result<(Tensor, [usize; EXPERTS])> {
        let routes = self.route()?;
        let counts = std::array::from_fn(|expert| routes[expert].0.len());
        let device = self.batch.device();
        let mut result = Tensor::zeros((TOKENS, WIDTH), DType::F32, device)?;
        for (expert, (tokens, shares)) in self.experts.iter().zip(routes) {
            if tokens.is_empty() {
                continue;
            }
            let shares = Tensor::from_vec(shares, (tokens.len(), 1), device)?;
            let tokens = Tensor::new(tokens, device)?;
            let rows = self.batch.index_select(&tokens, 0)?;
            keep(&rows);
            let output = rows.matmul(&expert.up)?.silu()?.matmul(&expert.down)?;
            drop(rows);
            result = result.index_add(&tokens, &output.broadcast_mul(&shares)?, 0)?;
        }
        Ok((result, counts))
    }

    /// The result of the batch if every expert computes every token: the reference for
    /// [`Self::forward`].
    ///
    /// # Errors
    ///
    /// When the device is full.
    pub fn dense(&self) -> Result<Tensor> {
        let mut result = self.batch.zeros_like()?;
        for (expert, (tokens, shares)) in self.experts.iter().zip(self.route()?) {
            let mut all = vec![0_f32; TOKENS];
            tokens.iter().zip(shares).for_each(|(&token, share)| all[token as usize] = share);
            let shares = Tensor::from_vec(all, (TOKENS, 1), self.batch.device())?;
            let output = self.batch.matmul(&expert.up)?.silu()?.matmul(&expert.down)?;
            result = (result + output.broadcast_mul(&shares)?)?;
        }
        Ok(result)
    }

    /// Weights and batch.
    pub fn tensors(&self) -> Vec<&Tensor> {
        let experts = self.experts.iter().flat_map(|expert| [&expert.up, &expert.down]);
        [&self.router, &self.batch].into_iter().chain(experts).collect()
    }

    /// Reads the probabilities of the router, and gives each token to its [`CHOSEN`] most probable
    /// experts.
    fn route(&self) -> Result<[Rows; EXPERTS]> {
        let probabilities =
            softmax_last_dim(&self.batch.matmul(&self.router)?)?.to_vec2::<f32>()?;
        let mut routes: [Rows; EXPERTS] = Default::default();
        for (token, row) in probabilities.iter().enumerate() {
            let mut order: Vec<usize> = (0..EXPERTS).collect();
            order.sort_by(|&one, &other| row[other].total_cmp(&row[one]));
            order.truncate(CHOSEN);
            let sum: f32 = order.iter().map(|&expert| row[expert]).sum();
            for expert in order {
                routes[expert].0.push(token as u32);
                routes[expert].1.push(row[expert] / sum);
            }
        }
        Ok(routes)
    }
}

/// Bytes of weights and batch.
pub const fn setup_bytes() -> usize {
    4 * (WIDTH * EXPERTS + EXPERTS * 2 * WIDTH * INNER + TOKENS * WIDTH)
}

/// The peak of live bytes of a pass, in the expert with the most rows: weights, batch, result, the
/// ids and shares of the expert, and its rows as input, twice inside, and as output.
pub fn peak_bytes(counts: [usize; EXPERTS]) -> usize {
    let rows = counts.into_iter().max().expect("there are experts");
    setup_bytes() + 4 * (TOKENS * WIDTH + 2 * rows + rows * (2 * WIDTH + 2 * INNER))
}

/// Bytes that a pass leaks: each token is a row of two experts.
pub const fn leak_bytes() -> usize {
    4 * TOKENS * CHOSEN * WIDTH
}
