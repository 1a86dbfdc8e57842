//! Products of matrices: cuBLAS's `C = alpha op(A) op(B) + beta C`, column-major and in batches.
//! cuBLASLt adds an [`Epilogue`].
//!
//! Sums are made in f32, or in f64 for f64, by the crate that candle's CPU backend uses, so that the
//! results are those of the CPU. It adds in the order for which the processor is fastest. Without
//! the crate, the order is that of the inner dimension. cuBLAS does not state its order, so its last
//! bits can differ, and its results of 16-bit sums and of TF32 are less exact.

use half::{bf16, f16};

use super::element::{Element, Real};
use super::epilogue::Epilogue;
use super::f8::F8;
use super::launch::{Source, bytes_of};
use super::layout::Layout;
use super::memory::Memory;
use super::multiply::{Matrix, multiply};
use super::operand::Operand;
use super::work;
use super::{Kind, Known, Unknown, with_real};

/// A product of matrices by cuBLAS or cuBLASLt, in column-major order: C = alpha A B + beta C. A or B
/// may be transposed; `m`, `n` and `k` are those of the matrices that are multiplied.
#[derive(Debug, Clone, Copy)]
pub struct Product {
    /// The rows of A and of C.
    pub m: u64,
    /// The columns of B and of C.
    pub n: u64,
    /// The columns of A and the rows of B.
    pub k: u64,
    /// The number of products.
    pub batch: u64,
    /// The element type of A and B.
    pub inputs: Kind,
    /// The element type of C.
    pub output: Kind,
    /// The first input.
    pub a: Operand,
    /// The second input.
    pub b: Operand,
    /// The output.
    pub c: Operand,
    /// `None` if they are unknown.
    pub scales: Option<Scalars>,
    /// What happens to a sum before it is stored.
    pub epilogue: Epilogue,
}

/// The factors of a product: C becomes alpha A B + beta C.
#[derive(Debug, Clone, Copy)]
pub struct Scalars {
    /// The factor of the product.
    pub alpha: f64,
    /// The factor of C's old values.
    pub beta: f64,
}

impl Product {
    /// Computes the products whose inputs are known. The others become unknown.
    pub fn run(&self, memory: &mut dyn Memory) {
        let one = work::of_product([self.m, self.n, self.k], self.inputs);
        if !memory.values().permits(one.saturating_mul(self.batch)) {
            let last = (self.batch - 1).saturating_mul(self.c.stride.unsigned_abs());
            let count = last.saturating_add(self.extent());
            return memory.overwritten_elements(self.c.address, count, self.output);
        }
        let source = Source::new(memory);
        let results = match self.inputs {
            Kind::F64 => self.compute::<f64, _>(&source, f64::wide),
            Kind::F32 => self.compute::<f32, _>(&source, f32::wide),
            Kind::F16 => self.compute::<f16, _>(&source, f16::wide),
            Kind::Bf16 => self.compute::<bf16, _>(&source, bf16::wide),
            Kind::F8 => self.compute::<F8, _>(&source, F8::to_f32),
            _ => vec![Err(Unknown); self.batch as usize],
        };
        for (index, result) in results.into_iter().enumerate() {
            let to = self.c.of_batch(index as u64, self.output);
            match result {
                Ok(bytes) => {
                    memory.values_mut().count_operations(one);
                    self.write(memory, to, &bytes);
                }
                Err(Unknown) => memory.overwritten_elements(to, self.extent(), self.output),
            }
        }
    }

    /// Elements from the first to the last of one C.
    fn extent(&self) -> u64 {
        (self.n - 1).saturating_mul(self.c.leading).saturating_add(self.m)
    }

    /// Returns the bytes of each C of the batch without gaps. `wide` converts an element to the type
    /// of the sums.
    fn compute<T: Element, W: Real>(
        &self,
        source: &Source<'_>,
        wide: fn(T) -> W,
    ) -> Vec<Known<Vec<u8>>> {
        let dims = [self.m, self.n, self.k].map(|dim| dim as usize);
        let mut last: Option<(u64, Matrix<'_, W>)> = None;
        let one = |index: u64| {
            let Scalars { alpha, beta } = self.scales.ok_or(Unknown)?;
            // B is read first: it holds the activations, which are more often unknown.
            let b = self.b.of_batch(index, self.inputs);
            let b = Matrix::read(source, b, [self.n, self.k], self.b, wide)?;
            let a = self.a.of_batch(index, self.inputs);
            // One A for a whole batch is read once.
            if last.as_ref().is_none_or(|&(address, _)| address != a) {
                last = Some((a, Matrix::read(source, a, [self.k, self.m], self.a, wide)?));
            }
            let (_, a) = last.as_ref().ok_or(Unknown)?;
            let mut sums = vec![W::default(); dims[0] * dims[1]];
            multiply(&mut sums, dims, a, &b);
            self.finish(source, index, [alpha, beta], sums)
        };
        (0..self.batch).map(one).collect()
    }

    /// Scales the sums, adds C and applies the epilogue.
    ///
    /// Not a part of `compute`, which is compiled once for each type of the inputs.
    fn finish<W: Real>(
        &self,
        source: &Source<'_>,
        index: u64,
        [alpha, beta]: [f64; 2],
        mut sums: Vec<W>,
    ) -> Known<Vec<u8>> {
        let alpha = W::from_f64(alpha);
        if alpha != W::from_f64(1.0) {
            sums.iter_mut().for_each(|sum| *sum = sum.times(alpha));
        }
        if beta != 0.0 {
            let (addend, kind) = self.epilogue.addend.unwrap_or((self.c, self.output));
            let (address, beta) = (addend.of_batch(index, kind), W::from_f64(beta));
            let steps = if addend.transposed { [1, addend.leading] } else { [addend.leading, 1] };
            let layout = Layout::new(&[self.n, self.m], &steps);
            with_real!(kind, C => {
                let old: Vec<C> = source.strided(address, &layout)?;
                for (sum, old) in sums.iter_mut().zip(old) {
                    *sum = sum.plus(W::from_number(old.number()).times(beta));
                }
                Ok(())
            })?;
        }
        self.epilogue.apply(source, index, self.m, &mut sums)?;
        match self.output {
            kind if kind == W::KIND => Ok(bytes_of(&sums).to_vec()),
            Kind::F8 => Ok(rounded::<W, F8>(&sums)),
            kind => with_real!(kind, C => Ok(rounded::<W, C>(&sums))),
        }
    }

    fn write(&self, memory: &mut dyn Memory, to: u64, bytes: &[u8]) {
        let width = self.output.width();
        if self.c.leading == self.m {
            return memory.write_bytes(to, bytes);
        }
        for (column, bytes) in bytes.chunks_exact((self.m * width) as usize).enumerate() {
            let offset = (column as u64 * self.c.leading).wrapping_mul(width);
            memory.write_bytes(to.wrapping_add(offset), bytes);
        }
    }
}

/// Returns the bytes of sums in the type of the output.
fn rounded<W: Real, C: Element>(sums: &[W]) -> Vec<u8> {
    let rounded: Vec<C> = sums.iter().map(|sum| C::from_number(sum.number())).collect();
    bytes_of(&rounded).to_vec()
}

/// Sums the absolute values of `count` elements with a step, in their own type, f32 or f64. Returns
/// `None` if one of them is unknown, or for another type.
pub fn absolute_sum(
    memory: &mut dyn Memory,
    (kind, address): (Kind, u64),
    count: u64,
    step: u64,
) -> Option<f64> {
    match kind {
        Kind::F32 => sum_of::<f32>(memory, address, count, step).map(f64::from),
        Kind::F64 => sum_of::<f64>(memory, address, count, step),
        _ => None,
    }
}

fn sum_of<T: Real>(memory: &mut dyn Memory, address: u64, count: u64, step: u64) -> Option<T> {
    if !memory.values().permits(count) {
        return None;
    }
    let layout = Layout::new(&[count], &[step]);
    let elements: Vec<T> = Source::new(memory).strided(address, &layout).ok()?;
    memory.values_mut().count_operations(count);
    Some(elements.into_iter().fold(T::default(), |sum, element| sum.plus(element.abs())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::TestDevice;

    fn operand(address: u64, transposed: bool, leading: u64, stride: i64) -> Operand {
        Operand { address, transposed, leading, stride }
    }

    fn product(kind: Kind, [m, n, k]: [u64; 3], [a, b, c]: [Operand; 3]) -> Product {
        let scales = Some(Scalars { alpha: 1.0, beta: 0.0 });
        let epilogue = Epilogue::default();
        Product { m, n, k, batch: 1, inputs: kind, output: kind, a, b, c, scales, epilogue }
    }

    /// A is 2 x 3 and B is 3 x 2, both column-major. C is [[76, 100], [103, 136]].
    const A: [f64; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    const B: [f64; 6] = [7.0, 8.0, 9.0, 10.0, 11.0, 12.0];
    const C: [f64; 4] = [76.0, 100.0, 103.0, 136.0];

    fn all<T: Real>() {
        let of = |elements: &[f64]| elements.iter().map(|&x| T::from_f64(x)).collect::<Vec<T>>();
        let transposed = |[a, b, c, d, e, f]: [f64; 6]| [a, c, e, b, d, f];
        let columns = |[a, b, c, d, e, f]: [f64; 6]| [a, d, b, e, c, f];
        for (turn_a, turn_b) in [(false, false), (true, false), (false, true), (true, true)] {
            let mut device = TestDevice::new();
            let a = device.upload(&of(&if turn_a { transposed(A) } else { A }));
            let b = device.upload(&of(&if turn_b { columns(B) } else { B }));
            let c = device.allocate(4 * T::WIDTH);
            let a = operand(a, turn_a, if turn_a { 3 } else { 2 }, 0);
            let b = operand(b, turn_b, if turn_b { 2 } else { 3 }, 0);
            product(T::KIND, [2, 2, 3], [a, b, operand(c, false, 2, 0)]).run(&mut device.memory);
            assert_eq!(device.download(c, 4), Some(of(&C)), "{turn_a} {turn_b}");
        }
    }

    #[test]
    fn every_type_multiplies_in_every_layout() {
        all::<f32>();
        all::<f64>();
        all::<f16>();
        all::<bf16>();
    }

    #[test]
    fn sums_of_16_bits_are_made_in_32() {
        let mut device = TestDevice::new();
        let a = device.upload(&[f16::from_f32(2048.0), f16::ONE, f16::ONE]);
        let b = device.upload(&[f16::ONE; 3]);
        let c = device.allocate(4);
        let operands = [operand(a, false, 1, 0), operand(b, false, 3, 0), operand(c, false, 1, 0)];
        product(Kind::F16, [1, 1, 3], operands).run(&mut device.memory);
        assert_eq!(device.download(c, 1), Some(vec![f16::from_f32(2050.0)]));
        let wide = Product { output: Kind::F32, ..product(Kind::F16, [1, 1, 3], operands) };
        wide.run(&mut device.memory);
        assert_eq!(device.download(c, 1), Some(vec![2050_f32]));
    }

    #[test]
    fn a_batch_can_repeat_an_operand_and_leaves_gaps() {
        let mut device = TestDevice::new();
        let a = device.upload(&[1_f32, 2.0]);
        let b = device.upload(&[3_f32, 4.0]);
        let c = device.upload(&[0_f32; 7]);
        let operands = [operand(a, false, 2, 0), operand(b, false, 1, 1), operand(c, false, 2, 4)];
        let product = Product { batch: 2, ..product(Kind::F32, [2, 1, 1], operands) };
        product.run(&mut device.memory);
        assert_eq!(device.download(c, 7), Some(vec![3_f32, 6.0, 0.0, 0.0, 4.0, 8.0, 0.0]));
        let scales = Some(Scalars { alpha: 2.0, beta: 1.0 });
        Product { scales, ..product }.run(&mut device.memory);
        assert_eq!(device.download(c, 7), Some(vec![9_f32, 18.0, 0.0, 0.0, 12.0, 24.0, 0.0]));
    }

    #[test]
    fn columns_of_a_larger_matrix_are_written_in_place() {
        let mut device = TestDevice::new();
        let (a, b) = (device.upload(&[1_f32, 2.0]), device.upload(&[3_f32, 4.0]));
        let c = device.upload(&[0_f32; 6]);
        let operands = [operand(a, false, 2, 0), operand(b, false, 1, 0), operand(c, false, 3, 0)];
        product(Kind::F32, [2, 2, 1], operands).run(&mut device.memory);
        assert_eq!(device.download(c, 6), Some(vec![3_f32, 6.0, 0.0, 4.0, 8.0, 0.0]));
    }

    #[test]
    fn only_the_products_of_unknown_inputs_are_unknown() {
        let mut device = TestDevice::new();
        let a = device.allocate(8);
        device.memory.write_bytes(a + 4, &2_f32.to_ne_bytes());
        let (b, c) = (device.upload(&[3_f32]), device.upload(&[0_f32; 2]));
        let operands = [operand(a, false, 1, 1), operand(b, false, 1, 0), operand(c, false, 1, 1)];
        let product = Product { batch: 2, ..product(Kind::F32, [1, 1, 1], operands) };
        product.run(&mut device.memory);
        assert_eq!(device.download::<f32>(c, 1), None);
        assert_eq!(device.download(c + 4, 1), Some(vec![6_f32]));
        Product { scales: None, ..product }.run(&mut device.memory);
        assert_eq!(device.download::<f32>(c + 4, 1), None);
    }

    #[test]
    fn a_product_that_exceeds_the_limits_is_unknown() {
        let mut device = TestDevice::new();
        let a = device.allocate(16 << 20);
        device.memory.zero_bytes(a, 16 << 20);
        let c = device.allocate(16 << 20);
        device.memory.zero_bytes(c, 16 << 20);
        let square = operand(a, false, 1 << 11, 0);
        product(Kind::F32, [1 << 11; 3], [square, square, operand(c, false, 1 << 11, 0)])
            .run(&mut device.memory);
        assert!(!device.is_known(c));
    }

    /// The dims of a layer of a small model.
    #[test]
    fn a_product_of_64_by_256_and_256_by_256_is_known() {
        let mut device = TestDevice::new();
        let number = |at: usize| (at * 37 % 33) as f32 / 8.0 - 2.0;
        let (m, n, k) = (256, 64, 256);
        let a: Vec<f32> = (0..k * m).map(number).collect();
        let b: Vec<f32> = (0..n * k).map(|at| number(at + 5)).collect();
        let [a_at, b_at] = [&a, &b].map(|elements| device.upload(elements));
        for turned in [false, true] {
            let c = device.allocate(4 * m * n);
            let operands = [
                operand(a_at, turned, if turned { k } else { m } as u64, 0),
                operand(b_at, false, k as u64, 0),
                operand(c, false, m as u64, 0),
            ];
            product(Kind::F32, [m as u64, n as u64, k as u64], operands).run(&mut device.memory);
            let c: Vec<f32> = device.download(c, m * n).expect("the product is known");
            // All sums are multiples of 1/64 and exact in f32.
            let exact = |at: usize| -> f32 {
                let (row, column) = (at % m, at / m);
                let of_a = |inner: usize| if turned { row * k + inner } else { inner * m + row };
                (0..k).map(|inner| a[of_a(inner)] * b[column * k + inner]).sum()
            };
            for (at, element) in c.into_iter().enumerate().step_by(97) {
                assert_eq!(element, exact(at), "{at}");
            }
        }
    }

    #[test]
    fn zeros_without_storage_are_multiplied() {
        let mut device = TestDevice::new();
        let (a, c) = (device.allocate(16), device.allocate(16));
        device.memory.zero_bytes(a, 16);
        for (b, expected) in
            [([1_f32, 2.0, 3.0, 4.0], false), ([1_f32, f32::INFINITY, 3.0, 4.0], true)]
        {
            let b = device.upload(&b);
            for pair in [[a, b], [b, a]] {
                let [x, y] = pair.map(|address| operand(address, false, 2, 0));
                product(Kind::F32, [2; 3], [x, y, operand(c, false, 2, 0)]).run(&mut device.memory);
                let result: Vec<f32> = device.download(c, 4).expect("the product is known");
                assert_eq!(result.iter().any(|x| x.is_nan()), expected);
                assert!(result.iter().all(|&x| x == 0.0 || x.is_nan()), "{result:?}");
            }
        }
    }

    #[test]
    fn columns_of_a_larger_matrix_are_read_in_place() {
        let mut device = TestDevice::new();
        let a = device.upload(&[1_f32, 2.0, 9.0, 3.0, 4.0]);
        let b = device.upload(&[1_f32, 10.0, 9.0, 2.0, 20.0]);
        let c = device.allocate(16);
        let operands = [operand(a, false, 3, 0), operand(b, false, 3, 0), operand(c, false, 2, 0)];
        product(Kind::F32, [2; 3], operands).run(&mut device.memory);
        assert_eq!(device.download(c, 4), Some(vec![31_f32, 42.0, 62.0, 84.0]));
        // An unknown gap does not matter.
        let gaps = device.allocate(20);
        device.memory.write_bytes(gaps, &[1_f32.to_ne_bytes(), 2_f32.to_ne_bytes()].concat());
        device.memory.write_bytes(gaps + 12, &[3_f32.to_ne_bytes(), 4_f32.to_ne_bytes()].concat());
        let operands =
            [operand(gaps, false, 3, 0), operand(b, false, 3, 0), operand(c, false, 2, 0)];
        product(Kind::F32, [2; 3], operands).run(&mut device.memory);
        assert_eq!(device.download(c, 4), Some(vec![31_f32, 42.0, 62.0, 84.0]));
    }

    #[test]
    fn absolute_values_are_summed_with_a_step() {
        let mut device = TestDevice::new();
        let x = device.upload(&[-1_f32, 5.0, 2.0, 5.0, -3.0]);
        assert_eq!(absolute_sum(&mut device.memory, (Kind::F32, x), 3, 2), Some(6.0));
        let unknown = device.allocate(4);
        assert_eq!(absolute_sum(&mut device.memory, (Kind::F32, unknown), 1, 1), None);
    }
}
