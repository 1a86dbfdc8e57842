//! Training steps.

use candle_core::backprop::GradStore;
use candle_core::{DType, Device, Result, Tensor, Var};

/// A variable of 1 MiB.
fn variable(device: &Device) -> Result<Var> {
    Var::zeros((1024, 256), DType::F32, device)
}

/// A step of the optimizer records a graph of itself, which keeps every intermediate tensor.
mod adamw {
    use candle_nn::{AdamW, Optimizer, ParamsAdamW};

    use super::{GradStore, Result, Var, variable};

    fn candle(theta: &Var, grads: &GradStore) -> Result<()> {
        AdamW::new(vec![theta.clone()], ParamsAdamW::default())?.step(grads)
    }

    /// The first step of `AdamW::step`, on tensors without a graph, and each intermediate tensor
    /// for as long as it is needed.
    fn detached(theta: &Var, grads: &GradStore) -> Result<()> {
        let ParamsAdamW { lr, beta1, beta2, eps, weight_decay } = ParamsAdamW::default();
        let (m, v) = (theta.zeros_like()?, theta.zeros_like()?);
        let (m, v) = (Var::from_tensor(&m)?, Var::from_tensor(&v)?);
        let Some(g) = grads.get(theta) else { return Ok(()) };
        m.set(&((m.as_detached_tensor() * beta1)? + (g * (1.0 - beta1))?)?)?;
        v.set(&((v.as_detached_tensor() * beta2)? + (g.sqr()? * (1.0 - beta2))?)?)?;
        let scale = ((v.as_detached_tensor() * (1.0 / (1.0 - beta2)))?.sqrt()? + eps)?;
        let step = ((m.as_detached_tensor() * (1.0 / (1.0 - beta1)))? / scale)?;
        theta.set(&((theta.as_detached_tensor() * (1.0 - lr * weight_decay))? - (step * lr)?)?)
    }

    crate::pair! {
        self::candle => self::detached;
        |device| {
            let theta = variable(device)?;
            let grads = theta.sum_all()?.backward()?;
            subject(&theta, &grads)?;
            Ok((theta, grads))
        }
    }

    #[test]
    fn the_change_computes_the_same() -> Result<()> {
        let theta = crate::random((4, 8))?;
        let (changed, theirs) = (&Var::from_tensor(&theta)?, &Var::from_tensor(&theta)?);
        detached(changed, &changed.sqr()?.sum_all()?.backward()?)?;
        candle(theirs, &theirs.sqr()?.sum_all()?.backward()?)?;
        crate::assert_same(changed, theirs)
    }
}

/// The gradient of a frozen weight is computed, and kept with the others.
mod frozen_weight {
    use super::{DType, GradStore, Result, Tensor, Var, variable};

    fn candle(input: &Var, weight: &Tensor) -> Result<GradStore> {
        input.matmul(weight)?.sum_all()?.backward()
    }

    /// The product is differentiated by hand, for its input only.
    fn of_the_input(input: &Var, weight: &Tensor) -> Result<GradStore> {
        let output = Var::from_tensor(&input.as_detached_tensor().matmul(weight)?)?;
        let mut grads = output.sum_all()?.backward()?;
        if let Some(grad) = grads.remove(&output) {
            grads.insert(input, grad.matmul(&weight.t()?)?);
        }
        Ok(grads)
    }

    crate::pair! {
        self::candle => self::of_the_input;
        |device| {
            let weight = variable(device)?.as_detached_tensor();
            let input = Var::zeros((8, 1024), DType::F32, device)?;
            let grads = subject(&input, &weight)?;
            Ok((weight, input, grads))
        }
    }

    #[test]
    fn the_change_computes_the_same() -> Result<()> {
        let (input, weight) = (Var::from_tensor(&crate::random((4, 8))?)?, crate::random((8, 3))?);
        let grad = |grads: GradStore| grads.get(&input).cloned().unwrap();
        let candle = grad(candle(&input, &weight)?);
        crate::assert_same(&grad(of_the_input(&input, &weight)?), &candle)
    }
}
