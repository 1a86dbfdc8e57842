//! Functions of candle-nn that keep a step of their computation longer than it is needed.

use candle_core::{D, DType, Device, Result, Tensor};

/// A tensor of 1 MiB.
fn input(device: &Device) -> Result<Tensor> {
    Tensor::zeros((1024, 256), DType::F32, device)
}

/// The differences to the maximum live to the end of the function.
mod softmax {
    use super::{D, Result, Tensor, input};

    fn changed(xs: &Tensor, dim: D) -> Result<Tensor> {
        let num = xs.broadcast_sub(&xs.max_keepdim(dim)?)?.exp()?;
        let den = num.sum_keepdim(dim)?;
        num.broadcast_div(&den)
    }

    crate::pair! {
        candle_nn::ops::softmax => self::changed;
        |device| {
            let xs = input(device)?;
            Ok(subject(&xs, D::Minus1)?)
        }
    }

    #[test]
    fn the_change_computes_the_same() -> Result<()> {
        let xs = crate::random((8, 32))?;
        crate::assert_same(&changed(&xs, D::Minus1)?, &candle_nn::ops::softmax(&xs, D::Minus1)?)
    }
}

/// A norm without bias does not use the kernel of a norm, which needs no intermediate tensor.
mod layer_norm {
    use candle_nn::{LayerNorm, Module};

    use super::{DType, Result, Tensor, input};

    fn without_bias(weight: Tensor) -> Result<LayerNorm> {
        Ok(LayerNorm::new_no_bias(weight, 1e-5))
    }

    fn bias_of_zeros(weight: Tensor) -> Result<LayerNorm> {
        let bias = weight.zeros_like()?;
        Ok(LayerNorm::new(weight, bias, 1e-5))
    }

    crate::pair! {
        self::without_bias => self::bias_of_zeros;
        |device| {
            let norm = subject(Tensor::ones(256, DType::F32, device)?)?;
            Ok(norm.forward(&input(device)?)?)
        }
    }

    #[test]
    fn the_change_computes_the_same() -> Result<()> {
        let (weight, xs) = (crate::random(32)?, crate::random((8, 32))?);
        let candle = without_bias(weight.clone())?.forward(&xs)?;
        crate::assert_same(&bias_of_zeros(weight)?.forward(&xs)?, &candle)
    }
}

/// Random numbers and their comparison live until the mask is applied.
mod dropout {
    use super::{Result, Tensor, input};

    fn changed(xs: &Tensor, drop_p: f32) -> Result<Tensor> {
        let scale = 1.0 / (1.0 - drop_p as f64);
        let drop_p = Tensor::new(drop_p, xs.device())?.broadcast_as(xs.shape())?;
        let mask = Tensor::rand(0f32, 1f32, xs.shape(), xs.device())?.ge(&drop_p)?;
        let mask = mask.to_dtype(xs.dtype())?;
        (xs * mask)? * scale
    }

    crate::pair! {
        candle_nn::ops::dropout => self::changed;
        |device| {
            let xs = input(device)?;
            Ok(subject(&xs, 0.5)?)
        }
    }
}

/// The state of a cell is kept for every step, although only the last is used.
mod lstm {
    use candle_nn::{LSTM, RNN};

    use super::{DType, Result, Tensor};

    fn all_states(lstm: &LSTM, input: &Tensor) -> Result<Tensor> {
        lstm.states_to_tensor(&lstm.seq(input)?)
    }

    fn last_cell(lstm: &LSTM, input: &Tensor) -> Result<Tensor> {
        let mut state = lstm.zero_state(input.dim(0)?)?;
        let mut outputs = Vec::new();
        for step in 0..input.dim(1)? {
            state = lstm.step(&input.narrow(1, step, 1)?.squeeze(1)?.contiguous()?, &state)?;
            outputs.push(state.h().clone());
        }
        Tensor::stack(&outputs, 1)
    }

    crate::pair! {
        self::all_states => self::last_cell;
        |device| {
            let weights = crate::weights(device);
            let lstm = candle_nn::lstm(8, 256, candle_nn::LSTMConfig::default(), weights)?;
            let input = Tensor::zeros((4, 128, 8), DType::F32, device)?;
            Ok(subject(&lstm, &input)?)
        }
    }

    #[test]
    fn the_change_computes_the_same() -> Result<()> {
        let variables = candle_nn::VarMap::new();
        let weights =
            candle_nn::VarBuilder::from_varmap(&variables, DType::F32, &candle_core::Device::Cpu);
        let lstm = candle_nn::lstm(8, 16, candle_nn::LSTMConfig::default(), weights)?;
        let input = crate::random((2, 4, 8))?;
        crate::assert_same(&last_cell(&lstm, &input)?, &all_states(&lstm, &input)?)
    }
}
