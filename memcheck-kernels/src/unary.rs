//! Functions of one element.

use super::element::{Element, Real};
use super::f8::F8;
use super::work::{ARITHMETIC, ByType};
use super::{Kind, Known, Launch, with_real};

/// A function of one element. Each is computed in the steps of candle's kernel, of which each
/// rounds to the element type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Abs,
    Ceil,
    Cos,
    Erf,
    Exp,
    Floor,
    Gelu,
    GeluErf,
    Log,
    Neg,
    Normcdf,
    Recip,
    Relu,
    Round,
    Sigmoid,
    SigmoidInOwnType,
    Sign,
    Silu,
    SiluInOwnType,
    Sin,
    Sqr,
    Sqrt,
    Tanh,
}

/// A function of one element and a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WithParameter {
    Elu,
    Powf,
}

impl Op {
    /// The work of an element.
    pub(super) fn work(self, kind: Kind) -> u64 {
        let work = match self {
            Self::Abs | Self::Ceil | Self::Floor | Self::Neg | Self::Recip => ARITHMETIC,
            Self::Relu | Self::Round | Self::Sign | Self::Sqr | Self::Sqrt => ARITHMETIC,
            Self::Cos | Self::Exp | Self::Log | Self::Sin => ByType::new(16, 32, 20),
            Self::Sigmoid | Self::SigmoidInOwnType | Self::Silu | Self::SiluInOwnType => {
                ByType::new(16, 64, 24)
            }
            Self::Tanh => ByType::new(32, 64, 40),
            Self::Gelu => ByType::new(40, 240, 48),
            Self::GeluErf | Self::Normcdf => ByType::new(24, 56, 24),
            Self::Erf => ByType::new(24, 48, 28),
        };
        work.of(kind)
    }
}

/// `usize n, usize num_dims, info*, T* in, T* out`
pub(super) fn run(launch: &mut Launch<'_>, op: Op) -> Known {
    let work = op.work(launch.kind);
    if launch.kind == Kind::Fp8 {
        return map(launch, [3, 4], work, |x: F8| F8::from_f32(apply(op, x.to_f32())));
    }
    with_real!(launch.kind, T => map(launch, [3, 4], work, |x: T| apply(op, x)))
}

/// `usize n, usize num_dims, info*, T parameter, T* in, T* out`
pub(super) fn run_with_parameter(launch: &mut Launch<'_>, op: WithParameter) -> Known {
    let work = ByType::new(40, 80, 800).of(launch.kind);
    if launch.kind == Kind::Fp8 {
        let parameter = launch.value::<F8>(3).to_f32();
        return map(launch, [4, 5], work, |x: F8| {
            F8::from_f32(apply_with(op, x.to_f32(), parameter))
        });
    }
    with_real!(launch.kind, T => {
        let parameter: T = launch.value(3);
        map(launch, [4, 5], work, |x: T| apply_with(op, x, parameter))
    })
}

/// Computes each element of a strided input, for a kernel that starts with `usize n, usize
/// num_dims, info*`. `input` and `output` are the numbers of the pointers, and `work` is that of an
/// element.
pub(super) fn map<T: Element, O: Element>(
    launch: &mut Launch<'_>,
    [input, output]: [usize; 2],
    work: u64,
    function: impl Fn(T) -> O,
) -> Known {
    let (count, rank, info) = (launch.long(0), launch.long(1), launch.long(2));
    let (input, output) = (launch.long(input), launch.long(output));
    launch.produce(output, count, count.saturating_mul(work), |source| {
        let [layout] = source.layouts(count, rank, info)?;
        Ok(source.in_order::<T>(input, &layout)?.iter().map(|&x| function(x)).collect())
    })
}

pub(super) fn apply<T: Real>(op: Op, x: T) -> T {
    let one = || T::from_f64(1.0);
    match op {
        Op::Abs => x.abs(),
        Op::Ceil => x.ceil(),
        Op::Cos => x.cos(),
        Op::Erf => x.erf(),
        Op::Exp => x.exp(),
        Op::Floor => x.floor(),
        Op::Gelu => {
            let cube = x.times(x).times(x);
            let alpha = x.plus(T::from_f64(0.044715).times(cube));
            let factor =
                T::from_f64(std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2);
            T::from_f64(0.5).times(x).times(one().plus(factor.times(alpha).tanh()))
        }
        Op::GeluErf => x.times(x.normcdf()),
        Op::Log => x.ln(),
        Op::Neg => x.negative(),
        Op::Normcdf => x.normcdf(),
        Op::Recip => x.recip(),
        Op::Relu => x.larger(T::default()),
        Op::Round => x.round(),
        Op::Sigmoid => through_f32(x, |x| apply(op, x), |x| apply(Op::SigmoidInOwnType, x)),
        Op::SigmoidInOwnType => one().plus(x.negative().exp()).recip(),
        Op::Sign => {
            let flag = |it: bool| if it { one() } else { T::default() };
            flag(x > T::default()).minus(flag(x < T::default()))
        }
        Op::Silu => through_f32(x, |x| apply(op, x), |x| apply(Op::SiluInOwnType, x)),
        Op::SiluInOwnType => x.over(one().plus(x.negative().exp())),
        Op::Sin => x.sin(),
        Op::Sqr => x.times(x),
        Op::Sqrt => x.sqrt(),
        Op::Tanh => x.tanh(),
    }
}

/// Computes bf16 in f32, which is how its kernel differs from those of the other types.
fn through_f32<T: Real>(x: T, wide: impl Fn(T::Wide) -> T::Wide, steps: impl Fn(T) -> T) -> T {
    if T::KIND == Kind::Bf16 { T::from_wide(wide(x.wide())) } else { steps(x) }
}

fn apply_with<T: Real>(op: WithParameter, x: T, parameter: T) -> T {
    match op {
        WithParameter::Elu if x > T::default() => x,
        WithParameter::Elu => parameter.times(x.exp().minus(T::from_f64(1.0))),
        WithParameter::Powf => x.powf(parameter),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{TestDevice, arguments};

    use half::{bf16, f16};

    fn unary<T: Element>(name: &str, input: &[T]) -> Vec<T> {
        let mut device = TestDevice::new();
        let (from, to) = (device.upload(input), device.allocate(input.len() * T::WIDTH));
        device.launch(name, &arguments![input.len(), 0_usize, 0_u64, from, to]);
        device.download(to, input.len()).expect("the result is known")
    }

    #[track_caller]
    fn assert_near(name: &str, input: f64, expected: f64) {
        let near = |got: f64, tolerance: f64| {
            let error = (got - expected).abs() / expected.abs().max(1.0);
            assert!(error <= tolerance, "{name}({input}) is {got}, not {expected}");
        };
        near(unary(&format!("{name}_f64"), &[input])[0], 1e-13);
        near(unary(&format!("{name}_f32"), &[input as f32])[0].into(), 1e-6);
        near(unary(&format!("{name}_f16"), &[f16::from_f64(input)])[0].to_f64(), 4e-3);
        near(unary(&format!("{name}_bf16"), &[bf16::from_f64(input)])[0].to_f64(), 3e-2);
    }

    #[test]
    fn functions_have_their_values_in_every_type() {
        let erf_of_half = 0.520_499_877_813_046_5;
        let values = [
            ("uabs", -2.5, 2.5),
            ("uceil", -1.5, -1.0),
            ("ucos", 0.5, 0.5_f64.cos()),
            ("uerf", 0.5, erf_of_half),
            ("uexp", 1.5, 1.5_f64.exp()),
            ("ufloor", -1.5, -2.0),
            ("ugelu", 0.5, 0.345_714_009_825_143_94),
            ("ugelu_erf", 0.5, 0.345_731_230_637_006_56),
            ("ulog", 1.5, 1.5_f64.ln()),
            ("uneg", 1.5, -1.5),
            ("unormcdf", 0.5, 0.691_462_461_274_013_1),
            ("urecip", 4.0, 0.25),
            ("urelu", -1.0, 0.0),
            ("urelu", 1.5, 1.5),
            ("uround", 2.5, 3.0),
            ("uround", -0.5, -1.0),
            ("usigmoid", 0.5, 1.0 / (1.0 + (-0.5_f64).exp())),
            ("usign", -3.0, -1.0),
            ("usign", 0.0, 0.0),
            ("usilu", 0.5, 0.5 / (1.0 + (-0.5_f64).exp())),
            ("usin", 0.5, 0.5_f64.sin()),
            ("usqr", -1.5, 2.25),
            ("usqrt", 2.0, 2_f64.sqrt()),
            ("utanh", 0.5, 0.5_f64.tanh()),
        ];
        for (name, input, expected) in values {
            assert_near(name, input, expected);
        }
    }

    #[test]
    fn rounding_and_doubles_cost_more_than_singles() {
        assert!(Op::Gelu.work(Kind::F32) > Op::Relu.work(Kind::F32));
        assert!(Op::Gelu.work(Kind::Bf16) > Op::Gelu.work(Kind::F32));
        assert!(Op::Exp.work(Kind::F64) > Op::Exp.work(Kind::F32));
    }

    #[test]
    fn relu_drops_a_nan_except_in_16_bits() {
        assert_eq!(unary("urelu_f32", &[f32::NAN]), [0.0]);
        assert_eq!(unary("urelu_f64", &[f64::NAN]), [0.0]);
        assert!(unary("urelu_f16", &[f16::NAN])[0].is_nan());
        assert!(unary("urelu_bf16", &[bf16::NAN])[0].is_nan());
    }

    #[test]
    fn silu_of_bf16_rounds_once() {
        for input in (-40..40).map(|at| bf16::from_f32(at as f32 / 7.0)) {
            let x = input.to_f32();
            let expected = bf16::from_f32(x / (1.0 + libm::expf(-x)));
            assert_eq!(unary("usilu_bf16", &[input]), [expected]);
        }
    }

    #[test]
    fn a_parameter_is_before_the_input() {
        let mut device = TestDevice::new();
        let (from, to) = (device.upload(&[-1.0_f32, 2.0]), device.allocate(8));
        device.launch("uelu_f32", &arguments![2_usize, 0_usize, 0_u64, 0.5_f32, from, to]);
        assert_eq!(device.download(to, 2), Some(vec![0.5 * (libm::expf(-1.0) - 1.0), 2.0_f32]));
        let (from, to) = (device.upload(&[f16::from_f32(3.0)]), device.allocate(2));
        let exponent = f16::from_f32(2.0);
        device.launch("upowf_f16", &arguments![1_usize, 0_usize, 0_u64, exponent, from, to]);
        assert_eq!(device.download(to, 1), Some(vec![f16::from_f32(9.0)]));
    }

    #[test]
    fn strided_broadcast_and_offset_inputs_are_read_in_row_major_order() {
        let mut device = TestDevice::new();
        let from = device.upload(&[9_f32, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let to = device.allocate(32);
        // The transposed view of a 2 x 3 tensor that starts at the second element.
        let info = device.upload(&[3_i64, 2, 1, 3]);
        device.launch("uneg_f32", &arguments![6_usize, 2_usize, info, from + 4, to + 4]);
        assert_eq!(device.download(to + 4, 6), Some(vec![-1_f32, -4.0, -2.0, -5.0, -3.0, -6.0]));
        assert_eq!(device.download::<f32>(to, 1), None);
        let info = device.upload(&[2_i64, 3, 0, 1]);
        device.launch("uneg_f32", &arguments![6_usize, 2_usize, info, from, to]);
        assert_eq!(device.download(to, 6), Some(vec![-9_f32, -1.0, -2.0, -9.0, -1.0, -2.0]));
    }

    #[test]
    fn only_the_elements_of_an_unknown_result_become_unknown() {
        let mut device = TestDevice::new();
        let to = device.upload(&[1_f32; 4]);
        let unknown = device.allocate(8);
        device.launch("uneg_f32", &arguments![2_usize, 0_usize, 0_u64, unknown, to + 4]);
        assert_eq!(device.download(to, 1), Some(vec![1_f32]));
        assert_eq!(device.download::<f32>(to + 4, 1), None);
        assert_eq!(device.download::<f32>(to + 8, 1), None);
        assert_eq!(device.download(to + 12, 1), Some(vec![1_f32]));
        // A view that skips the unknown elements.
        let info = device.upload(&[2_i64, 3]);
        let view = device.allocate(8);
        device.launch("uneg_f32", &arguments![2_usize, 1_usize, info, to, view]);
        assert_eq!(device.download(view, 2), Some(vec![-1_f32, -1.0]));
        let gapless = device.upload(&[2_i64, 2]);
        device.launch("uneg_f32", &arguments![2_usize, 1_usize, gapless, to, view]);
        assert_eq!(device.download::<f32>(view, 1), None);
    }

    #[test]
    fn an_empty_launch_and_addresses_outside_of_blocks_are_harmless() {
        let mut device = TestDevice::new();
        let from = device.upload(&[1_f32; 4]);
        let to = device.allocate(16);
        device.launch("uneg_f32", &arguments![0_usize, 0_usize, 0_u64, 0_u64, 0_u64]);
        device.launch("uneg_f32", &arguments![5_usize, 0_usize, 0_u64, from, to]);
        device.launch("uneg_f32", &arguments![usize::MAX, 0_usize, 0_u64, from, to]);
        device.launch("uneg_f32", &arguments![4_usize, usize::MAX, from, from, to]);
        device.launch("uneg_f32", &arguments![4_usize, 0_usize, 0_u64, from, 0x7fff_0000_0000_u64]);
        assert_eq!(device.download::<f32>(to, 1), None);
    }
}
