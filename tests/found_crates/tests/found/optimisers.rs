//! candle-optimisers, which has further optimizers for training.

/// A step of Adam records a graph of itself, which keeps every intermediate tensor.
mod adam {
    use candle_core::{DType, Var};
    use candle_nn::Optimizer;

    crate::pair! {
        candle_optimisers::adam => crate::changed::optimisers_adam;
        |device| {
            let theta = Var::zeros((1024, 256), DType::F32, device)?;
            let grads = theta.sum_all()?.backward()?;
            let mut adam = subject::Adam::new(vec![theta], subject::ParamsAdam::default())?;
            adam.step(&grads)?;
            Ok((adam, grads))
        }
    }
}
