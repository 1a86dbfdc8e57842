//! Of `functional/cublaslt.rs`: linear layers through cudarc's `CudaBlasLT`, as projects write them.

use candle_core::cuda_backend::cudarc::cublaslt::sys::{
    cublasComputeType_t::CUBLAS_COMPUTE_32F, cudaDataType_t::CUDA_R_32F,
};
use candle_core::cuda_backend::cudarc::cublaslt::{Activation, CudaBlasLT, Matmul, MatmulConfig};
use candle_core::cuda_backend::cudarc::cublaslt::{result, sys};
use candle_core::cuda_backend::cudarc::driver::{CudaSlice, DeviceRepr};
use candle_core::cuda_backend::{CudaDType, CudaStorageSlice};
use candle_core::{
    CpuStorage, CudaDevice, CudaStorage, CustomOp3, DType, Device, Error, Layout, Result, Shape,
    Tensor,
};
use memcheck_runtime::{Trial, mem_test};

fn blas(device: &Device) -> anyhow::Result<CudaBlasLT> {
    Ok(CudaBlasLT::new(device.as_cuda_device()?.cuda_stream())?) // line: created
}

/// `activation(x weights' + bias)`.
struct Linear<'a> {
    blas: &'a CudaBlasLT,
    activation: Option<Activation>,
}

impl Linear<'_> {
    fn product<T: CudaDType + DeviceRepr>(
        &self,
        device: &CudaDevice,
        [n, m, k]: [usize; 3],
        [weights, x, bias]: [&CudaSlice<T>; 3],
    ) -> Result<CudaStorage>
    where
        CudaBlasLT: Matmul<T>,
    {
        let config = MatmulConfig {
            transa: true,
            transb: false,
            transc: false,
            m: m as u64,
            n: n as u64,
            k: k as u64,
            alpha: 1.0,
            lda: k as i64,
            ldb: k as i64,
            beta: 0.0,
            ldc: m as i64,
            stride_a: None,
            stride_b: None,
            stride_c: None,
            stride_bias: None,
            batch_size: None,
        };
        // SAFETY: the product writes all elements.
        let mut output = unsafe { device.alloc::<T>(n * m)? };
        let act = self.activation.as_ref();
        // SAFETY: the slices have the sizes of the configuration.
        unsafe { self.blas.matmul(config, weights, x, &mut output, Some(bias), act) }
            .map_err(Error::wrap)?;
        Ok(CudaStorage::wrap_cuda_slice(output, device.clone()))
    }
}

impl CustomOp3 for Linear<'_> {
    fn name(&self) -> &'static str {
        "linear"
    }

    fn cpu_fwd(
        &self,
        _: &CpuStorage,
        _: &Layout,
        _: &CpuStorage,
        _: &Layout,
        _: &CpuStorage,
        _: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        candle_core::bail!("only on a GPU")
    }

    fn cuda_fwd(
        &self,
        x: &CudaStorage,
        x_layout: &Layout,
        weights: &CudaStorage,
        weights_layout: &Layout,
        bias: &CudaStorage,
        _: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        use CudaStorageSlice as Slice;
        let ((n, k), m) = (x_layout.shape().dims2()?, weights_layout.shape().dims2()?.0);
        let (device, sizes) = (&x.device, [n, m, k]);
        let output = match (&weights.slice, &x.slice, &bias.slice) {
            (Slice::F32(a), Slice::F32(b), Slice::F32(bias)) => {
                self.product(device, sizes, [a, b, bias])
            }
            (Slice::F16(a), Slice::F16(b), Slice::F16(bias)) => {
                self.product(device, sizes, [a, b, bias])
            }
            (Slice::BF16(a), Slice::BF16(b), Slice::BF16(bias)) => {
                self.product(device, sizes, [a, b, bias])
            }
            _ => candle_core::bail!("another type"),
        }?;
        Ok((output, Shape::from((n, m))))
    }
}

/// Numbers whose products are exact in f32.
fn numbers(shape: (usize, usize), device: &Device) -> Result<Tensor> {
    let count = shape.0 * shape.1;
    let all: Vec<f32> = (0..count).map(|index| (index * 7 % 13) as f32 * 1.25 - 6.0).collect();
    Tensor::from_vec(all, shape, device)
}

/// The CPU computes the same, in f32 and rounded once.
#[mem_test(baseline = false, device = "cuda", max_growth = "0 B")]
fn values(trial: &mut Trial) -> anyhow::Result<()> {
    let device = trial.device().clone();
    let blas = blas(&device)?;
    let on = |device: &Device| -> Result<[Tensor; 3]> {
        let bias = numbers((1, 3), device)?.squeeze(0)?;
        Ok([numbers((5, 8), device)?, numbers((3, 8), device)?, bias])
    };
    let [x, weights, bias] = on(&Device::Cpu)?;
    let plain = x.matmul(&weights.t()?)?.broadcast_add(&bias)?;
    let inputs = on(&device)?;
    trial.iterate(|_| {
        for dtype in [DType::F32, DType::F16, DType::BF16] {
            let [x, weights, bias] = [0, 1, 2].map(|it| inputs[it].to_dtype(dtype));
            let (x, weights, bias) = (x?, weights?, bias?);
            let run = |activation| -> Result<Vec<Vec<f32>>> {
                let op = Linear { blas: &blas, activation };
                x.apply_op3_no_bwd(&weights, &bias, &op)?.to_dtype(DType::F32)?.to_vec2()
            };
            let rounded = |exact: &Tensor| -> Result<Vec<Vec<f32>>> {
                exact.to_dtype(dtype)?.to_dtype(DType::F32)?.to_vec2()
            };
            anyhow::ensure!(run(None)? == rounded(&plain)?, "{dtype:?}");
            anyhow::ensure!(run(Some(Activation::Relu))? == rounded(&plain.relu()?)?, "{dtype:?}");
            let (got, expected) = (run(Some(Activation::Gelu))?, rounded(&plain.gelu()?)?);
            for (got, expected) in got.iter().flatten().zip(expected.iter().flatten()) {
                // The steps of GELU round too.
                anyhow::ensure!((got - expected).abs() <= 0.008 * expected.abs() + 1e-6);
            }
        }
        Ok(())
    })
}

/// The largest block is the workspace, whose size cudarc chooses by the card.
#[mem_test(baseline = false, device = "cuda", max_growth = "0 B")]
fn workspace(trial: &mut Trial) -> anyhow::Result<()> {
    let device = trial.device().clone();
    let op = Linear { blas: &blas(&device)?, activation: None };
    let x = Tensor::zeros((64, 4096), DType::F32, &device)?;
    let bias = Tensor::zeros(64, DType::F32, &device)?;
    trial.iterate(|_| {
        x.apply_op3_no_bwd(&x, &bias, &op)?;
        anyhow::Ok(())
    })
}

#[mem_test(baseline = false, device = "cuda", max_growth = "0 B", max_retained = "1 GiB")]
fn keeps_its_workspaces(trial: &mut Trial) -> anyhow::Result<()> {
    let device = trial.device().clone();
    trial.iterate(|_| {
        std::mem::forget(blas(&device)?);
        anyhow::Ok(())
    })
}

/// The size of the workspace is that of the heuristic, which is an estimate.
#[mem_test(baseline = false, device = "cuda", max_growth = "0 B")]
fn workspace_of_the_heuristic(trial: &mut Trial) -> anyhow::Result<()> {
    let cuda = trial.device().as_cuda_device()?.clone();
    let stream = cuda.cuda_stream();
    let (side, inner) = (64_usize, 8192_usize);
    let inputs = cuda.alloc_zeros::<f32>(side * inner)?;
    let mut output = cuda.alloc_zeros::<f32>(side * side)?;
    trial.iterate(|_| {
        use candle_core::cuda_backend::cudarc::driver::{DevicePtr, DevicePtrMut};
        let handle = result::create_handle()?;
        let (rows, columns) = (inner as u64, side as u64);
        let layout = result::create_matrix_layout(CUDA_R_32F, rows, columns, rows as i64)?;
        let of_output = result::create_matrix_layout(CUDA_R_32F, columns, columns, columns as i64)?;
        let operation = result::create_matmul_desc(CUBLAS_COMPUTE_32F, CUDA_R_32F)?;
        let preference = result::create_matmul_pref()?;
        let (transposed, most) = (1_i32, 1_usize << 30);
        let one = 1_f32;
        // SAFETY: the descriptors live until they are destroyed, and the pointers are those of locals
        // with the types of the attributes.
        unsafe {
            use sys::cublasLtMatmulDescAttributes_t::CUBLASLT_MATMUL_DESC_TRANSA;
            use sys::cublasLtMatmulPreferenceAttributes_t::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
            let value = (&raw const transposed).cast();
            result::set_matmul_desc_attribute(operation, CUBLASLT_MATMUL_DESC_TRANSA, value, 4)?;
            let attribute = CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
            let value = (&raw const most).cast();
            result::set_matmul_pref_attribute(preference, attribute, value, 8)?;
            let heuristic = result::get_matmul_algo_heuristic(
                handle, operation, layout, layout, of_output, of_output, preference,
            )?;
            let bytes = heuristic.workspaceSize;
            anyhow::ensure!(bytes > 0, "the product needs no workspace");
            let mut space = stream.alloc::<u8>(bytes)?;
            let (a, _a) = inputs.device_ptr(&stream);
            let (d, _d) = output.device_ptr_mut(&stream);
            let (w, _w) = space.device_ptr_mut(&stream);
            let (a, d, w) = (a as *const _, d as *mut _, w as *mut _);
            let scale = (&raw const one).cast();
            let (algorithm, queue) = (&raw const heuristic.algo, stream.cu_stream().cast());
            result::matmul(
                handle, operation, scale, scale, a, layout, a, layout, d, of_output, d, of_output,
                algorithm, w, bytes, queue,
            )?;
            result::destroy_matmul_pref(preference)?;
            result::destroy_matmul_desc(operation)?;
            result::destroy_matrix_layout(of_output)?;
            result::destroy_matrix_layout(layout)?;
            result::destroy_handle(handle)?;
        }
        anyhow::Ok(())
    })
}

/// A thread without a context, such as one of a pool that loads layers, can create a handle.
#[mem_test(baseline = false, device = "cuda", iterations = 1, warmup = 0)]
fn another_thread(device: &Device) -> anyhow::Result<()> {
    let stream = device.as_cuda_device()?.cuda_stream();
    let created = std::thread::spawn(move || CudaBlasLT::new(stream).map(drop)).join();
    Ok(created.expect("the thread does not panic")?)
}
