//! Tests that call the functions as C does, and what they share.

mod errors;
mod values;

use std::ffi::c_int;
use std::ptr::{null, null_mut};

use half::{bf16, f16};
use memcheck_kernels::Memory as _;

use super::heuristic::{HeuristicResult, MatmulAlgorithm};
use super::*;
use crate::attributes::operation as op;
use crate::driver::current;
use crate::driver::tests::{context, cuMemcpyDtoH_v2, cuMemcpyHtoD_v2, machine, out};
use crate::hooked::cuMemAlloc_v2;

const R_32F: c_int = 0;
const R_64F: c_int = 1;
const R_16F: c_int = 2;
const R_8I: c_int = 3;
const R_32I: c_int = 10;
const R_16BF: c_int = 14;
const R_8F: c_int = 28;
const COMPUTE_16F: c_int = 64;
const COMPUTE_32F: c_int = 68;
const COMPUTE_64F: c_int = 70;
const COMPUTE_32I: c_int = 72;

/// What a status is called.
const OK: c_int = 0;
const NOT_INITIALIZED: c_int = 1;
const INVALID: c_int = 7;
const NOT_SUPPORTED: c_int = 15;

fn allocate(bytes: usize) -> u64 {
    let mut address = 0;
    // SAFETY: the result pointer points to a local.
    assert_eq!(unsafe { cuMemAlloc_v2(&mut address, bytes) }, OK);
    address
}

fn upload(bytes: &[u8]) -> u64 {
    let address = allocate(bytes.len());
    // SAFETY: the host end has the given length.
    let status = unsafe { cuMemcpyHtoD_v2(address, bytes.as_ptr() as *mut c_void, bytes.len()) };
    assert_eq!(status, OK);
    address
}

fn download(address: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    // SAFETY: the host end has the given length.
    assert_eq!(unsafe { cuMemcpyDtoH_v2(bytes.as_mut_ptr().cast(), address, length) }, OK);
    bytes
}

/// Whether all of these bytes are known.
fn is_known(address: u64, length: u64) -> bool {
    let known = with(|machine| {
        let span = machine.span(address, length).unwrap();
        Ok(machine.values.bytes(span).is_some())
    });
    known.unwrap()
}

/// A number in a type of the matrices.
fn encoded(kind: c_int, value: f64) -> Vec<u8> {
    match kind {
        R_32F => (value as f32).to_ne_bytes().to_vec(),
        R_64F => value.to_ne_bytes().to_vec(),
        R_16F => f16::from_f64(value).to_ne_bytes().to_vec(),
        R_16BF => bf16::from_f64(value).to_ne_bytes().to_vec(),
        R_32I => (value as i32).to_ne_bytes().to_vec(),
        // 1 is the only number of these tests in 8 bits: 0.111.000.
        R_8F => vec![if value == 1.0 { 0x38 } else { 0 }],
        _ => vec![value as i8 as u8],
    }
}

fn width(kind: c_int) -> usize {
    encoded(kind, 0.0).len()
}

fn decoded(kind: c_int, bytes: &[u8]) -> f64 {
    match kind {
        R_32F => f32::from_ne_bytes(bytes.try_into().unwrap()).into(),
        R_64F => f64::from_ne_bytes(bytes.try_into().unwrap()),
        R_16F => f16::from_ne_bytes(bytes.try_into().unwrap()).to_f64(),
        _ => bf16::from_ne_bytes(bytes.try_into().unwrap()).to_f64(),
    }
}

fn all(kind: c_int, values: impl IntoIterator<Item = f64>) -> Vec<u8> {
    values.into_iter().flat_map(|value| encoded(kind, value)).collect()
}

type SetAttribute = unsafe extern "C" fn(Handle, c_int, In<c_void>, usize) -> c_int;

/// Sets an attribute of any type whose bytes are those of `value`.
fn set<T>(function: SetAttribute, descriptor: Handle, attribute: c_int, value: T) -> c_int {
    // SAFETY: the value is readable during the call.
    unsafe { function(descriptor, attribute, In::new((&raw const value).cast()), size_of::<T>()) }
}

/// A product of matrices of 2 x 3 and 3 x 4, whose descriptors a test changes.
struct Setup {
    handle: Handle,
    operation: Handle,
    preference: Handle,
    layouts: [Handle; 4],
    addresses: [u64; 4],
    scales: [Vec<u8>; 2],
    workspace: (u64, usize),
    algorithm: Option<MatmulAlgorithm>,
}

impl Setup {
    fn new(kind: c_int) -> Self {
        let compute = if kind == R_64F { COMPUTE_64F } else { COMPUTE_32F };
        let scale = if kind == R_64F { R_64F } else { R_32F };
        Self::of([(kind, 2, 3), (kind, 3, 4), (kind, 2, 4), (kind, 2, 4)], compute, scale)
    }

    /// Of the types, rows and columns of A, B, C and D, stored by columns.
    fn of(matrices: [(c_int, u64, u64); 4], compute: c_int, scale: c_int) -> Self {
        if current::get() == 0 {
            context(0);
        }
        let (mut handle, mut operation, mut preference) = (0, 0, 0);
        // SAFETY: the result pointers point to locals.
        unsafe {
            assert_eq!(cublasLtCreate(out(&mut handle)), OK);
            assert_eq!(cublasLtMatmulDescCreate(out(&mut operation), compute, scale), OK);
            assert_eq!(cublasLtMatmulPreferenceCreate(out(&mut preference)), OK);
        }
        let layouts = matrices.map(|(kind, rows, columns)| {
            let (mut layout, leading) = (0, rows as i64);
            // SAFETY: the result pointer points to a local.
            let status = unsafe {
                cublasLtMatrixLayoutCreate(out(&mut layout), kind, rows, columns, leading)
            };
            assert_eq!(status, OK);
            layout
        });
        let addresses = matrices
            .map(|(kind, rows, columns)| upload(&all(kind, (0..rows * columns).map(|_| 1.0))));
        let scales = [encoded(scale, 1.0), encoded(scale, 0.0)];
        let (workspace, algorithm) = ((0, 0), None);
        Self { handle, operation, preference, layouts, addresses, scales, workspace, algorithm }
    }

    fn operation<T>(&self, attribute: c_int, value: T) {
        let status = set(cublasLtMatmulDescSetAttribute, self.operation, attribute, value);
        assert_eq!(status, OK, "{attribute}");
    }

    fn layout<T>(&self, matrix: usize, attribute: c_int, value: T) {
        let descriptor = self.layouts[matrix];
        assert_eq!(set(cublasLtMatrixLayoutSetAttribute, descriptor, attribute, value), OK);
    }

    fn preference<T>(&self, attribute: c_int, value: T) {
        let descriptor = self.preference;
        assert_eq!(set(cublasLtMatmulPreferenceSetAttribute, descriptor, attribute, value), OK);
    }

    fn heuristic(&self) -> Result<HeuristicResult, c_int> {
        let [a, b, c, d] = self.layouts;
        let mut results = Vec::with_capacity(1);
        let mut count = 0;
        // SAFETY: the result pointers have room for one result.
        let status = unsafe {
            let results = Out::new(results.as_mut_ptr());
            cublasLtMatmulAlgoGetHeuristic(
                self.handle,
                self.operation,
                a,
                b,
                c,
                d,
                self.preference,
                1,
                results,
                out(&mut count),
            )
        };
        // SAFETY: the call wrote `count` results.
        unsafe { results.set_len(count as usize) };
        results.pop().ok_or(status)
    }

    fn run(&self) -> c_int {
        let [a, b, c, d] = self.addresses;
        let [a_layout, b_layout, c_layout, d_layout] = self.layouts;
        let [alpha, beta] = self.scales.each_ref().map(|scale| scale.as_ptr() as u64);
        let (workspace, bytes) = self.workspace;
        let algorithm = self.algorithm.as_ref().map_or(null(), std::ptr::from_ref);
        // SAFETY: the scales have the type of the descriptor, and the algorithm is null or readable.
        unsafe {
            let algorithm = In::new(algorithm);
            cublasLtMatmul(
                self.handle,
                self.operation,
                alpha,
                a,
                a_layout,
                b,
                b_layout,
                beta,
                c,
                c_layout,
                d,
                d_layout,
                algorithm,
                workspace,
                bytes,
                0,
            )
        }
    }
}

/// A product of 8 bits, in the only layout that has it.
fn of_8_bits(output: c_int) -> Setup {
    let c = if output == R_8F { R_16BF } else { output };
    let matrices = [(R_8F, 16, 16), (R_8F, 16, 2), (c, 16, 2), (output, 16, 2)];
    let setup = Setup::of(matrices, COMPUTE_32F, R_32F);
    setup.operation(op::TRANS_A, 1_i32);
    setup
}

#[test]
fn attributes_have_their_widths_and_first_values() {
    let setup = Setup::new(R_32F);
    let layout = setup.layouts[0];
    let (mut batch, mut written, mut number) = (0_i32, 0, 0_u64);
    // SAFETY: the pointers are null or point to locals of the type of the attribute.
    unsafe {
        let null = || In::new(null());
        let get = cublasLtMatrixLayoutGetAttribute;
        assert_eq!(get(layout, 5, out(&mut batch).cast(), 4, out(&mut written)), OK);
        assert_eq!((batch, written), (1, 4));
        // With a size of 0, the size.
        assert_eq!(get(layout, 4, Out::new(null_mut()), 0, out(&mut written)), OK);
        assert_eq!(written, 8);
        assert_eq!(get(layout, 4, Out::new(null_mut()), 0, Out::none()), INVALID);
        assert_eq!(get(layout, 4, out(&mut number).cast(), 4, Out::none()), INVALID);
        assert_eq!(get(layout, 4, out(&mut number).cast(), 8, Out::none()), OK);
        assert_eq!(number, 2);
        assert_eq!(get(layout, 99, out(&mut number).cast(), 8, Out::none()), INVALID);
        assert_eq!(get(setup.operation, 4, out(&mut number).cast(), 8, Out::none()), INVALID);
        let set_null = cublasLtMatmulDescSetAttribute(setup.operation, op::TRANS_A, null(), 4);
        assert_eq!(set_null, INVALID);
        let get = cublasLtMatmulDescGetAttribute;
        assert_eq!(get(setup.operation, op::AUX_TYPE, out(&mut batch).cast(), 4, Out::none()), OK);
        assert_eq!(batch, -1);
        let get = cublasLtMatmulPreferenceGetAttribute;
        assert_eq!(get(setup.preference, 8, out(&mut batch).cast(), 4, Out::none()), OK);
        assert_eq!(batch, 256);
    }
    assert_eq!(set(cublasLtMatmulDescSetAttribute, setup.operation, op::TRANS_A, 1_i64), INVALID);
    assert_eq!(set(cublasLtMatmulDescSetAttribute, setup.operation, 25, 1_i8), OK);
    assert_eq!(set(cublasLtMatmulDescSetAttribute, setup.operation, 9, 1_i32), INVALID);
}

#[test]
fn handles_and_descriptors_are_created_and_destroyed_once() {
    machine();
    let (mut handle, mut layout) = (0, 0);
    // SAFETY: the result pointers are null or point to locals.
    unsafe {
        // Without a current context, that of the first device becomes current.
        assert_eq!(current::get(), 0);
        assert_eq!(cublasLtCreate(Out::none()), INVALID);
        assert_eq!(cublasLtCreate(out(&mut handle)), OK);
        assert_ne!(current::get(), 0);
        assert_eq!(cublasLtDestroy(handle), OK);
        assert_eq!(cublasLtDestroy(handle), NOT_INITIALIZED);
        assert_eq!(cublasLtDestroy(0), INVALID);
        assert_eq!(cublasLtMatrixLayoutCreate(Out::none(), 0, 1, 1, 1), INVALID);
        // Like the library, which refuses wrong sizes when a product is requested.
        assert_eq!(cublasLtMatrixLayoutCreate(out(&mut layout), 99, 4, 3, -2), OK);
        assert_eq!(cublasLtMatmulDescDestroy(layout), INVALID);
        assert_eq!(cublasLtMatrixLayoutDestroy(layout), OK);
        assert_eq!(cublasLtMatrixLayoutDestroy(layout), INVALID);
        assert_eq!(cublasLtMatrixLayoutDestroy(0), OK);
        assert_eq!(cublasLtGetVersion() / 10, cublasLtGetCudartVersion());
        let name = CStr::from_ptr(cublasLtGetStatusName(INVALID));
        assert_eq!(name, c"CUBLAS_STATUS_INVALID_VALUE");
        let text = CStr::from_ptr(cublasLtGetStatusString(NOT_INITIALIZED));
        assert_eq!(text, c"the library was not initialized");
        let (mut property, mut capacity) = (0, 0);
        assert_eq!(cublasLtGetProperty(0, out(&mut property)), OK);
        assert_eq!(cublasLtGetProperty(3, out(&mut property)), INVALID);
        assert_eq!(cublasLtHeuristicsCacheGetCapacity(out(&mut capacity)), OK);
        assert_eq!((property, capacity), (13, 8192));
    }
}
