//! candle-optimisers, which has further optimizers for training.

/// A step of Adam records a graph of itself, which keeps every intermediate tensor.
mod adam {
    use candle_core::Var;
    use candle_nn::Optimizer;

    crate::pair! {
        candle_optimisers::adam => crate::changed::optimisers_adam;
        compared |device| {
            let theta = Var::from_tensor(&crate::input((1024, 256), device)?)?;
            let grads = theta.sum_all()?.backward()?;
            let parameters = vec![theta.clone()];
            let mut adam = subject::Adam::new(parameters, subject::ParamsAdam::default())?;
            adam.step(&grads)?;
            crate::compare(|| theta.copy())?;
            Ok((adam, grads))
        }
    }
}
