//! The attributes of cuBLASLt's descriptors, as data: matrix layouts, operations and preferences.
//!
//! The numbers are those of the enumerations of `cublasLt.h` (CUDA 13.0). Widths and first values
//! are those that cuBLASLt 13.0.2 returns, whose functions for descriptors work without a GPU. That
//! library accepts every value here, and refuses wrong ones when a product is requested.

use std::ffi::c_int;

use crate::code::{Answer, Code};

/// A number of an enumeration, the bytes of the value, and the value of a new descriptor.
#[derive(Debug)]
pub(crate) struct Attribute(c_int, usize, i64);

/// The attributes of one kind of descriptor.
pub(crate) type AttributeTable = [Attribute];

/// `cublasLtMatrixLayoutAttribute_t`.
pub(crate) mod layout {
    use super::{Attribute, AttributeTable, c_int};

    pub(crate) const TYPE: c_int = 0;
    pub(crate) const ORDER: c_int = 1;
    pub(crate) const ROWS: c_int = 2;
    pub(crate) const COLUMNS: c_int = 3;
    pub(crate) const LEADING: c_int = 4;
    pub(crate) const BATCH_COUNT: c_int = 5;
    pub(crate) const BATCH_STRIDE: c_int = 6;
    pub(crate) const PLANE_OFFSET: c_int = 7;
    pub(crate) const BATCH_MODE: c_int = 8;

    pub(crate) static TABLE: &AttributeTable = &[
        Attribute(TYPE, 4, 0),
        Attribute(ORDER, 4, 0),
        Attribute(ROWS, 8, 0),
        Attribute(COLUMNS, 8, 0),
        Attribute(LEADING, 8, 0),
        Attribute(BATCH_COUNT, 4, 1),
        Attribute(BATCH_STRIDE, 8, 0),
        Attribute(PLANE_OFFSET, 8, 0),
        Attribute(BATCH_MODE, 4, 0),
    ];
}

/// `cublasLtMatmulDescAttributes_t`.
pub(crate) mod operation {
    use super::{Attribute, AttributeTable, c_int};

    pub(crate) const COMPUTE_TYPE: c_int = 0;
    pub(crate) const SCALE_TYPE: c_int = 1;
    pub(crate) const POINTER_MODE: c_int = 2;
    pub(crate) const TRANS_A: c_int = 3;
    pub(crate) const TRANS_B: c_int = 4;
    pub(crate) const TRANS_C: c_int = 5;
    pub(crate) const EPILOGUE: c_int = 7;
    pub(crate) const BIAS: c_int = 8;
    pub(crate) const BIAS_STRIDE: c_int = 10;
    pub(crate) const AUX: c_int = 11;
    pub(crate) const AUX_LEADING: c_int = 12;
    pub(crate) const AUX_STRIDE: c_int = 13;
    pub(crate) const A_SCALE: c_int = 17;
    pub(crate) const B_SCALE: c_int = 18;
    pub(crate) const D_SCALE: c_int = 20;
    pub(crate) const AMAX_D: c_int = 21;
    pub(crate) const AUX_TYPE: c_int = 22;
    pub(crate) const AUX_AMAX: c_int = 24;
    pub(crate) const BIAS_TYPE: c_int = 26;
    pub(crate) const A_SCALE_MODE: c_int = 31;
    pub(crate) const B_SCALE_MODE: c_int = 32;
    pub(crate) const D_SCALE_MODE: c_int = 34;

    pub(crate) static TABLE: &AttributeTable = &[
        Attribute(COMPUTE_TYPE, 4, 0),
        Attribute(SCALE_TYPE, 4, 0),
        Attribute(POINTER_MODE, 4, 0),
        Attribute(TRANS_A, 4, 0),
        Attribute(TRANS_B, 4, 0),
        Attribute(TRANS_C, 4, 0),
        // The fill mode: full.
        Attribute(6, 4, 2),
        Attribute(EPILOGUE, 4, 1),
        Attribute(BIAS, 8, 0),
        Attribute(BIAS_STRIDE, 8, 0),
        Attribute(AUX, 8, 0),
        Attribute(AUX_LEADING, 8, 0),
        Attribute(AUX_STRIDE, 8, 0),
        // The stride of alphas, and the number of multiprocessors.
        Attribute(14, 8, 0),
        Attribute(15, 4, 0),
        Attribute(A_SCALE, 8, 0),
        Attribute(B_SCALE, 8, 0),
        // The scale of C.
        Attribute(19, 8, 0),
        Attribute(D_SCALE, 8, 0),
        Attribute(AMAX_D, 8, 0),
        Attribute(AUX_TYPE, 4, -1),
        // The scale of the auxiliary output.
        Attribute(23, 8, 0),
        Attribute(AUX_AMAX, 8, 0),
        // Fast accumulation.
        Attribute(25, 1, 0),
        Attribute(BIAS_TYPE, 4, -1),
        Attribute(A_SCALE_MODE, 4, 0),
        Attribute(B_SCALE_MODE, 4, 0),
        Attribute(33, 4, 0),
        Attribute(D_SCALE_MODE, 4, 0),
        // The scales of the auxiliary output and of blocks of D.
        Attribute(35, 4, 0),
        Attribute(36, 8, 0),
        Attribute(37, 4, 0),
    ];
}

/// `cublasLtMatmulPreferenceAttributes_t`.
pub(crate) mod preference {
    use super::{Attribute, AttributeTable, c_int};

    pub(crate) const MAX_WORKSPACE: c_int = 1;
    pub(crate) const REDUCTION_SCHEMES: c_int = 3;
    /// The first value of [`REDUCTION_SCHEMES`].
    pub(crate) const ALL_SCHEMES: i64 = 7;

    pub(crate) static TABLE: &AttributeTable = &[
        // The mode of the search.
        Attribute(0, 4, 0),
        Attribute(MAX_WORKSPACE, 8, 0),
        Attribute(REDUCTION_SCHEMES, 4, ALL_SCHEMES),
        // Alignments of A, B, C and D.
        Attribute(5, 4, 256),
        Attribute(6, 4, 256),
        Attribute(7, 4, 256),
        Attribute(8, 4, 256),
        // The most waves, and a mask of implementations.
        Attribute(9, 4, 0),
        Attribute(12, 8, -1),
    ];
}

/// A descriptor: the value of each attribute of its table.
#[derive(Debug, Clone)]
pub(crate) struct DescriptorValues {
    table: &'static AttributeTable,
    pub(crate) values: Vec<i64>,
}

impl DescriptorValues {
    /// A new descriptor, in which these attributes are set.
    pub(crate) fn new(table: &'static AttributeTable, set: &[(c_int, i64)]) -> Self {
        let value = |row: &Attribute| {
            set.iter().find(|(number, _)| *number == row.0).map_or(row.2, |&(_, value)| value)
        };
        Self { table, values: table.iter().map(value).collect() }
    }

    /// Returns whether the descriptor has the attributes of this table.
    pub(crate) fn is_of(&self, table: &'static AttributeTable) -> bool {
        std::ptr::eq(self.table, table)
    }

    /// Returns the value of an attribute of the table.
    pub(crate) fn get(&self, number: c_int) -> i64 {
        let mut rows = self.table.iter().zip(&self.values);
        rows.find(|(row, _)| row.0 == number).map_or(0, |(_, &value)| value)
    }

    /// Returns the position of an attribute and its bytes.
    pub(crate) fn find(&self, number: c_int) -> Answer<(usize, usize)> {
        let row = self.table.iter().position(|row| row.0 == number);
        row.map(|at| (at, self.table[at].1)).ok_or(Code::INVALID_VALUE)
    }
}
