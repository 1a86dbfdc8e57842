//! moshi, which runs Kyutai's models of speech.

/// Both kinds of streaming convolutions keep the columns that the next chunk needs, as a view of the
/// whole chunk.
mod convolutions {
    use candle_core::Tensor;
    use moshi::streaming::{StreamMask, StreamTensor, StreamingModule};

    fn columns(chunk: StreamTensor) -> candle_core::Result<Tensor> {
        Ok(chunk.as_option().expect("whole frames").clone())
    }

    crate::pair! {
        moshi::conv => crate::changed::moshi_conv;
        compared |device| {
            let (padding, weights) = (subject::PadMode::Constant, crate::weights(device));
            let mut down = subject::StreamableConv1d::new(
                64, 64, 3, 1, 1, 1, true, true, None, padding, weights.pp("down"),
            )?;
            let mut up = subject::StreamableConvTranspose1d::new(
                64, 64, 8, 4, 1, true, true, None, weights.pp("up"),
            )?;
            let chunk = StreamTensor::from_tensor(crate::input((1, 64, 1920), device)?);
            let mask = StreamMask::empty();
            down.step(&chunk, &mask)?;
            up.step(&chunk, &mask)?;
            crate::compare(|| columns(down.step(&chunk, &mask)?))?;
            crate::compare(|| columns(up.step(&chunk, &mask)?))?;
            Ok((down, up))
        }
    }
}

/// Each codebook keeps the sums from which its vectors were computed, for a function that is not
/// called.
mod codebooks {
    crate::pair! {
        moshi::quantization => crate::changed::moshi_quantization, device = "cuda";
        compared |device| {
            let (input, output) = (Some(512), Some(512));
            let (books, vectors) = (crate::size(32, 2), crate::size(2048, 64));
            let weights = crate::weights(device);
            let codebooks = subject::SplitResidualVectorQuantizer::new(
                256, input, output, books, vectors, weights,
            )?;
            crate::compare(|| {
                codebooks.decode(&codebooks.encode(&crate::input((1, 512, 3), device)?)?)
            })?;
            Ok(codebooks)
        }
    }
}

/// The attention keeps its scores after each step: products, scaled, masked and normalized.
mod scores {
    use moshi::mimi::Config;
    use moshi::nn::MaybeQuantizedVarBuilder;
    use moshi::streaming::StreamMask;

    crate::pair! {
        moshi::batched_transformer => crate::changed::moshi_batched_transformer;
        compared |device| {
            let config = moshi::transformer::Config {
                d_model: 64,
                num_layers: 1,
                dim_feedforward: 64,
                context: 256,
                ..Config::v0_1(None).transformer
            };
            let weights = MaybeQuantizedVarBuilder::Real(crate::weights(device));
            let mut model = subject::StreamingTransformer::new(1, &config, weights)?;
            let mask = StreamMask::new(vec![true], device)?;
            let states = model.forward(&crate::input((1, 128, 64), device)?, &mask)?;
            crate::compare(|| Ok(states))?;
            Ok(model)
        }
    }
}
