//! cuBLAS: its handles, and the products that candle and cudarc request.
//!
//! The simulator computes nothing. The memory that cuBLAS allocates for itself is not an allocation
//! of the program and does not reduce the capacity. NVML's figure contains an estimate of it, and
//! CUPTI reports it.

use std::ffi::{CStr, c_char, c_int, c_longlong};

use memcheck_core::cards::Card;

use crate::code::{Answer, Code};
use crate::driver::{VERSION, current};
use crate::ffi::{self, Out, Symbol, exports};
use crate::machine::{Handle, Library, with};

/// `cudaDataType_t` of f32 and f64.
const R_32F: c_int = 0;
const R_64F: c_int = 1;

/// The library that CUPTI names as the source of the workspace.
const LIBRARY: &CStr = c"libcublas.so.13";

/// Returns the size of a handle's workspace. An ESTIMATE, not measured: the size that cuBLAS's
/// documentation recommends, 32 MiB from Hopper on and 4 MiB before.
pub(crate) fn workspace(card: &Card) -> u64 {
    if card.compute.0 >= 9 { 32 << 20 } else { 4 << 20 }
}

exports! { ffi::cublas;
    fn cublasCreate_v2(handle: Out<Handle>) {
        if handle.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        handle.put(with(|machine| {
            let context = current::get();
            let device = machine.context(context)?.device;
            machine.schedule.library()?;
            let handle = machine.handle();
            let workspace = workspace(machine.devices[device].spec.card);
            machine.libraries.insert(handle, Library { context, workspace, ..Library::default() });
            machine.activity.record_allocation(device, handle, workspace, LIBRARY);
            Ok(handle)
        })?)
    }

    fn cublasDestroy_v2(handle: Handle) {
        with(|machine| {
            let library = machine.libraries.remove(&handle).ok_or(Code::INVALID_HANDLE)?;
            if let Ok(context) = machine.context(library.context) {
                let device = context.device;
                machine.activity.record_release(device, handle, library.workspace);
            }
            Ok(())
        })
    }

    fn cublasGetVersion_v2(_handle: Handle, version: Out<c_int>) {
        version.put(VERSION * 10)
    }

    fn cublasGetProperty(property: c_int, value: Out<c_int>) {
        value.put(match property {
            0 => VERSION / 1000,
            1 | 2 => 0,
            _ => return Err(Code::INVALID_VALUE),
        })
    }

    fn cublasSetStream_v2(handle: Handle, stream: Handle) {
        with(|machine| {
            let context = library(machine, handle)?.context;
            machine.stream_context(stream, context)?;
            library(machine, handle)?.stream = stream;
            Ok(())
        })
    }

    fn cublasGetStream_v2(handle: Handle, stream: Out<Handle>) {
        stream.put(read(handle, |library| library.stream)?)
    }

    fn cublasSetWorkspace_v2(handle: Handle, _workspace: u64, _bytes: usize) {
        read(handle, |_| ())
    }

    fn cublasSetPointerMode_v2(handle: Handle, mode: c_int) {
        read(handle, |library| library.pointer_mode = mode)
    }

    fn cublasGetPointerMode_v2(handle: Handle, mode: Out<c_int>) {
        mode.put(read(handle, |library| library.pointer_mode)?)
    }

    fn cublasSetMathMode(handle: Handle, mode: c_int) {
        read(handle, |library| library.math_mode = mode)
    }

    fn cublasGetMathMode(handle: Handle, mode: Out<c_int>) {
        mode.put(read(handle, |library| library.math_mode)?)
    }

    fn cublasSetAtomicsMode(handle: Handle, mode: c_int) {
        read(handle, |library| library.atomics_mode = mode)
    }

    fn cublasGetAtomicsMode(handle: Handle, mode: Out<c_int>) {
        mode.put(read(handle, |library| library.atomics_mode)?)
    }

    fn cublasSgemm_v2(
        handle: Handle, _ta: c_int, _tb: c_int, m: c_int, n: c_int, k: c_int, _alpha: u64,
        a: u64, _lda: c_int, b: u64, _ldb: c_int, _beta: u64, c: u64, ldc: c_int,
    ) {
        Product { m, n, k, a, b, c, kind: R_32F, ldc, stride: 0, batch: 1 }.run(handle)
    }

    fn cublasDgemm_v2(
        handle: Handle, _ta: c_int, _tb: c_int, m: c_int, n: c_int, k: c_int, _alpha: u64,
        a: u64, _lda: c_int, b: u64, _ldb: c_int, _beta: u64, c: u64, ldc: c_int,
    ) {
        Product { m, n, k, a, b, c, kind: R_64F, ldc, stride: 0, batch: 1 }.run(handle)
    }

    fn cublasGemmEx(
        handle: Handle, _ta: c_int, _tb: c_int, m: c_int, n: c_int, k: c_int, _alpha: u64,
        a: u64, _atype: c_int, _lda: c_int, b: u64, _btype: c_int, _ldb: c_int, _beta: u64,
        c: u64, kind: c_int, ldc: c_int, _compute: c_int, _algorithm: c_int,
    ) {
        Product { m, n, k, a, b, c, kind, ldc, stride: 0, batch: 1 }.run(handle)
    }

    fn cublasSgemmStridedBatched(
        handle: Handle, _ta: c_int, _tb: c_int, m: c_int, n: c_int, k: c_int, _alpha: u64,
        a: u64, _lda: c_int, _sa: c_longlong, b: u64, _ldb: c_int, _sb: c_longlong, _beta: u64,
        c: u64, ldc: c_int, stride: c_longlong, batch: c_int,
    ) {
        Product { m, n, k, a, b, c, kind: R_32F, ldc, stride, batch }.run(handle)
    }

    fn cublasDgemmStridedBatched(
        handle: Handle, _ta: c_int, _tb: c_int, m: c_int, n: c_int, k: c_int, _alpha: u64,
        a: u64, _lda: c_int, _sa: c_longlong, b: u64, _ldb: c_int, _sb: c_longlong, _beta: u64,
        c: u64, ldc: c_int, stride: c_longlong, batch: c_int,
    ) {
        Product { m, n, k, a, b, c, kind: R_64F, ldc, stride, batch }.run(handle)
    }

    fn cublasGemmStridedBatchedEx(
        handle: Handle, _ta: c_int, _tb: c_int, m: c_int, n: c_int, k: c_int, _alpha: u64,
        a: u64, _atype: c_int, _lda: c_int, _sa: c_longlong,
        b: u64, _btype: c_int, _ldb: c_int, _sb: c_longlong, _beta: u64,
        c: u64, kind: c_int, ldc: c_int, stride: c_longlong, batch: c_int,
        _compute: c_int, _algorithm: c_int,
    ) {
        Product { m, n, k, a, b, c, kind, ldc, stride, batch }.run(handle)
    }

    fn cublasSgemv_v2(
        handle: Handle, transposed: c_int, m: c_int, n: c_int, _alpha: u64,
        a: u64, _lda: c_int, x: u64, _incx: c_int, _beta: u64, y: u64, _incy: c_int,
    ) {
        vector(handle, [transposed, m, n], [a, x, y], R_32F)
    }

    fn cublasDgemv_v2(
        handle: Handle, transposed: c_int, m: c_int, n: c_int, _alpha: u64,
        a: u64, _lda: c_int, x: u64, _incx: c_int, _beta: u64, y: u64, _incy: c_int,
    ) {
        vector(handle, [transposed, m, n], [a, x, y], R_64F)
    }

    fn cublasSasum_v2(handle: Handle, _n: c_int, _x: u64, _incx: c_int, result: Out<f32>) {
        sum(handle, result)
    }

    fn cublasDasum_v2(handle: Handle, _n: c_int, _x: u64, _incx: c_int, result: Out<f64>) {
        sum(handle, result)
    }
}

/// Returns the version of the runtime with which cuBLAS was built.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cublasGetCudartVersion() -> usize {
    VERSION as usize
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cublasGetStatusName(status: c_int) -> *const c_char {
    text(status).as_ptr()
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cublasGetStatusString(status: c_int) -> *const c_char {
    text(status).as_ptr()
}

/// The functions that do not return a status.
pub(crate) static OTHERS: &[Symbol] = &[
    Symbol { name: "cublasGetCudartVersion", address: cublasGetCudartVersion as *const () },
    Symbol { name: "cublasGetStatusName", address: cublasGetStatusName as *const () },
    Symbol { name: "cublasGetStatusString", address: cublasGetStatusString as *const () },
];

fn text(status: c_int) -> &'static CStr {
    match status {
        0 => c"CUBLAS_STATUS_SUCCESS",
        1 => c"CUBLAS_STATUS_NOT_INITIALIZED",
        3 => c"CUBLAS_STATUS_ALLOC_FAILED",
        7 => c"CUBLAS_STATUS_INVALID_VALUE",
        13 => c"CUBLAS_STATUS_EXECUTION_FAILED",
        14 => c"CUBLAS_STATUS_INTERNAL_ERROR",
        15 => c"CUBLAS_STATUS_NOT_SUPPORTED",
        _ => c"<unknown>",
    }
}

fn library(machine: &mut crate::machine::Machine, handle: Handle) -> Answer<&mut Library> {
    machine.libraries.get_mut(&handle).ok_or(Code::INVALID_HANDLE)
}

fn read<T>(handle: Handle, work: impl FnOnce(&mut Library) -> T) -> Answer<T> {
    with(|machine| library(machine, handle).map(work))
}

/// A batch of column-major products, C = A B.
struct Product {
    m: c_int,
    n: c_int,
    k: c_int,
    a: u64,
    b: u64,
    c: u64,
    kind: c_int,
    ldc: c_int,
    /// Number of elements from one C to the next.
    stride: c_longlong,
    batch: c_int,
}

impl Product {
    fn run(self, handle: Handle) -> Answer {
        let sizes = [self.m, self.n, self.k, self.batch];
        if sizes.iter().any(|&size| size < 0) || self.ldc < self.m.max(1) {
            return Err(Code::INVALID_VALUE);
        }
        if sizes[..2].contains(&0) || self.batch == 0 {
            return Ok(());
        }
        if self.c == 0 || (self.k > 0 && (self.a == 0 || self.b == 0)) {
            return Err(Code::INVALID_VALUE);
        }
        let element = width(self.kind).ok_or(Code::NOT_SUPPORTED)?;
        let one = (self.n as u64 - 1) * self.ldc as u64 + self.m as u64;
        let all =
            (self.batch as u64 - 1).saturating_mul(self.stride.unsigned_abs()).saturating_add(one);
        count_write(handle, self.c, all.saturating_mul(element))
    }
}

fn vector(
    handle: Handle,
    [transposed, m, n]: [c_int; 3],
    [a, x, y]: [u64; 3],
    kind: c_int,
) -> Answer {
    if m < 0 || n < 0 || [a, x, y].contains(&0) {
        return Err(Code::INVALID_VALUE);
    }
    let rows = if transposed == 0 { m } else { n };
    count_write(handle, y, rows as u64 * width(kind).ok_or(Code::NOT_SUPPORTED)?)
}

fn sum<T: Default>(handle: Handle, result: Out<T>) -> Answer {
    let on_host = read(handle, |library| library.pointer_mode == 0)?;
    count_write(handle, 0, 0)?;
    if on_host { result.put(T::default()) } else { Ok(()) }
}

/// Counts a kernel of the library that wrote `bytes` at `to`.
fn count_write(handle: Handle, to: u64, bytes: u64) -> Answer {
    with(|machine| {
        let library = *library(machine, handle)?;
        machine.stream_context(library.stream, library.context)?;
        machine.touch()?;
        machine.launched();
        machine.overwritten(to, bytes);
        Ok(())
    })
}

/// Returns the bytes of an element of a `cudaDataType_t`.
fn width(kind: c_int) -> Option<u64> {
    Some(match kind {
        3 | 8 | 28..=30 => 1,
        2 | 14 | 20 | 22 | 7 | 9 => 2,
        0 | 6 | 15 | 10 | 12 | 21 | 23 => 4,
        1 | 4 | 11 | 13 | 24 | 26 => 8,
        5 | 25 | 27 => 16,
        _ => return None,
    })
}
