//! A product that a program requests: the descriptors of its operation and its matrices, checked as
//! cuBLASLt checks them.
//!
//! The rules are those of the documentation of `cublasLtMatmul`, and of the messages that cuBLASLt
//! 13.0.2 has for its log.

use std::ffi::c_int;

use memcheck_kernels::Activation;
use memcheck_limits::cards::Card;

use crate::attributes::{DescriptorValues, layout, operation as op};
use crate::code::{Answer, Code};
use crate::cublas::{R_16BF, R_16F, R_32F, R_64F, width};
use crate::machine::{Handle, Machine};

/// More values of `cudaDataType_t`.
const R_8I: c_int = 3;
const R_32I: c_int = 10;
const C_32F: c_int = 4;
const C_64F: c_int = 5;
pub(super) const R_8F_E4M3: c_int = 28;
const R_8F_E5M2: c_int = 29;

/// `CUBLASLT_ORDER_COL` and `CUBLASLT_ORDER_ROW`; the others are orders of tiles.
const BY_COLUMNS: i64 = 0;
const BY_ROWS: i64 = 1;

/// A matrix of a product and its repetition.
#[derive(Debug, Clone, Copy)]
pub(super) struct Matrix {
    /// Its `cudaDataType_t`.
    pub(super) kind: c_int,
    order: i64,
    rows: u64,
    columns: u64,
    pub(super) leading: u64,
    pub(super) stride: i64,
    batch: u64,
    /// True if the batch is an array of pointers.
    pub(super) is_array: bool,
}

impl Matrix {
    fn new(attributes: &DescriptorValues) -> Answer<Self> {
        let size = |number| u64::try_from(attributes.get(number)).map_err(|_| Code::INVALID_VALUE);
        let batch = size(layout::BATCH_COUNT)?;
        let order = attributes.get(layout::ORDER);
        if batch == 0 || !(BY_COLUMNS..=4).contains(&order) {
            return Err(Code::INVALID_VALUE);
        }
        if attributes.get(layout::PLANE_OFFSET) != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        Ok(Self {
            kind: attributes.get(layout::TYPE) as c_int,
            order,
            rows: size(layout::ROWS)?,
            columns: size(layout::COLUMNS)?,
            leading: size(layout::LEADING)?,
            stride: attributes.get(layout::BATCH_STRIDE),
            batch,
            is_array: attributes.get(layout::BATCH_MODE) != 0,
        })
    }

    pub(super) fn is_by_rows(&self) -> bool {
        self.order == BY_ROWS
    }

    pub(super) fn is_tiled(&self) -> bool {
        self.order > BY_ROWS
    }

    fn transposed(&self, is_transposed: bool) -> [u64; 2] {
        if is_transposed { [self.columns, self.rows] } else { [self.rows, self.columns] }
    }

    /// The elements of a line, and the number of lines.
    fn lines(&self) -> [u64; 2] {
        self.transposed(self.is_by_rows())
    }

    /// The leading dimension must not let lines overlap.
    fn has_room(&self) -> bool {
        self.is_tiled() || self.leading >= self.lines()[0]
    }

    /// Returns the bytes from the first to the last element of all matrices of the batch.
    pub(super) fn extent(&self) -> Option<u64> {
        let [length, lines] = self.lines();
        let one = lines.checked_sub(1)?.saturating_mul(self.leading).saturating_add(length);
        let rest = (self.batch - 1).saturating_mul(self.stride.unsigned_abs());
        Some(rest.saturating_add(one).saturating_mul(width(self.kind)?))
    }

    pub(super) fn is_8_bits(&self) -> bool {
        matches!(self.kind, R_8F_E4M3 | R_8F_E5M2)
    }
}

/// `cublasLtEpilogue_t`: its bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bits(i64);

impl Bits {
    const RELU: i64 = 2;
    const BIAS: i64 = 4;
    const BIAS_GRADIENT: i64 = 16;
    const GELU: i64 = 32;
    const AUX: i64 = 128;
    const GRADIENT_A: i64 = 256;
    const GRADIENT_B: i64 = 512;
    /// The gradients of ReLU and GELU.
    const DERIVATIVES: i64 = 8 | 64;
    /// The values that the enumeration has.
    const KNOWN: [i64; 16] = [1, 2, 4, 6, 32, 36, 130, 134, 136, 152, 160, 164, 192, 208, 256, 512];

    fn has(self, bits: i64) -> bool {
        self.0 & bits != 0
    }

    /// Whether the output can be computed. Those of gradients and of an unknown number are unknown.
    pub(super) fn is_computed(self) -> bool {
        Self::KNOWN.contains(&self.0) && !self.has(Self::DERIVATIVES)
    }

    pub(super) fn activation(self) -> Option<Activation> {
        let relu = self.has(Self::RELU).then_some(Activation::Relu);
        relu.or(self.has(Self::GELU).then_some(Activation::Gelu))
    }

    pub(super) fn has_bias(self) -> bool {
        self.has(Self::BIAS)
    }

    /// The gradient of a bias, which is an output.
    pub(super) fn has_bias_gradient(self) -> bool {
        self.has(Self::BIAS_GRADIENT | Self::GRADIENT_A | Self::GRADIENT_B)
    }

    pub(super) fn is_gradient_of_columns(self) -> bool {
        self.has(Self::GRADIENT_B)
    }

    /// An auxiliary matrix that is written, and not read for a derivative.
    pub(super) fn writes_aux(self) -> bool {
        self.has(Self::AUX) && !self.has(Self::DERIVATIVES)
    }

    /// A matrix of bits, for ReLU, or of elements.
    pub(super) fn is_aux_of_bits(self) -> bool {
        self.has(Self::RELU | 8)
    }
}

/// A product whose descriptors agree.
#[derive(Debug, Clone, Copy)]
pub(super) struct MatmulProblem {
    pub(super) m: u64,
    pub(super) n: u64,
    pub(super) k: u64,
    pub(super) batch: u64,
    /// A, B, C and D.
    pub(super) matrices: [Matrix; 4],
    pub(super) transposed: [bool; 2],
    /// The `cublasComputeType_t`, and the `cudaDataType_t` of alpha and beta.
    compute: c_int,
    pub(super) scale: c_int,
    pub(super) pointer_mode: i64,
    pub(super) epilogue: Bits,
    pub(super) bias: u64,
    pub(super) bias_stride: i64,
    pub(super) bias_kind: c_int,
    pub(super) aux: u64,
    pub(super) aux_leading: u64,
    pub(super) aux_stride: i64,
    pub(super) aux_kind: c_int,
    /// Addresses of the factors of A, B and D, of which 0 is none, and whether each is one number.
    pub(super) factors: [(u64, bool); 3],
    /// Where the largest absolute values of D and of the auxiliary matrix are stored, or 0.
    pub(super) largest: [u64; 2],
}

impl MatmulProblem {
    /// Reads and checks the descriptors of an operation and of A, B, C and D.
    pub(super) fn new(
        machine: &Machine,
        card: &Card,
        operation: Handle,
        matrices: [Handle; 4],
    ) -> Answer<Self> {
        let find = |handle, table| {
            let found = machine.attributes.get(&handle).filter(|found| found.is_of(table));
            found.ok_or(Code::INVALID_VALUE)
        };
        let [a, b, c, d] = matrices;
        // Without a layout of C, it is that of D.
        let matrices = [a, b, if c == 0 { d } else { c }, d];
        let matrix = |handle| find(handle, layout::TABLE).and_then(Matrix::new);
        let [a, b, c, d] = matrices.map(matrix);
        let matrices = [a?, b?, c?, d?];
        let operation = find(operation, op::TABLE)?;
        let get = |number| operation.get(number);
        let address = |number| get(number) as u64;
        let transposed = [op::TRANS_A, op::TRANS_B].map(|number| get(number) != 0);
        let [m, k] = matrices[0].transposed(transposed[0]);
        let n = matrices[1].transposed(transposed[1])[1];
        let d = matrices[3].kind;
        let or_d = |kind: i64| if kind < 0 { d } else { kind as c_int };
        let problem = Self {
            m,
            n,
            k,
            batch: matrices[3].batch,
            matrices,
            transposed,
            compute: get(op::COMPUTE_TYPE) as c_int,
            scale: get(op::SCALE_TYPE) as c_int,
            pointer_mode: get(op::POINTER_MODE),
            epilogue: Bits(get(op::EPILOGUE)),
            bias: address(op::BIAS),
            bias_stride: get(op::BIAS_STRIDE),
            bias_kind: match get(op::BIAS_TYPE) {
                kind if kind >= 0 => kind as c_int,
                _ if matrices[0].is_8_bits() && matrices[3].is_8_bits() => matrices[2].kind,
                _ if matrices[0].is_8_bits() && d == R_32F => R_16BF,
                _ => d,
            },
            aux: address(op::AUX),
            aux_leading: address(op::AUX_LEADING),
            aux_stride: get(op::AUX_STRIDE),
            aux_kind: or_d(get(op::AUX_TYPE)),
            factors: [
                (address(op::A_SCALE), get(op::A_SCALE_MODE) == 0),
                (address(op::B_SCALE), get(op::B_SCALE_MODE) == 0),
                (address(op::D_SCALE), get(op::D_SCALE_MODE) == 0),
            ],
            largest: [address(op::AMAX_D), address(op::AUX_AMAX)],
        };
        problem.check_sizes()?;
        problem.check_epilogue()?;
        if get(op::TRANS_C) != 0 || !problem.has_supported_types() || !problem.runs_on(card) {
            return Err(Code::NOT_SUPPORTED);
        }
        Ok(problem)
    }

    fn check_sizes(&self) -> Answer {
        let [a, b, c, d] = &self.matrices;
        let inner = b.transposed(self.transposed[1])[0];
        let is_equal = self.k == inner
            && [d.rows, d.columns] == [self.m, self.n]
            && [c.rows, c.columns, c.order as u64] == [d.rows, d.columns, d.order as u64]
            && [a, b, c].iter().all(|it| it.batch == d.batch && it.is_array == d.is_array);
        // C repeats a line if its leading dimension is 0.
        let has_room = a.has_room() && b.has_room() && (c.has_room() || c.leading == 0);
        let is_valid = is_equal && has_room && d.has_room() && d.leading > 0;
        if is_valid { Ok(()) } else { Err(Code::INVALID_VALUE) }
    }

    fn check_epilogue(&self) -> Answer {
        let Self { epilogue, .. } = self;
        // A number that this CUDA does not have may need either.
        if !Bits::KNOWN.contains(&epilogue.0) {
            return Ok(());
        }
        let needs_bias = epilogue.has_bias() || epilogue.has_bias_gradient();
        let needs_aux = epilogue.has(Bits::AUX);
        let multiple = if epilogue.is_aux_of_bits() { 128 } else { 8 };
        if needs_bias == (self.bias == 0)
            || needs_aux == (self.aux == 0)
            || (needs_aux
                && (!self.aux_leading.is_multiple_of(multiple) || self.aux_leading < self.m))
        {
            return Err(Code::INVALID_VALUE);
        }
        let [a, .., d] = &self.matrices;
        let allows_epilogue = !d.is_by_rows()
            && !d.is_array
            && ([R_16F, R_16BF, R_32F, R_64F].contains(&a.kind) || a.is_8_bits() || a.is_tiled());
        if epilogue.0 == 1 || allows_epilogue { Ok(()) } else { Err(Code::NOT_SUPPORTED) }
    }

    /// The table of types in the documentation of `cublasLtMatmul`.
    fn has_supported_types(&self) -> bool {
        let [a, b, c, d] = self.matrices.map(|matrix| matrix.kind);
        let all = |kind| [a, b, c, d, self.scale] == [kind; 5];
        let outputs = |kinds: &[c_int]| c == d && kinds.contains(&d);
        match self.compute {
            64 | 65 => all(R_16F),
            70 | 71 | 79 => all(R_64F) || all(C_64F),
            72 | 73 if a == R_8I && b == R_8I => match self.scale {
                R_32I => outputs(&[R_32I]),
                R_32F => outputs(&[R_8I]),
                _ => false,
            },
            68 | 69 if self.scale == R_32F => match (a, b) {
                (R_32F, R_32F) => outputs(&[R_32F]),
                (R_16F, R_16F) => outputs(&[R_16F, R_32F]),
                (R_16BF, R_16BF) => outputs(&[R_16BF, R_32F]),
                (R_8I, R_8I) => outputs(&[R_32F]),
                (R_8F_E4M3, R_8F_E4M3 | R_8F_E5M2) | (R_8F_E5M2, R_8F_E4M3) => {
                    outputs(&[R_16BF, R_16F, R_32F])
                        || (self.matrices[3].is_8_bits() && [R_16BF, R_16F].contains(&c))
                }
                _ => false,
            },
            68 | 69 => all(C_32F),
            74 | 75 | 77 | 78 => all(R_32F) || all(C_32F),
            _ => false,
        }
    }

    /// Products of 8 bits need a card that has them, and matrices in one layout.
    fn runs_on(&self, card: &Card) -> bool {
        let [a, b, ..] = &self.matrices;
        if !a.is_8_bits() {
            return true;
        }
        let is_in_layout = self.transposed == [true, false] && !a.is_by_rows() && !b.is_by_rows();
        // Blackwell's data centre cards have the others too.
        let has_every_layout = [10, 11].contains(&card.compute.0);
        let is_multiple = [self.m, self.k, a.leading, b.leading].iter().all(|it| it % 16 == 0);
        card.compute >= (8, 9) && (is_in_layout || has_every_layout) && is_multiple
    }

    /// The bytes of the type of a sum.
    pub(super) fn bytes_of_sum(&self) -> u64 {
        width(self.scale).unwrap_or(4).max(4)
    }
}
