//! Peaks while a model reads a prompt.

/// The logits of all positions, of which a generation needs the last.
mod mamba2 {
    use candle_core::DType;

    crate::pair! {
        candle_transformers::models::mamba2 => crate::changed::mamba2;
        compared |device| {
            let config = crate::config::<subject::Config>(r#"{
                "d_model": 32, "n_layer": 1, "vocab_size": 32000, "d_state": 16, "headdim": 16,
                "ngroups": 1, "pad_vocab_size_multiple": 16
            }"#)?;
            let model = subject::Model::new(&config, crate::weights(device).pp("backbone"))?;
            let mut state = subject::State::new(1, &config, DType::F32, device)?;
            let logits = model.forward_prefill(&crate::prompt(256, device)?, &mut state, 64)?;
            crate::compare(|| logits.narrow(1, logits.dim(1)? - 1, 1))?;
            Ok((model, state))
        }
    }
}

/// Each group of queries has a copy of its keys. A product of a group with its keys needs no copy.
mod repeat_kv {
    use candle_core::{DType, Result, Tensor};
    use candle_transformers::utils::repeat_kv;

    fn copied(queries: &Tensor, keys: &Tensor) -> Result<Tensor> {
        let groups = queries.dim(1)? / keys.dim(1)?;
        queries.matmul(&repeat_kv(keys.clone(), groups)?.t()?)
    }

    fn grouped(queries: &Tensor, keys: &Tensor) -> Result<Tensor> {
        let (batch, heads, length, width) = queries.dims4()?;
        let queries = queries.reshape((batch, keys.dim(1)?, (), width))?;
        queries.matmul(&keys.t()?)?.reshape((batch, heads, length, ()))
    }

    crate::pair! {
        self::copied => self::grouped;
        |device| {
            let keys = Tensor::zeros((1, 2, 4096, 64), DType::F32, device)?;
            let queries = Tensor::zeros((1, 16, 1, 64), DType::F32, device)?;
            Ok(subject(&queries, &keys)?)
        }
    }

    #[test]
    fn the_change_computes_the_same() -> Result<()> {
        let (queries, keys) = (crate::random((2, 8, 3, 16))?, crate::random((2, 2, 5, 16))?);
        crate::assert_same(&grouped(&queries, &keys)?, &copied(&queries, &keys)?)
    }
}

/// A convolution has the columns of all images at once.
mod conv2d {
    use candle_core::{DType, Result, Tensor};

    fn batched(images: &Tensor, kernel: &Tensor) -> Result<Tensor> {
        images.conv2d(kernel, 1, 1, 1, 1)
    }

    fn one_by_one(images: &Tensor, kernel: &Tensor) -> Result<Tensor> {
        let images = images.chunk(images.dim(0)?, 0)?;
        let convolved = images.iter().map(|image| image.conv2d(kernel, 1, 1, 1, 1));
        Tensor::cat(&convolved.collect::<Result<Vec<_>>>()?, 0)
    }

    crate::pair! {
        self::batched => self::one_by_one, device = "cuda";
        |device| {
            let images = Tensor::zeros((8, 16, 32, 32), DType::F32, device)?;
            let kernel = Tensor::zeros((16, 16, 3, 3), DType::F32, device)?;
            Ok(subject(&images, &kernel)?)
        }
    }

    #[test]
    fn the_change_computes_the_same() -> Result<()> {
        let (images, kernel) = (crate::random((2, 3, 8, 8))?, crate::random((4, 3, 3, 3))?);
        crate::assert_same(&one_by_one(&images, &kernel)?, &batched(&images, &kernel)?)
    }
}
