use half::{bf16, f16};
use proptest::prelude::*;

use super::*;
use crate::element::Real;
use crate::f8::F8;
use crate::harness::TestDevice;
use crate::{Product, Scalars};

/// A product and its epilogue, with elements so small that every sum is exact.
#[derive(Debug, Clone)]
struct Case {
    /// m, n, k and the number of products.
    sizes: [usize; 4],
    /// Of A and B, and whether C is stored by rows.
    transposed: [bool; 3],
    /// Elements between the columns and between the matrices of the batch.
    gaps: [usize; 2],
    alpha: f64,
    beta: f64,
    /// True for a C that is not the output.
    has_addend: bool,
    has_bias: bool,
    activation: Option<Activation>,
    factor: Option<f64>,
}

/// An element of an operand.
fn element(operand: usize, index: usize) -> f64 {
    ((index * 7 + operand * 5) % 13) as f64 - 6.0
}

/// A stored matrix of `rows` x `columns`, which is read transposed or not.
#[derive(Clone, Copy)]
struct Stored {
    leading: usize,
    stride: usize,
    is_transposed: bool,
}

impl Stored {
    fn new(
        rows: usize,
        columns: usize,
        is_transposed: bool,
        [gap, gap_of_batch]: [usize; 2],
    ) -> Self {
        let (length, lines) = if is_transposed { (columns, rows) } else { (rows, columns) };
        let leading = length + gap;
        Self { leading, stride: leading * lines + gap_of_batch, is_transposed }
    }

    fn index(self, batch: usize, row: usize, column: usize) -> usize {
        let (line, position) = if self.is_transposed { (row, column) } else { (column, row) };
        batch * self.stride + line * self.leading + position
    }

    fn operand(self, address: u64) -> Operand {
        Operand {
            address,
            transposed: self.is_transposed,
            leading: self.leading as u64,
            stride: self.stride as i64,
        }
    }
}

fn gelu(x: f64) -> f64 {
    0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh())
}

impl Case {
    fn matrices(&self) -> [Stored; 4] {
        let [m, n, k, _] = self.sizes;
        let [a, b, c] = self.transposed;
        [
            Stored::new(m, k, a, self.gaps),
            Stored::new(k, n, b, self.gaps),
            Stored::new(m, n, c, self.gaps),
            Stored::new(m, n, false, self.gaps),
        ]
    }

    /// The output by the definition, in f64.
    fn expected(&self, batch: usize, row: usize, column: usize) -> f64 {
        let [a, b, c, d] = self.matrices();
        let inner = 0..self.sizes[2];
        let products = inner
            .map(|at| element(0, a.index(batch, row, at)) * element(1, b.index(batch, at, column)));
        let old = if self.has_addend { (2, c) } else { (3, d) };
        let mut value = self.alpha * products.sum::<f64>()
            + self.beta * element(old.0, old.1.index(batch, row, column));
        if self.has_bias {
            value += element(4, batch * self.sizes[0] + row);
        }
        let value = match self.activation {
            None => value,
            Some(Activation::Relu) => value.max(0.0),
            Some(Activation::Gelu) => gelu(value),
        };
        value * self.factor.unwrap_or(1.0)
    }

    fn computed<T: Checked>(&self) -> Vec<f64> {
        let [m, n, k, batch] = self.sizes;
        let matrices = self.matrices();
        let mut device = TestDevice::new();
        let mut upload = |operand: usize, length: usize| {
            let elements: Vec<T> =
                (0..length).map(|index| T::from_f64(element(operand, index))).collect();
            device.upload(&elements)
        };
        let addresses: Vec<u64> = matrices
            .iter()
            .enumerate()
            .map(|(operand, matrix)| upload(operand, matrix.stride * batch))
            .collect();
        let vector = upload(4, batch * m);
        let [a, b, c, d] = [0, 1, 2, 3].map(|it| matrices[it].operand(addresses[it]));
        let bias = Bias { address: vector, kind: T::KIND, stride: m as i64 };
        let product = Product {
            m: m as u64,
            n: n as u64,
            k: k as u64,
            batch: batch as u64,
            inputs: T::KIND,
            output: T::KIND,
            a,
            b,
            c: d,
            scales: Some(Scalars { alpha: self.alpha, beta: self.beta }),
            epilogue: Epilogue {
                addend: self.has_addend.then_some((c, T::KIND)),
                bias: self.has_bias.then_some(bias),
                activation: self.activation,
                factor: self.factor,
            },
        };
        product.run(&mut device.memory);
        let all: Vec<T> =
            device.download(addresses[3], matrices[3].stride * batch).expect("the result is known");
        all.into_iter().map(|value| value.number_as_f64()).collect()
    }

    /// Compares every element of the output, and the gaps, which stay as they were. `rounded` converts
    /// to the type of the output.
    fn check<T: Checked>(&self, rounded: fn(f64) -> f64) {
        let computed = self.computed::<T>();
        let [m, n, _, batch] = self.sizes;
        let output = self.matrices()[3];
        let mut gaps: Vec<bool> = vec![true; computed.len()];
        for index in 0..batch {
            for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
                let at = output.index(index, row, column);
                gaps[at] = false;
                let (got, exact) = (computed[at], self.expected(index, row, column));
                let is_near = match self.activation {
                    // The steps of GELU round in the type of the sums.
                    Some(Activation::Gelu) => {
                        let unit = (rounded(1.0 + exact.abs()) * T::EPSILON).abs();
                        (got - exact).abs() <= unit
                    }
                    _ => got == rounded(exact),
                };
                assert!(is_near, "{self:?}: [{row}, {column}] is {got}, not {exact}");
            }
        }
        for (at, _) in gaps.iter().enumerate().filter(|&(_, &is_gap)| is_gap) {
            assert_eq!(computed[at], element(3, at), "{self:?}: the gap at {at}");
        }
    }
}

/// What the test needs of a type.
trait Checked: Real {
    /// More than the error of a rounded result near 1.
    const EPSILON: f64;
    fn number_as_f64(self) -> f64;
}

macro_rules! checked {
    ($($type:ident $epsilon:expr;)*) => {$(
        impl Checked for $type {
            const EPSILON: f64 = $epsilon;
            fn number_as_f64(self) -> f64 {
                f64::from(self)
            }
        }
    )*};
}

checked! { f64 1e-13; f32 1e-6; f16 1e-3; bf16 8e-3; }

fn cases() -> impl Strategy<Value = Case> {
    let sizes = [1..6_usize, 1..6, 0..7, 1..4];
    let scales =
        (prop::sample::select(vec![1.0, 2.0, -0.5]), prop::sample::select(vec![0.0, 1.0, -2.0]));
    let activations = vec![None, Some(Activation::Relu), Some(Activation::Gelu)];
    let rest = (
        any::<bool>(),
        any::<bool>(),
        prop::sample::select(activations),
        prop::option::of(Just(0.25)),
    );
    (sizes, any::<[bool; 3]>(), [0..3_usize, 0..4], scales, rest).prop_map(
        |(sizes, transposed, gaps, (alpha, beta), (has_addend, has_bias, activation, factor))| {
            Case { sizes, transposed, gaps, alpha, beta, has_addend, has_bias, activation, factor }
        },
    )
}

proptest! {
    #[test]
    fn products_are_those_of_their_definition(case in cases()) {
        case.check::<f64>(|value| value);
        case.check::<f32>(|value| f64::from(value as f32));
        case.check::<f16>(|value| f16::from_f64(value).to_f64());
        case.check::<bf16>(|value| bf16::from_f64(value).to_f64());
    }
}

/// A product of 1 x 1 x 1 whose output is 0 before.
fn single(device: &mut TestDevice, [x, y]: [f32; 2], output: Kind, epilogue: Epilogue) -> Product {
    let operand = |address| Operand { address, transposed: false, leading: 1, stride: 0 };
    let [a, b] = [x, y].map(|value| operand(device.upload(&[F8::from_f32(value)])));
    let c = operand(device.upload(&[0_f32]));
    let scales = Some(Scalars { alpha: 1.0, beta: 0.0 });
    Product { m: 1, n: 1, k: 1, batch: 1, inputs: Kind::F8, output, a, b, c, scales, epilogue }
}

#[test]
fn inputs_and_outputs_of_8_bits_are_computed_in_f32() {
    let mut device = TestDevice::new();
    let product = single(&mut device, [1.125, -2.25], Kind::F32, Epilogue::default());
    product.run(&mut device.memory);
    assert_eq!(device.download(product.c.address, 1), Some(vec![-2.53125_f32]));
    // The factor is applied before the only rounding, and what is out of range becomes the largest.
    for (factor, expected) in [(4.0, -10.0), (1000.0, -448.0)] {
        let epilogue = Epilogue { factor: Some(factor), ..Epilogue::default() };
        let product = Product { output: Kind::F8, epilogue, ..product };
        product.run(&mut device.memory);
        let stored: Vec<F8> = device.download(product.c.address, 1).expect("the result is known");
        assert_eq!(stored[0].to_f32(), expected);
    }
}

#[test]
fn an_unknown_vector_or_matrix_makes_only_results_unknown_that_use_it() {
    let mut device = TestDevice::new();
    let unknown = device.allocate(4);
    let addend = Operand { address: unknown, transposed: false, leading: 1, stride: 0 };
    let with_addend = Epilogue { addend: Some((addend, Kind::F32)), ..Epilogue::default() };
    let product = single(&mut device, [2.0, 3.0], Kind::F32, with_addend);
    product.run(&mut device.memory);
    assert_eq!(device.download(product.c.address, 1), Some(vec![6_f32]));
    let scales = Some(Scalars { alpha: 1.0, beta: 1.0 });
    Product { scales, ..product }.run(&mut device.memory);
    assert!(!device.is_known(product.c.address));

    let bias = Bias { address: unknown, kind: Kind::F32, stride: 0 };
    let with_bias = Epilogue { bias: Some(bias), ..Epilogue::default() };
    let product = single(&mut device, [2.0, 3.0], Kind::F32, with_bias);
    product.run(&mut device.memory);
    assert!(!device.is_known(product.c.address));
}
