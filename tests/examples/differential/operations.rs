//! The operations that are compared. Each computes its result on a device from a case alone.

use candle_core::quantized::{GgmlDType, QMatMul, QTensor};
use candle_core::{D, DType, Device, Module, Result, Tensor};

use crate::cases::{Case, Numbers, viewed};

/// An operation: its name, and the function that computes it.
pub(crate) type Operation = (&'static str, fn(&Case, &Device) -> Result<Tensor>);

macro_rules! of_one {
    ($($name:literal: |$x:ident| $result:expr,)*) => {
        [$(($name, |case: &Case, device: &Device| {
            let $x = one(case, device)?;
            $result
        })),*]
    };
}

macro_rules! of_two {
    ($($name:literal: $function:path,)*) => {
        [$(($name, |case: &Case, device: &Device| {
            let (x, y) = two(case, device)?;
            $function(&x, &y)
        })),*]
    };
}

/// The first input.
fn one(case: &Case, device: &Device) -> Result<Tensor> {
    viewed(&mut Numbers::new(case.seed), &case.dims, case.dtype, case.views[0], device)
}

/// Two inputs that can be broadcast to the same shape. The first one is larger than the second one
/// if the type has no sign, because the CPU does not wrap.
fn two(case: &Case, device: &Device) -> Result<(Tensor, Tensor)> {
    let x = one(case, device)?;
    let x = if case.dtype.is_float() { x } else { x.affine(1.0, 10.0)? };
    let mut dims = case.dims.clone();
    match case.choices[0] % 3 {
        0 => {}
        1 => {
            dims.remove(0);
        }
        _ => {
            let dim = case.choices[1] % dims.len();
            dims[dim] = 1;
        }
    }
    let mut numbers = Numbers::new(case.seed ^ 1);
    let y = match dims.is_empty() {
        true => numbers.tensor(&[], case.dtype)?.to_device(device)?,
        false => viewed(&mut numbers, &dims, case.dtype, case.views[1], device)?,
    };
    Ok((x, y))
}

fn dim(case: &Case) -> usize {
    case.choices[0] % case.dims.len()
}

fn id_type(case: &Case) -> DType {
    [DType::U8, DType::U32, DType::I64][case.choices[1] % 3]
}

/// Dims of four axes from the case's dims.
fn four(case: &Case) -> [usize; 4] {
    let at = |axis: usize| case.dims.get(axis).copied().unwrap_or(3).min(9);
    [at(0).clamp(1, 3), at(1).clamp(1, 4), at(2) + 3, at(3) + 3]
}

fn image(case: &Case, device: &Device) -> Result<Tensor> {
    viewed(&mut Numbers::new(case.seed), &four(case), case.dtype, case.views[0], device)
}

fn kernel(case: &Case, dims: &[usize], device: &Device) -> Result<Tensor> {
    Numbers::new(case.seed ^ 2).tensor(dims, case.dtype)?.to_device(device)
}

/// An input for an operation along the last dim, and vectors of that length.
fn rows(case: &Case, device: &Device) -> Result<(Tensor, Tensor, Tensor)> {
    let x = one(case, device)?.contiguous()?;
    let last = [x.dim(D::Minus1)?];
    let mut numbers = Numbers::new(case.seed ^ 3);
    let scale = numbers.tensor(&last, case.dtype)?.to_device(device)?;
    let shift = numbers.tensor(&last, case.dtype)?.to_device(device)?;
    Ok((x, scale, shift))
}

fn rope(
    case: &Case,
    device: &Device,
    of: fn(&Tensor, &Tensor, &Tensor) -> Result<Tensor>,
    thd: bool,
) -> Result<Tensor> {
    let [b, h, t, d] = four(case);
    let d = 2 * d;
    let dims = if thd { [b, t, h, d] } else { [b, h, t, d] };
    let mut numbers = Numbers::new(case.seed);
    let x = numbers.tensor(&dims, case.dtype)?.to_device(device)?;
    let cos = numbers.tensor(&[t, d / 2], case.dtype)?.to_device(device)?;
    let sin = numbers.tensor(&[t, d / 2], case.dtype)?.to_device(device)?;
    of(&x, &cos, &sin)
}

fn indexed(
    case: &Case,
    device: &Device,
    of: fn(&Tensor, &Tensor, &Tensor, usize) -> Result<Tensor>,
) -> Result<Tensor> {
    // Ids and source have the same dims, so that each element has its id.
    let dim = dim(case);
    let x = one(case, device)?.contiguous()?;
    let mut numbers = Numbers::new(case.seed ^ 4);
    let ids = numbers.ids(&case.dims, case.dims[dim], id_type(case))?.to_device(device)?;
    let source = numbers.tensor(&case.dims, case.dtype)?.to_device(device)?;
    of(&x, &ids, &source, dim)
}

fn quantized(case: &Case, device: &Device) -> Result<Tensor> {
    const FORMATS: [GgmlDType; 10] = [
        GgmlDType::Q4_0,
        GgmlDType::Q4_1,
        GgmlDType::Q5_0,
        GgmlDType::Q5_1,
        GgmlDType::Q8_0,
        GgmlDType::Q2K,
        GgmlDType::Q3K,
        GgmlDType::Q4K,
        GgmlDType::Q5K,
        GgmlDType::Q6K,
    ];
    let format = FORMATS[case.choices[0] % FORMATS.len()];
    let (rows, columns) = (1 + case.choices[1] % 5, 256 * (1 + case.choices[2] % 2));
    let batch = 1 + case.choices[3] % 12;
    let mut numbers = Numbers::new(case.seed);
    let weights = numbers.tensor(&[rows, columns], DType::F32)?;
    let weights = QTensor::quantize_onto(&weights, format, device)?;
    let x = numbers.tensor(&[batch, columns], DType::F32)?.to_device(device)?;
    QMatMul::from_qtensor(weights)?.forward(&x)
}

fn dequantized(case: &Case, device: &Device) -> Result<Tensor> {
    let weights = Numbers::new(case.seed).tensor(&[2, 256], DType::F32)?;
    let format =
        [GgmlDType::Q4_0, GgmlDType::Q5_1, GgmlDType::Q8_0, GgmlDType::Q3K, GgmlDType::Q6K];
    let format = format[case.choices[0] % format.len()];
    QTensor::quantize_onto(&weights, format, device)?.dequantize(device)
}

const UNARY: [Operation; 23] = of_one! {
    "abs": |x| x.abs(),
    "affine": |x| x.affine(3.0, 1.0),
    "ceil": |x| x.ceil(),
    "clamp": |x| x.clamp(-1.0, 1.5),
    "cos": |x| x.cos(),
    "elu": |x| x.elu(0.5),
    "erf": |x| x.erf(),
    "exp": |x| x.exp(),
    "floor": |x| x.floor(),
    "gelu": |x| x.gelu(),
    "gelu_erf": |x| x.gelu_erf(),
    "log": |x| x.abs()?.affine(1.0, 0.5)?.log(),
    "neg": |x| x.neg(),
    "powf": |x| x.abs()?.powf(1.5),
    "recip": |x| x.abs()?.affine(1.0, 1.0)?.recip(),
    "relu": |x| x.relu(),
    "round": |x| x.round(),
    "sign": |x| x.sign(),
    "silu": |x| x.silu(),
    "sin": |x| x.sin(),
    "sqr": |x| x.sqr(),
    "sqrt": |x| x.abs()?.sqrt(),
    "tanh": |x| x.tanh(),
};

const BINARY: [Operation; 12] = of_two! {
    "add": Tensor::broadcast_add,
    "sub": Tensor::broadcast_sub,
    "mul": Tensor::broadcast_mul,
    "div": divided,
    "maximum": Tensor::broadcast_maximum,
    "minimum": Tensor::broadcast_minimum,
    "eq": Tensor::broadcast_eq,
    "ne": Tensor::broadcast_ne,
    "lt": Tensor::broadcast_lt,
    "le": Tensor::broadcast_le,
    "gt": Tensor::broadcast_gt,
    "ge": Tensor::broadcast_ge,
};

/// The divisor is at least 1.
fn divided(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let y = if y.dtype().is_float() { y.abs()?.affine(1.0, 1.0)? } else { y.clone() };
    x.broadcast_div(&y)
}

const COPIES: [Operation; 10] = [
    ("contiguous", |case, device| one(case, device)?.contiguous()),
    ("copy", |case, device| one(case, device)?.copy()),
    ("cast", |case, device| {
        let types =
            [DType::U8, DType::U32, DType::I64, DType::F16, DType::BF16, DType::F32, DType::F64];
        let x = one(case, device)?;
        // A device does not define the conversion of a negative number to an unsigned integer.
        let x = if case.dtype.is_float() { x.abs()? } else { x };
        x.to_dtype(types[case.choices[0] % types.len()])
    }),
    ("cat", |case, device| {
        let (x, dim) = (one(case, device)?, dim(case));
        let part = x.narrow(dim, 0, case.dims[dim] / 2)?;
        Tensor::cat(&[&x, &part, &x], dim)
    }),
    ("slice_set", |case, device| {
        let (x, dim) = (one(case, device)?.copy()?, dim(case));
        let length = case.dims[dim] / 2;
        x.slice_set(
            &x.narrow(dim, 0, length)?.copy()?.contiguous()?,
            dim,
            case.dims[dim] - length,
        )?;
        Ok(x)
    }),
    ("const_set", |case, device| {
        let x = one(case, device)?.copy()?;
        x.zero_set()?;
        let part = x.narrow(dim(case), 0, case.dims[dim(case)] / 2)?;
        part.one_set()?;
        Ok(x)
    }),
    ("where", |case, device| {
        let (x, y) = (
            one(case, device)?,
            viewed(
                &mut Numbers::new(case.seed ^ 5),
                &case.dims,
                case.dtype,
                case.views[1],
                device,
            )?,
        );
        let condition = Numbers::new(case.seed ^ 6).ids(&case.dims, 2, id_type(case))?;
        condition.to_device(device)?.where_cond(&x, &y)
    }),
    ("flip", |case, device| one(case, device)?.flip(&[dim(case)])),
    ("full", |case, device| {
        Tensor::full(case.seed as u32 % 7, &case.dims[..], device)?.to_dtype(case.dtype)
    }),
    ("reshape", |case, device| one(case, device)?.flatten_all()),
];

const REDUCTIONS: [Operation; 9] = [
    ("sum", |case, device| one(case, device)?.sum_keepdim(dim(case))),
    ("sum_two", |case, device| match case.dims.len() {
        1 => one(case, device)?.sum_all(),
        rank => one(case, device)?.sum((case.choices[0] % (rank - 1), rank - 1)),
    }),
    ("mean", |case, device| one(case, device)?.mean(dim(case))),
    ("max", |case, device| one(case, device)?.max(dim(case))),
    ("min", |case, device| one(case, device)?.min(dim(case))),
    ("argmax", |case, device| distinct(case, device)?.argmax(D::Minus1)),
    ("argmin", |case, device| distinct(case, device)?.argmin(D::Minus1)),
    ("arg_sort", |case, device| {
        distinct(case, device)?.arg_sort_last_dim(case.choices[0].is_multiple_of(2))
    }),
    ("cumsum", |case, device| {
        // candle multiplies with a square matrix.
        let (x, dim) = (one(case, device)?, dim(case));
        x.narrow(dim, 0, case.dims[dim].min(200))?.cumsum(dim)
    }),
];

/// Rows without a number that occurs twice. Types with few numbers have short rows.
fn distinct(case: &Case, device: &Device) -> Result<Tensor> {
    let mut dims = case.dims.clone();
    if let Some(last) = dims.last_mut() {
        *last = (*last).clamp(1, 200);
    }
    Numbers::new(case.seed).distinct(&dims, case.dtype)?.to_device(device)
}

const INDEXING: [Operation; 6] = [
    ("index_select", |case, device| {
        let (x, dim) = (one(case, device)?.contiguous()?, dim(case));
        let ids = Numbers::new(case.seed ^ 7).ids(
            &[1 + case.choices[2] % 5],
            case.dims[dim],
            id_type(case),
        )?;
        x.index_select(&ids.to_device(device)?, dim)
    }),
    ("gather", |case, device| indexed(case, device, |x, ids, _, dim| x.gather(ids, dim))),
    ("scatter", |case, device| {
        indexed(case, device, |x, ids, source, dim| x.scatter(ids, source, dim))
    }),
    ("scatter_add", |case, device| {
        indexed(case, device, |x, ids, source, dim| x.scatter_add(ids, source, dim))
    }),
    ("index_add", |case, device| {
        let (x, dim) = (one(case, device)?.contiguous()?, dim(case));
        let mut dims = case.dims.clone();
        dims[dim] = 1 + case.choices[2] % 5;
        let mut numbers = Numbers::new(case.seed ^ 8);
        let ids =
            numbers.ids(&dims[dim..=dim], case.dims[dim], id_type(case))?.to_device(device)?;
        x.index_add(&ids, &numbers.tensor(&dims, case.dtype)?.to_device(device)?, dim)
    }),
    ("embedding", |case, device| {
        let mut numbers = Numbers::new(case.seed);
        let table = numbers.tensor(&[7, 1 + case.choices[0] % 9], case.dtype)?.to_device(device)?;
        table.embedding(&numbers.ids(&[1 + case.choices[1] % 9], 7, DType::U32)?.to_device(device)?)
    }),
];

const PRODUCTS: [Operation; 4] = [
    ("matmul", |case, device| {
        let [b, h, m, k] = four(case);
        let n = 1 + case.choices[0] % 7;
        let mut numbers = Numbers::new(case.seed);
        let x = viewed(&mut numbers, &[b, h, m, k], case.dtype, case.views[0], device)?;
        let y = viewed(&mut numbers, &[b, h, k, n], case.dtype, case.views[1], device)?;
        x.contiguous()?.matmul(&y.contiguous()?)
    }),
    ("matmul_transposed", |case, device| {
        let [_, _, m, k] = four(case);
        let n = 1 + case.choices[0] % 40;
        let mut numbers = Numbers::new(case.seed);
        let x = numbers.tensor(&[k, m], case.dtype)?.to_device(device)?.t()?;
        let y = numbers.tensor(&[n, k], case.dtype)?.to_device(device)?.t()?;
        x.matmul(&y)
    }),
    ("quantized_matmul", quantized),
    ("dequantize", dequantized),
];

const LAYERS: [Operation; 9] = [
    ("softmax", |case, device| candle_nn::ops::softmax_last_dim(&rows(case, device)?.0)),
    ("softmax_composed", |case, device| candle_nn::ops::softmax(&one(case, device)?, dim(case))),
    ("rms_norm", |case, device| {
        let (x, scale, _) = rows(case, device)?;
        candle_nn::ops::rms_norm(&x, &scale, 1e-3)
    }),
    ("layer_norm", |case, device| {
        let (x, scale, shift) = rows(case, device)?;
        candle_nn::ops::layer_norm(&x, &scale, &shift, 1e-3)
    }),
    ("sigmoid", |case, device| candle_nn::ops::sigmoid(&one(case, device)?)),
    ("swiglu", |case, device| candle_nn::ops::silu(&one(case, device)?)),
    ("rope", |case, device| rope(case, device, candle_nn::rotary_emb::rope, false)),
    ("rope_i", |case, device| rope(case, device, candle_nn::rotary_emb::rope_i, false)),
    ("rope_thd", |case, device| rope(case, device, candle_nn::rotary_emb::rope_thd, true)),
];

const IMAGES: [Operation; 9] = [
    ("conv1d", |case, device| {
        let [b, c, _, l] = four(case);
        let x =
            viewed(&mut Numbers::new(case.seed), &[b, c, l], case.dtype, case.views[0], device)?;
        let [size, padding, stride, dilation] = convolution(case);
        x.conv1d(&kernel(case, &[3, c, size], device)?, padding, stride, dilation, 1)
    }),
    ("conv2d", |case, device| {
        let c = four(case)[1];
        let [size, padding, stride, dilation] = convolution(case);
        let kernel = kernel(case, &[2, c, size, 1 + case.choices[1] % 3], device)?;
        image(case, device)?.conv2d(&kernel, padding, stride, dilation, 1)
    }),
    ("conv_transpose1d", |case, device| {
        // One image: with more, the CPU multiplies the transposed input as if it was not transposed
        // (`a_skip == m * k` in candle's cpu_backend).
        let [_, c, _, l] = four(case);
        let x =
            viewed(&mut Numbers::new(case.seed), &[1, c, l], case.dtype, case.views[0], device)?;
        let [size, padding, stride, dilation] = convolution(case);
        let kernel = kernel(case, &[c, 2, size + 2], device)?;
        x.conv_transpose1d(&kernel, padding, 0, stride, dilation, 1)
    }),
    ("conv_transpose2d", |case, device| {
        let c = four(case)[1];
        let [size, padding, stride, dilation] = convolution(case);
        let kernel = kernel(case, &[c, 2, size + 1, size + 2], device)?;
        image(case, device)?.conv_transpose2d(&kernel, padding, 0, stride, dilation)
    }),
    ("avg_pool2d", |case, device| {
        image(case, device)?.avg_pool2d((1 + case.choices[0] % 3, 1 + case.choices[1] % 3))
    }),
    ("max_pool2d", |case, device| {
        let stride = (1 + case.choices[2] % 3, 1 + case.choices[3] % 3);
        let size = (1 + case.choices[0] % 3, 1 + case.choices[1] % 3);
        image(case, device)?.max_pool2d_with_stride(size, stride)
    }),
    ("upsample_nearest2d", |case, device| {
        image(case, device)?.upsample_nearest2d(1 + case.choices[0] % 20, 1 + case.choices[1] % 20)
    }),
    ("upsample_bilinear2d", |case, device| {
        let aligned = case.choices[2].is_multiple_of(2);
        let (height, width) = (1 + case.choices[0] % 20, 1 + case.choices[1] % 20);
        // If the size stays the same, the CPU returns the whole storage of a view.
        let [_, _, own_height, own_width] = four(case);
        let height = height + usize::from((height, width) == (own_height, own_width));
        image(case, device)?.upsample_bilinear2d(height, width, aligned)
    }),
    ("upsample_nearest1d", |case, device| {
        image(case, device)?.flatten(0, 1)?.upsample_nearest1d(1 + case.choices[0] % 20)
    }),
];

/// The size of a kernel, the padding, the stride and the dilation.
fn convolution(case: &Case) -> [usize; 4] {
    let at = |number: usize, count: usize| case.choices[number] % count;
    [1 + at(0, 3), at(1, 2), 1 + at(2, 3), 1 + at(3, 2)]
}

/// All operations.
pub(crate) static OPERATIONS: std::sync::LazyLock<Vec<Operation>> =
    std::sync::LazyLock::new(|| {
        let groups: [&[Operation]; 8] =
            [&UNARY, &BINARY, &COPIES, &REDUCTIONS, &INDEXING, &PRODUCTS, &LAYERS, &IMAGES];
        groups.concat()
    });
