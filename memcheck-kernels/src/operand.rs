//! A matrix, and how a product of matrices reads it.

use super::Kind;

/// A matrix operand.
#[derive(Debug, Clone, Copy)]
pub struct Operand {
    /// The address of the first element.
    pub address: u64,
    /// Whether the product takes the transposed matrix. It has no meaning for the output.
    pub transposed: bool,
    /// Elements from one column to the next.
    pub leading: u64,
    /// Elements from one matrix of the batch to the next.
    pub stride: i64,
}

impl Operand {
    /// Returns the address of a matrix of the batch.
    pub(crate) fn of_batch(self, index: u64, kind: Kind) -> u64 {
        let offset = self.stride.wrapping_mul(index as i64).wrapping_mul(kind.width() as i64);
        self.address.wrapping_add_signed(offset)
    }
}
