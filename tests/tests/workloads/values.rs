//! The values that operations compute on the device are those of candle's CPU backend, within a
//! tolerance for each type.

use candle_core::{DType, Device, Result, Tensor};
use memcheck_runtime::{Trial, mem_test};

/// Numbers from -2 to 2 that every type can hold.
fn numbers(shape: &[usize], dtype: DType) -> Result<Tensor> {
    let count: usize = shape.iter().product();
    let numbers: Vec<f32> = (0..count).map(|at| ((at * 37) % 33) as f32 / 8.0 - 2.0).collect();
    Tensor::from_vec(numbers, shape, &Device::Cpu)?.to_dtype(dtype)
}

/// The tolerated error of a result, relative to numbers above 1.
fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => 1e-12,
        DType::F32 => 2e-6,
        DType::F16 => 4e-3,
        DType::BF16 => 3e-2,
        _ => 0.0,
    }
}

fn flat(tensor: &Tensor) -> Result<Vec<f64>> {
    // The conversion is made on the CPU, so that it is not part of the comparison.
    tensor.to_device(&Device::Cpu)?.to_dtype(DType::F64)?.flatten_all()?.to_vec1()
}

/// Asserts that `compute` gives the same on both devices; it gets the inputs on each.
#[track_caller]
fn assert_same(
    name: &str,
    device: &Device,
    inputs: &[&Tensor],
    compute: impl Fn(&[Tensor]) -> Result<Tensor>,
) {
    let of = |device: &Device| -> Result<(DType, Vec<f64>)> {
        let inputs: Vec<Tensor> =
            inputs.iter().map(|input| input.to_device(device)).collect::<Result<_>>()?;
        let result = compute(&inputs)?;
        Ok((result.dtype(), flat(&result)?))
    };
    let (there, here) = match (of(device), of(&Device::Cpu)) {
        (Ok(there), Ok(here)) => (there, here),
        (there, here) => panic!("{name}: the device gives {there:?}, and the CPU {here:?}"),
    };
    assert_eq!((there.0, there.1.len()), (here.0, here.1.len()), "{name}");
    for (at, (there, expected)) in there.1.iter().zip(&here.1).enumerate() {
        let error = (there - expected).abs() / expected.abs().max(1.0);
        let same = there == expected || (there.is_nan() && expected.is_nan());
        let tolerance = inputs.iter().map(|input| tolerance(input.dtype())).fold(0.0, f64::max);
        assert!(
            same || error <= tolerance,
            "{name}: element {at} is {there}, and {expected} on the CPU"
        );
    }
}

#[mem_test(
    device = "cuda",
    baseline = false,
    iterations = 1,
    warmup = 0,
    cases(dtype = [f32, f64, f16, bf16])
)]
fn of_single_elements(trial: &mut Trial) -> anyhow::Result<()> {
    let (device, dtype) = (trial.device().clone(), trial.case::<DType>("dtype")?);
    type Function = fn(&Tensor) -> Result<Tensor>;
    let functions: [(&str, Function); 22] = [
        ("abs", Tensor::abs),
        ("ceil", Tensor::ceil),
        ("cos", Tensor::cos),
        ("erf", Tensor::erf),
        ("exp", Tensor::exp),
        ("floor", Tensor::floor),
        ("gelu", Tensor::gelu),
        ("gelu_erf", Tensor::gelu_erf),
        ("log", Tensor::log),
        ("neg", Tensor::neg),
        ("recip", Tensor::recip),
        ("relu", Tensor::relu),
        ("round", Tensor::round),
        ("sign", Tensor::sign),
        ("silu", Tensor::silu),
        ("sin", Tensor::sin),
        ("sqr", Tensor::sqr),
        ("sqrt", Tensor::sqrt),
        ("tanh", Tensor::tanh),
        ("elu", |x| x.elu(0.5)),
        ("powf", |x| x.powf(2.0)),
        ("affine", |x| x.affine(0.5, -1.25)),
    ];
    let input = numbers(&[5, 7], dtype)?;
    for (name, function) in functions {
        assert_same(name, &device, &[&input], |it| function(&it[0]));
        assert_same(&format!("{name}, transposed"), &device, &[&input], |it| function(&it[0].t()?));
        let part = |it: &[Tensor]| function(&it[0].narrow(1, 2, 3)?);
        assert_same(&format!("{name} of a part"), &device, &[&input], part);
    }
    let sigmoid = |it: &[Tensor]| candle_nn::ops::sigmoid(&it[0]);
    assert_same("sigmoid", &device, &[&input], sigmoid);
    for to in [DType::U8, DType::U32, DType::F16, DType::BF16, DType::F32, DType::F64] {
        let positive = input.abs()?;
        let cast = |it: &[Tensor]| it[0].t()?.to_dtype(to);
        assert_same(&format!("{dtype:?} to {to:?}"), &device, &[&positive], cast);
    }
    Ok(())
}

#[mem_test(
    device = "cuda",
    baseline = false,
    iterations = 1,
    warmup = 0,
    cases(dtype = [f32, f64, f16, bf16, u8, u32, i64])
)]
fn of_pairs_copies_and_choices(trial: &mut Trial) -> anyhow::Result<()> {
    let (device, dtype) = (trial.device().clone(), trial.case::<DType>("dtype")?);
    let real = dtype.is_float();
    let numbers = numbers(&[4, 6], if real { dtype } else { DType::F32 })?;
    // An integer must not be zero, because the CPU refuses to divide by it.
    let input = if real { numbers } else { numbers.abs()?.affine(1.0, 1.0)?.to_dtype(dtype)? };
    let other = input.flip(&[0])?.contiguous()?.affine(1.0, 3.0)?;
    let row = other.narrow(0, 1, 1)?.contiguous()?;
    type Function = fn(&Tensor, &Tensor) -> Result<Tensor>;
    let functions: [(&str, Function); 12] = [
        ("add", Tensor::broadcast_add),
        ("sub", Tensor::broadcast_sub),
        ("mul", Tensor::broadcast_mul),
        ("div", Tensor::broadcast_div),
        ("maximum", Tensor::broadcast_maximum),
        ("minimum", Tensor::broadcast_minimum),
        ("eq", Tensor::broadcast_eq),
        ("ne", Tensor::broadcast_ne),
        ("lt", Tensor::broadcast_lt),
        ("le", Tensor::broadcast_le),
        ("gt", Tensor::broadcast_gt),
        ("ge", Tensor::broadcast_ge),
    ];
    for (name, function) in functions {
        // An unsigned difference must not wrap, because the CPU refuses that in this profile.
        let larger = other.maximum(&input)?;
        let pair = |it: &[Tensor]| function(&it[1], &it[0]);
        assert_same(name, &device, &[&input, &larger], pair);
        let turned = |it: &[Tensor]| function(&it[1].t()?, &it[0].t()?);
        assert_same(&format!("{name}, transposed"), &device, &[&input, &larger], turned);
        if real || !name.starts_with("sub") {
            let wide = |it: &[Tensor]| function(&it[0], &it[1]);
            let divisor = row.affine(1.0, 1.0)?;
            assert_same(&format!("{name} of a row"), &device, &[&input, &divisor], wide);
        }
    }
    let choose = |it: &[Tensor]| it[0].gt(&it[1])?.t()?.where_cond(&it[0].t()?, &it[1].t()?);
    assert_same("where", &device, &[&input, &other], choose);
    let joined = |it: &[Tensor]| Tensor::cat(&[it[0].narrow(1, 1, 2)?, it[1].narrow(1, 0, 3)?], 1);
    assert_same("cat", &device, &[&input, &other], joined);
    let set = |it: &[Tensor]| {
        let target = it[0].copy()?;
        target.slice_set(&it[1].narrow(0, 0, 2)?.contiguous()?, 0, 1)?;
        Ok(target)
    };
    assert_same("slice_set", &device, &[&input, &other], set);
    let ones = |it: &[Tensor]| Tensor::ones((3, 2), it[0].dtype(), it[0].device());
    assert_same("ones", &device, &[&input], ones);
    let permuted = |it: &[Tensor]| it[0].reshape((2, 2, 6))?.permute((2, 0, 1))?.contiguous();
    assert_same("permute", &device, &[&input], permuted);
    Ok(())
}

#[mem_test(
    device = "cuda",
    baseline = false,
    iterations = 1,
    warmup = 0,
    cases(dtype = [f32, f64, f16, bf16])
)]
fn of_products(trial: &mut Trial) -> anyhow::Result<()> {
    let (device, dtype) = (trial.device().clone(), trial.case::<DType>("dtype")?);
    let (a, b) = (numbers(&[2, 3, 5, 7], dtype)?, numbers(&[2, 3, 7, 4], dtype)?);
    let transposed = b.transpose(2, 3)?.contiguous()?;
    assert_same("a batch", &device, &[&a, &b], |it| it[0].matmul(&it[1]));
    let turn = |it: &[Tensor]| it[0].matmul(&it[1].transpose(2, 3)?);
    assert_same("a transposed batch", &device, &[&a, &transposed], turn);
    let first = |it: &[Tensor]| it[0].get(1)?.get(2)?.matmul(&it[1].get(0)?.get(1)?);
    assert_same("one of a batch", &device, &[&a, &b], first);
    let broadcast = |it: &[Tensor]| it[0].broadcast_matmul(&it[1].get(0)?.get(1)?);
    assert_same("one for a batch", &device, &[&a, &b], broadcast);
    Ok(())
}

#[mem_test(device = "cuda", baseline = false, iterations = 1, warmup = 0)]
fn random_numbers_have_a_seed_and_the_right_moments(trial: &mut Trial) -> anyhow::Result<()> {
    let device = trial.device().clone();
    device.set_seed(7)?;
    let first = flat(&Tensor::randn(1_f32, 2.0, 4001, &device)?)?;
    let second = flat(&Tensor::randn(1_f32, 2.0, 4001, &device)?)?;
    device.set_seed(7)?;
    assert_eq!(first, flat(&Tensor::randn(1_f32, 2.0, 4001, &device)?)?);
    assert_ne!(first, second);
    let mean = first.iter().sum::<f64>() / 4001.0;
    let variance = first.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 4001.0;
    assert!((mean - 1.0).abs() < 0.15 && (variance - 4.0).abs() < 0.5, "{mean}, {variance}");
    let uniform = flat(&Tensor::rand(3_f32, 5.0, 4000, &device)?)?;
    assert!(uniform.iter().all(|&x| (3.0..=5.0).contains(&x)));
    Ok(())
}
