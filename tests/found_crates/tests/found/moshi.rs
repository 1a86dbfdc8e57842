//! moshi, which runs Kyutai's models of speech.

use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;

fn weights(device: &Device) -> VarBuilder<'static> {
    VarBuilder::zeros(DType::F32, device)
}

/// Both kinds of streaming convolutions keep the columns that the next chunk needs, as a view of the
/// whole chunk.
mod convolutions {
    use super::{DType, Tensor, weights};
    use moshi::streaming::{StreamMask, StreamingModule};

    crate::pair! {
        moshi::conv => crate::changed::moshi_conv;
        |device| {
            let padding = subject::PadMode::Constant;
            let mut down = subject::StreamableConv1d::new(
                64, 64, 3, 1, 1, 1, true, true, None, padding, weights(device),
            )?;
            let mut up = subject::StreamableConvTranspose1d::new(
                64, 64, 8, 4, 1, true, true, None, weights(device),
            )?;
            let chunk = Tensor::zeros((1, 64, 1920), DType::F32, device)?;
            down.step(&chunk.clone().into(), &StreamMask::empty())?;
            up.step(&chunk.into(), &StreamMask::empty())?;
            Ok((down, up))
        }
    }
}

/// Each codebook keeps the sums from which its vectors were computed, for a function that is not
/// called.
mod codebooks {
    use super::weights;

    crate::pair! {
        moshi::quantization => crate::changed::moshi_quantization, device = "cuda";
        |device| {
            let (input, output) = (Some(512), Some(512));
            let weights = weights(device);
            Ok(subject::SplitResidualVectorQuantizer::new(256, input, output, 32, 2048, weights)?)
        }
    }
}

/// The attention keeps its scores after each step: products, scaled, masked and normalized.
mod scores {
    use super::{DType, Tensor, weights};
    use moshi::mimi::Config;
    use moshi::nn::MaybeQuantizedVarBuilder;
    use moshi::streaming::StreamMask;

    crate::pair! {
        moshi::batched_transformer => crate::changed::moshi_batched_transformer;
        |device| {
            let config = moshi::transformer::Config {
                d_model: 64,
                num_layers: 1,
                dim_feedforward: 64,
                context: 256,
                ..Config::v0_1(None).transformer
            };
            let weights = MaybeQuantizedVarBuilder::Real(weights(device));
            let mut model = subject::StreamingTransformer::new(1, &config, weights)?;
            let mask = StreamMask::new(vec![true], device)?;
            let frames = Tensor::zeros((1, 128, 64), DType::F32, device)?;
            model.forward(&frames, &mask)?;
            Ok(model)
        }
    }
}
