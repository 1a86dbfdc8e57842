//! cudarc, and a crate on top of candle.

use candle_core::{DType, Result, Tensor};

/// A block that is dropped on a thread without a context is not freed.
mod dropped_slice {
    use super::{DType, Result, Tensor};

    fn dropped(tensor: Tensor) -> Result<()> {
        on_a_thread(move || {
            drop(tensor);
            Ok(())
        })
    }

    /// Any call binds the context, as a changed `drop` does.
    fn bound(tensor: Tensor) -> Result<()> {
        on_a_thread(move || tensor.device().synchronize())
    }

    fn on_a_thread(program: impl FnOnce() -> Result<()> + Send + 'static) -> Result<()> {
        std::thread::spawn(program).join().expect("the thread does not panic")
    }

    crate::pair! {
        self::dropped => self::bound, device = "cuda", max_retained = "1 GiB";
        |device| {
            subject(Tensor::zeros((256, 1024), DType::F32, device)?)?;
            // The next call returns the error of the free.
            let _ = device.synchronize();
            Ok(())
        }
    }
}

/// A factor that all heads share is copied for each head.
mod einsum {
    use super::{DType, Result, Tensor};

    fn einsum(queries: &Tensor, keys: &Tensor) -> Result<Tensor> {
        candle_einops::einsum!("batch head q d, batch head k d -> batch head q k", queries, keys)
    }

    /// The heads are rows of one product.
    fn folded(queries: &Tensor, keys: &Tensor) -> Result<Tensor> {
        let (batch, heads, length, width) = queries.dims4()?;
        let rows = queries.reshape((batch, 1, heads * length, width))?;
        rows.matmul(&keys.t()?)?.reshape((batch, heads, length, ()))
    }

    crate::pair! {
        self::einsum => self::folded;
        |device| {
            let keys = Tensor::zeros((1, 1, 4096, 64), DType::F32, device)?;
            let queries = Tensor::zeros((1, 16, 1, 64), DType::F32, device)?;
            Ok(subject(&queries, &keys)?)
        }
    }

    #[test]
    fn the_change_computes_the_same() -> Result<()> {
        let (queries, keys) = (crate::random((2, 8, 3, 16))?, crate::random((2, 1, 5, 16))?);
        crate::assert_same(&folded(&queries, &keys)?, &einsum(&queries, &keys)?)
    }
}
