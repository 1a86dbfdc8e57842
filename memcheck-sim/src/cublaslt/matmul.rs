//! The launch of a product: what it computes and what it overwrites.

use std::ffi::c_int;

use super::problem::{MatmulProblem, Matrix, R_8F_E4M3};
use crate::code::{Answer, Code};
use crate::cublas::{self, width};
use crate::machine::Machine;
use memcheck_kernels::{
    Bias, Epilogue, Kind, Memory as _, Operand, Product, Scalars, launch_opaque,
};

/// `CUBLASLT_POINTER_MODE_HOST`; in mode 1, alpha and beta are on the device, and in the others
/// vectors.
const ON_HOST: i64 = 0;
const ON_DEVICE: i64 = 1;

/// A product with its addresses.
#[derive(Debug, Clone, Copy)]
pub(super) struct Matmul {
    pub(super) problem: MatmulProblem,
    /// A, B, C and D.
    pub(super) addresses: [u64; 4],
    /// The addresses of alpha and beta.
    pub(super) scales: [u64; 2],
    /// The address and the bytes of the workspace that the algorithm uses.
    pub(super) workspace: (u64, u64),
}

impl Matmul {
    /// Returns alpha and beta if they are numbers on the host, which are read at the call.
    pub(super) fn scales_on_host(&self, machine: &Machine) -> Option<Scalars> {
        (self.problem.pointer_mode == ON_HOST).then(|| self.read_scales(machine, true))?
    }

    fn read_scales(&self, machine: &Machine, on_host: bool) -> Option<Scalars> {
        let kind = cublas::kind(self.problem.scale)?;
        let [alpha, beta] =
            self.scales.map(|address| cublas::read_scale(machine, address, kind, on_host));
        Some(Scalars { alpha: alpha?, beta: beta? })
    }

    /// Checks that no matrix is missing that the product uses. Scales on the device are not known yet.
    pub(super) fn check_addresses(&self, scales: Option<Scalars>) -> Answer {
        let [a, b, c, d] = self.addresses.map(|address| address != 0);
        let uses = |scale: fn(Scalars) -> f64| scales.is_some_and(|it| scale(it) != 0.0);
        let uses_inputs = self.problem.k > 0 && uses(|scales| scales.alpha);
        let uses_c = uses(|scales| scales.beta);
        let is_complete = d && (a && b || !uses_inputs) && (c || !uses_c);
        let has_scales = self.scales.iter().all(|&address| address != 0);
        if is_complete && has_scales { Ok(()) } else { Err(Code::INVALID_VALUE) }
    }

    /// Launches the product. `scales` are those of the host.
    pub(super) fn run(&self, machine: &mut Machine, scales: Option<Scalars>) {
        machine.launched();
        let Self { problem, addresses, workspace: (workspace, bytes), .. } = *self;
        if bytes > 0 {
            machine.overwritten(workspace, bytes);
        }
        let scales = match problem.pointer_mode {
            ON_DEVICE => self.read_scales(machine, false),
            _ => scales,
        };
        // The inputs are read before anything becomes unknown, because an output can be one of them.
        match self.product(machine, scales) {
            Some(product) => product.run(machine),
            None if problem.matrices[3].is_array => {
                overwrite_array(machine, addresses[3], problem.batch)
            }
            None if problem.matrices[3].is_tiled() => machine.overwritten_from(addresses[3]),
            None => machine.overwritten(addresses[3], problem.matrices[3].extent().unwrap_or(0)),
        }
        self.overwrite_others(machine);
    }

    /// Returns the product; `None` if it is not computed.
    fn product(&self, machine: &Machine, scales: Option<Scalars>) -> Option<Product> {
        let problem = &self.problem;
        let [a, b, c, d] = problem.matrices;
        let is_plain = problem.matrices.iter().all(|it| !it.is_tiled() && !it.is_array);
        let inputs = kind(a.kind).filter(|_| a.kind == b.kind)?;
        let output = kind(d.kind)?;
        if !is_plain || !problem.epilogue.is_computed() {
            return None;
        }
        let operand = |number: usize, matrix: &Matrix, transposed: bool| Operand {
            address: self.addresses[number],
            transposed,
            leading: matrix.leading,
            stride: matrix.stride,
        };
        // An output by rows is the transposed output by columns: D' = op(B)' op(A)'.
        let is_turned = d.is_by_rows();
        let [of_a, of_b] = problem.transposed;
        let first = operand(0, &a, of_a ^ a.is_by_rows() ^ is_turned);
        let second = operand(1, &b, of_b ^ b.is_by_rows() ^ is_turned);
        let addend = (operand(2, &c, false), kind(c.kind)?);
        let [factor_a, factor_b, factor_d] =
            [0, 1, 2].map(|number| self.factor(machine, number, inputs, output));
        let scales = scales.and_then(|Scalars { alpha, beta }| {
            // cuBLASLt multiplies in the type of the scales.
            let factor = factor_a? as f32 * factor_b? as f32;
            let alpha = if factor == 1.0 { alpha } else { f64::from(alpha as f32 * factor) };
            Some(Scalars { alpha, beta })
        });
        let bias = problem.epilogue.has_bias().then(|| {
            let kind = kind(problem.bias_kind)?;
            Some(Bias { address: problem.bias, kind, stride: problem.bias_stride })
        });
        let epilogue = Epilogue {
            addend: Some(addend),
            bias: bias.map_or(Some(None), |bias| bias.map(Some))?,
            activation: problem.epilogue.activation(),
            factor: Some(factor_d?).filter(|&factor| factor != 1.0),
        };
        let (m, n) = if is_turned { (problem.n, problem.m) } else { (problem.m, problem.n) };
        let [a, b] = if is_turned { [second, first] } else { [first, second] };
        let (k, batch, c) = (problem.k, problem.batch, operand(3, &d, false));
        Some(Product { m, n, k, batch, inputs, output, a, b, c, scales, epilogue })
    }

    /// Returns the factor of A, B or D, which only matrices of 8 bits have; `None` if it is unknown.
    fn factor(&self, machine: &Machine, number: usize, inputs: Kind, output: Kind) -> Option<f64> {
        let (address, is_number) = self.problem.factors[number];
        let kind = if number == 2 { output } else { inputs };
        if kind != Kind::F8 || address == 0 {
            return Some(1.0);
        }
        is_number.then(|| cublas::read_scale(machine, address, Kind::F32, false))?
    }

    /// Makes the outputs beside D unknown: gradients of a bias, auxiliary matrices and maxima.
    fn overwrite_others(&self, machine: &mut Machine) {
        let MatmulProblem { epilogue, m, n, batch, .. } = self.problem;
        let all = |stride: i64, one: u64| {
            (batch - 1).saturating_mul(stride.unsigned_abs()).saturating_add(one)
        };
        if epilogue.has_bias_gradient() {
            let count = if epilogue.is_gradient_of_columns() { n } else { m };
            let element = width(self.problem.bias_kind).unwrap_or(1);
            let bytes = all(self.problem.bias_stride, count).saturating_mul(element);
            machine.overwritten(self.problem.bias, bytes);
        }
        if epilogue.writes_aux() {
            let columns = n.saturating_sub(1).saturating_mul(self.problem.aux_leading);
            let count = all(self.problem.aux_stride, columns.saturating_add(m));
            let bytes = match epilogue.is_aux_of_bits() {
                true => count.div_ceil(8),
                false => count.saturating_mul(width(self.problem.aux_kind).unwrap_or(1)),
            };
            machine.overwritten(self.problem.aux, bytes);
        }
        for address in self.problem.largest.into_iter().filter(|&address| address != 0) {
            machine.overwritten(address, Kind::F32.width());
        }
    }
}

/// Makes the matrices of an array of pointers unknown, or everything if the array is unknown.
fn overwrite_array(machine: &mut Machine, array: u64, count: u64) {
    let Some(pointers) = machine.known_bytes(array, count.saturating_mul(8)) else {
        return launch_opaque(machine);
    };
    for pointer in pointers.chunks_exact(8).filter_map(|bytes| bytes.try_into().ok()) {
        machine.overwritten_from(u64::from_ne_bytes(pointer));
    }
}

/// Returns the element type of a `cudaDataType_t` in which products are computed.
fn kind(number: c_int) -> Option<Kind> {
    if number == R_8F_E4M3 { Some(Kind::F8) } else { cublas::kind(number) }
}
