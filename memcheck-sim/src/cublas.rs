//! cuBLAS: its handles, and the products that candle and cudarc request.
//!
//! The memory that cuBLAS allocates for itself is not an allocation
//! of the program and does not reduce the capacity. NVML's figure contains an estimate of it, and
//! CUPTI reports it.

use std::ffi::{CStr, c_char, c_int, c_longlong};

use half::f16;
use memcheck_limits::cards::Card;

use crate::code::{Answer, Code};
use crate::driver::{VERSION, current};
use crate::ffi::{self, Out, Symbol, exports};
use crate::machine::graphs::NodeKind;
use crate::machine::{Handle, Library, Machine, with};
use memcheck_kernels::{Epilogue, Kind, Memory as _, Operand, Product, Scalars, absolute_sum};

/// The values of `cudaDataType_t` in which products are computed.
pub(crate) const R_32F: c_int = 0;
pub(crate) const R_64F: c_int = 1;
pub(crate) const R_16F: c_int = 2;
pub(crate) const R_16BF: c_int = 14;

/// The library that CUPTI names as the source of the workspace.
const LIBRARY: &CStr = c"libcublas.so.13";

/// Returns the memory of the first handle, an ESTIMATE. From Hopper on it is what CUPTI reported on
/// an H200 (cuBLAS 13.1, driver 580.159.04): three blocks, of which the workspace has 64 MiB. Before,
/// it is the workspace that cuBLAS's documentation recommends, 4 MiB.
pub(crate) fn workspace(card: &Card) -> u64 {
    if card.compute.0 >= 9 { 67_240_960 } else { 4 << 20 }
}

exports! { ffi::cublas;
    fn cublasCreate_v2(handle: Out<Handle>) {
        handle.make(|machine| {
            let context = current::get();
            let device = machine.context(context)?.device;
            machine.schedule.library()?;
            let handle = machine.handle();
            let workspace = workspace(machine.devices[device].spec.card);
            machine.libraries.insert(handle, Library { context, workspace, ..Library::default() });
            machine.activity.record_allocation(device, handle, workspace, LIBRARY);
            Ok(handle)
        })
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
        self::property(property, value)
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
        handle: Handle, ta: c_int, tb: c_int, m: c_int, n: c_int, k: c_int, alpha: u64,
        a: u64, lda: c_int, b: u64, ldb: c_int, beta: u64, c: u64, ldc: c_int,
    ) {
        let operands = [(a, lda, 0), (b, ldb, 0), (c, ldc, 0)];
        Call::new([m, n, k, 1], [ta, tb], operands, [alpha, beta]).run(handle)
    }

    fn cublasDgemm_v2(
        handle: Handle, ta: c_int, tb: c_int, m: c_int, n: c_int, k: c_int, alpha: u64,
        a: u64, lda: c_int, b: u64, ldb: c_int, beta: u64, c: u64, ldc: c_int,
    ) {
        let operands = [(a, lda, 0), (b, ldb, 0), (c, ldc, 0)];
        Call::new([m, n, k, 1], [ta, tb], operands, [alpha, beta]).of(R_64F).run(handle)
    }

    fn cublasGemmEx(
        handle: Handle, ta: c_int, tb: c_int, m: c_int, n: c_int, k: c_int, alpha: u64,
        a: u64, atype: c_int, lda: c_int, b: u64, btype: c_int, ldb: c_int, beta: u64,
        c: u64, ctype: c_int, ldc: c_int, compute: c_int, _algorithm: c_int,
    ) {
        let operands = [(a, lda, 0), (b, ldb, 0), (c, ldc, 0)];
        let call = Call::new([m, n, k, 1], [ta, tb], operands, [alpha, beta]);
        call.in_types([atype, btype, ctype], compute).run(handle)
    }

    fn cublasSgemmStridedBatched(
        handle: Handle, ta: c_int, tb: c_int, m: c_int, n: c_int, k: c_int, alpha: u64,
        a: u64, lda: c_int, sa: c_longlong, b: u64, ldb: c_int, sb: c_longlong, beta: u64,
        c: u64, ldc: c_int, sc: c_longlong, batch: c_int,
    ) {
        let operands = [(a, lda, sa), (b, ldb, sb), (c, ldc, sc)];
        Call::new([m, n, k, batch], [ta, tb], operands, [alpha, beta]).run(handle)
    }

    fn cublasDgemmStridedBatched(
        handle: Handle, ta: c_int, tb: c_int, m: c_int, n: c_int, k: c_int, alpha: u64,
        a: u64, lda: c_int, sa: c_longlong, b: u64, ldb: c_int, sb: c_longlong, beta: u64,
        c: u64, ldc: c_int, sc: c_longlong, batch: c_int,
    ) {
        let operands = [(a, lda, sa), (b, ldb, sb), (c, ldc, sc)];
        Call::new([m, n, k, batch], [ta, tb], operands, [alpha, beta]).of(R_64F).run(handle)
    }

    fn cublasGemmStridedBatchedEx(
        handle: Handle, ta: c_int, tb: c_int, m: c_int, n: c_int, k: c_int, alpha: u64,
        a: u64, atype: c_int, lda: c_int, sa: c_longlong,
        b: u64, btype: c_int, ldb: c_int, sb: c_longlong, beta: u64,
        c: u64, ctype: c_int, ldc: c_int, sc: c_longlong, batch: c_int,
        compute: c_int, _algorithm: c_int,
    ) {
        let operands = [(a, lda, sa), (b, ldb, sb), (c, ldc, sc)];
        let call = Call::new([m, n, k, batch], [ta, tb], operands, [alpha, beta]);
        call.in_types([atype, btype, ctype], compute).run(handle)
    }

    fn cublasSgemv_v2(
        handle: Handle, transposed: c_int, m: c_int, n: c_int, alpha: u64,
        a: u64, lda: c_int, x: u64, incx: c_int, beta: u64, y: u64, incy: c_int,
    ) {
        Call::vector(transposed, [m, n], [(a, lda), (x, incx), (y, incy)], [alpha, beta]).run(handle)
    }

    fn cublasDgemv_v2(
        handle: Handle, transposed: c_int, m: c_int, n: c_int, alpha: u64,
        a: u64, lda: c_int, x: u64, incx: c_int, beta: u64, y: u64, incy: c_int,
    ) {
        let call = Call::vector(transposed, [m, n], [(a, lda), (x, incx), (y, incy)], [alpha, beta]);
        call.of(R_64F).run(handle)
    }

    fn cublasSasum_v2(handle: Handle, n: c_int, x: u64, incx: c_int, result: Out<f32>) {
        sum(handle, n, (Kind::F32, x), incx, (result, |sum| sum as f32))
    }

    fn cublasDasum_v2(handle: Handle, n: c_int, x: u64, incx: c_int, result: Out<f64>) {
        sum(handle, n, (Kind::F64, x), incx, (result, |sum| sum))
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

/// Stores a part of the version: major, minor or patch.
pub(crate) fn property(property: c_int, value: Out<c_int>) -> Answer {
    value.put(match property {
        0 => VERSION / 1000,
        1 | 2 => 0,
        _ => return Err(Code::INVALID_VALUE),
    })
}

pub(crate) fn text(status: c_int) -> &'static CStr {
    match status {
        0 => c"CUBLAS_STATUS_SUCCESS",
        1 => c"CUBLAS_STATUS_NOT_INITIALIZED",
        3 => c"CUBLAS_STATUS_ALLOC_FAILED",
        7 => c"CUBLAS_STATUS_INVALID_VALUE",
        8 => c"CUBLAS_STATUS_ARCH_MISMATCH",
        11 => c"CUBLAS_STATUS_MAPPING_ERROR",
        13 => c"CUBLAS_STATUS_EXECUTION_FAILED",
        14 => c"CUBLAS_STATUS_INTERNAL_ERROR",
        15 => c"CUBLAS_STATUS_NOT_SUPPORTED",
        16 => c"CUBLAS_STATUS_LICENSE_ERROR",
        _ => c"<unknown>",
    }
}

fn library(machine: &mut Machine, handle: Handle) -> Answer<&mut Library> {
    machine.libraries.get_mut(&handle).ok_or(Code::INVALID_HANDLE)
}

fn read<T>(handle: Handle, work: impl FnOnce(&mut Library) -> T) -> Answer<T> {
    with(|machine| library(machine, handle).map(work))
}

/// The arguments of a product, as C passes them: `C = alpha op(A) op(B) + beta C`.
struct Call {
    /// m, n, k and the number of products.
    sizes: [c_int; 4],
    transposed: [c_int; 2],
    /// The addresses of A, B and C, their leading dimensions and the elements from one of the batch
    /// to the next.
    operands: [(u64, c_int, c_longlong); 3],
    /// The `cudaDataType_t` of A, B, C and of the scales.
    types: [c_int; 4],
    /// The addresses of alpha and beta.
    scales: [u64; 2],
}

impl Call {
    /// A product in f32.
    fn new(
        sizes: [c_int; 4],
        transposed: [c_int; 2],
        operands: [(u64, c_int, c_longlong); 3],
        scales: [u64; 2],
    ) -> Self {
        Self { sizes, transposed, operands, types: [R_32F; 4], scales }
    }

    /// A product of an m x n matrix and a vector, which is a product of matrices with one column.
    /// The leading dimension of a row is the step from one element to the next.
    fn vector(
        transposed: c_int,
        [m, n]: [c_int; 2],
        [(a, lda), (x, incx), (y, incy)]: [(u64, c_int); 3],
        scales: [u64; 2],
    ) -> Self {
        let (rows, columns) = if transposed == 0 { (m, n) } else { (n, m) };
        // The row y = x op(A), so that both vectors can have a step.
        let operands = [(x, incx, 0), (a, lda, 0), (y, incy, 0)];
        let turned = c_int::from(transposed == 0);
        // A vector that is read backwards is not computed.
        let scales = if incx < 0 || incy < 0 { [0; 2] } else { scales };
        let operands = operands.map(|(address, step, _)| (address, step.abs(), 0));
        Self::new([1, rows, columns, 1], [0, turned], operands, scales)
    }

    fn of(self, kind: c_int) -> Self {
        Self { types: [kind; 4], ..self }
    }

    /// Sets the types of A, B and C, and that of the scales by a `cublasComputeType_t`.
    fn in_types(self, [a, b, c]: [c_int; 3], compute: c_int) -> Self {
        let scale = match compute {
            64 | 65 => R_16F,
            70 | 71 => R_64F,
            _ => R_32F,
        };
        Self { types: [a, b, c, scale], ..self }
    }

    fn run(self, handle: Handle) -> Answer {
        let [m, n, k, batch] = self.sizes;
        let [a, b, c] = self.operands;
        if self.sizes.iter().any(|&size| size < 0) || c.1 < m.max(1) || a.1 < 0 || b.1 < 0 {
            return Err(Code::INVALID_VALUE);
        }
        if m == 0 || n == 0 || batch == 0 {
            return Ok(());
        }
        if c.0 == 0 || (k > 0 && (a.0 == 0 || b.0 == 0)) {
            return Err(Code::INVALID_VALUE);
        }
        let element = width(self.types[2]).ok_or(Code::NOT_SUPPORTED)?;
        let one = (n as u64 - 1) * c.1 as u64 + m as u64;
        let rest = (batch as u64 - 1).saturating_mul(c.2.unsigned_abs());
        let length = rest.saturating_add(one).saturating_mul(element);
        let finish = move |machine: &mut Machine, product: Option<Product>| match product {
            Some(product) => product.run(machine),
            None => machine.overwritten(c.0, length),
        };
        with(|machine| {
            let library = used(machine, handle)?;
            // Scales on the host are read at the call, those on the device when the work is done.
            let product = (library.pointer_mode == 0).then(|| self.product(machine, true));
            machine.submit(library.stream, NodeKind::Kernel, move |machine| {
                machine.launched();
                let product = product.unwrap_or_else(|| self.product(machine, false));
                finish(machine, product);
            });
            Ok(())
        })
    }

    /// Returns the product; `None` if its types are not computed.
    fn product(&self, machine: &Machine, on_host: bool) -> Option<Product> {
        let [m, n, k, batch] = self.sizes.map(|size| size as u64);
        let [a, b, output, scale] = self.types.map(kind);
        let inputs = a.filter(|_| a == b)?;
        let operand = |number: usize| {
            let (address, leading, stride) = self.operands[number];
            let transposed = self.transposed.get(number).is_some_and(|&it| it != 0);
            Operand { address, transposed, leading: leading as u64, stride }
        };
        let [alpha, beta] =
            self.scales.map(|address| read_scale(machine, address, scale?, on_host));
        let scales = alpha.zip(beta).map(|(alpha, beta)| Scalars { alpha, beta });
        let [a, b, c] = [0, 1, 2].map(operand);
        let epilogue = Epilogue::default();
        Some(Product { m, n, k, batch, inputs, output: output?, a, b, c, scales, epilogue })
    }
}

/// Reads alpha or beta; `None` if it is unknown.
pub(crate) fn read_scale(
    machine: &Machine,
    address: u64,
    kind: Kind,
    on_host: bool,
) -> Option<f64> {
    let width = kind.width();
    let bytes = match on_host {
        // SAFETY: the C caller promises that a scale on the host is readable in its type.
        true => (address != 0).then(|| unsafe { crate::ffi::bytes(address, width) })?,
        false => machine.values.bytes(machine.span(address, width)?)?.into_owned(),
    };
    match kind {
        Kind::F16 => Some(f16::from_ne_bytes(bytes.try_into().ok()?).to_f64()),
        Kind::F32 => Some(f32::from_ne_bytes(bytes.try_into().ok()?).into()),
        Kind::F64 => Some(f64::from_ne_bytes(bytes.try_into().ok()?)),
        _ => None,
    }
}

/// Sums absolute values of the type `kind`. `rounded` converts to that type.
fn sum<T: Default>(
    handle: Handle,
    n: c_int,
    (kind, x): (Kind, u64),
    incx: c_int,
    (result, rounded): (Out<T>, fn(f64) -> T),
) -> Answer {
    let (on_host, sum) = with(|machine| {
        let library = used(machine, handle)?;
        // The result is for the host, or it is not recorded: both wait for the stream.
        machine.graphs.forbid_wait(library.stream)?;
        machine.launched();
        let on_host = library.pointer_mode == 0;
        let sum = match n <= 0 || incx <= 0 {
            true => Some(0.0),
            false => absolute_sum(machine, (kind, x), n as u64, incx as u64),
        };
        match (on_host, sum) {
            (true, None) => machine.count_read(kind.width(), kind.name()),
            (true, Some(_)) => {}
            (false, Some(sum)) if kind == Kind::F32 => {
                machine.write_bytes(result.number(), &(sum as f32).to_ne_bytes());
            }
            (false, Some(sum)) => machine.write_bytes(result.number(), &sum.to_ne_bytes()),
            (false, None) => machine.overwritten(result.number(), kind.width()),
        }
        Ok((on_host, sum))
    })?;
    if on_host { result.put(sum.map(rounded).unwrap_or_default()) } else { Ok(()) }
}

/// Counts a call that launches a kernel, and returns the handle's settings.
fn used(machine: &mut Machine, handle: Handle) -> Answer<Library> {
    let library = *library(machine, handle)?;
    machine.stream_context(library.stream, library.context)?;
    machine.touch()?;
    Ok(library)
}

/// Returns the element type of a `cudaDataType_t` in which products are computed.
pub(crate) fn kind(kind: c_int) -> Option<Kind> {
    Some(match kind {
        R_32F => Kind::F32,
        R_64F => Kind::F64,
        R_16F => Kind::F16,
        R_16BF => Kind::Bf16,
        _ => return None,
    })
}

/// Returns the bytes of an element of a `cudaDataType_t`.
pub(crate) fn width(kind: c_int) -> Option<u64> {
    Some(match kind {
        3 | 8 | 28..=30 => 1,
        2 | 14 | 20 | 22 | 7 | 9 => 2,
        0 | 6 | 15 | 10 | 12 | 21 | 23 => 4,
        1 | 4 | 11 | 13 | 24 | 26 => 8,
        5 | 25 | 27 => 16,
        _ => return None,
    })
}
