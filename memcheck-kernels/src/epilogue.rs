//! The steps of cuBLASLt between a product and its output: `D = f(alpha A B + beta C + bias)`, in the
//! type of the sums. The result is rounded to the type of D once.

use super::element::{Element, Real};
use super::launch::Source;
use super::operand::Operand;
use super::unary::{self, Op};
use super::{Kind, Known, with_real};

/// The steps between the sums of a product and its output. The default changes nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Epilogue {
    /// The matrix that beta multiplies, and its type, if it is not the old output. A transposed one is
    /// stored by rows.
    pub addend: Option<(Operand, Kind)>,
    /// A vector that is added.
    pub bias: Option<Bias>,
    /// A function of each element, after the bias.
    pub activation: Option<Activation>,
    /// A factor of each element, after the function.
    pub factor: Option<f64>,
}

/// A vector that is added to every column of a matrix.
#[derive(Debug, Clone, Copy)]
pub struct Bias {
    /// The address of the first element.
    pub address: u64,
    /// The type of its elements.
    pub kind: Kind,
    /// Elements from the vector of one matrix of the batch to the next.
    pub stride: i64,
}

/// A function of each element of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// The larger one of x and 0.
    Relu,
    /// GELU by its approximation with the hyperbolic tangent. PyTorch uses cuBLASLt's epilogue for
    /// this function, and not for the exact GELU.
    Gelu,
}

impl Epilogue {
    /// Changes the sums of a matrix of the batch, whose columns of `rows` elements follow each other.
    pub(crate) fn apply<W: Real>(
        &self,
        source: &Source<'_>,
        index: u64,
        rows: u64,
        sums: &mut [W],
    ) -> Known {
        if let Some(bias) = self.bias {
            let elements = bias.read::<W>(source, index, rows)?;
            for column in sums.chunks_exact_mut(rows as usize) {
                for (sum, &bias) in column.iter_mut().zip(&elements) {
                    *sum = sum.plus(bias);
                }
            }
        }
        match self.activation {
            None => {}
            Some(Activation::Relu) => {
                sums.iter_mut().for_each(|sum| *sum = unary::apply(Op::Relu, *sum));
            }
            Some(Activation::Gelu) => {
                sums.iter_mut().for_each(|sum| *sum = unary::apply(Op::Gelu, *sum));
            }
        }
        if let Some(factor) = self.factor.map(W::from_f64) {
            sums.iter_mut().for_each(|sum| *sum = sum.times(factor));
        }
        Ok(())
    }
}

impl Bias {
    fn read<W: Real>(&self, source: &Source<'_>, index: u64, count: u64) -> Known<Vec<W>> {
        let vector = Operand {
            address: self.address,
            transposed: false,
            leading: count,
            stride: self.stride,
        };
        let address = vector.of_batch(index, self.kind);
        with_real!(self.kind, C => {
            let elements: Vec<C> = source.elements(address, count)?;
            Ok(elements.iter().map(|element| W::from_number(element.number())).collect())
        })
    }
}

#[cfg(test)]
mod tests;
