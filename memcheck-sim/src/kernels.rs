//! The launchers of candle-kernels' C code, which nvcc would compile in a build for a real device.
//!
//! Their symbols have a prefix, and the linker script of the simulated toolkit provides the names
//! that candle calls. A program that defines one of these names therefore keeps its own definition,
//! as in a build with a real toolkit.
//!
//! A launch computes its output, like one through `cuLaunchKernel`, or makes it unknown. Three of
//! these functions allocate scratch memory. The simulated ones must allocate it through the same
//! symbols, so that a probe of allocations can see it:
//!
//! | launcher | bytes, all freed before it returns | source |
//! |---|---|---|
//! | `moe_gemm_gguf` | m * (k rounded up to 512) / 32 * 36, m being size_m, or size_m / topk without weights | moe/moe_gguf.cu |
//! | `moe_gemm_gguf_prefill` | 4 * experts, and 4 * (experts + 1); then a scan | moe/moe_wmma_gguf.cu |
//! | `moe_gemm_wmma` with `prefill` | a scan | moe/moe_wmma.cu |
//!
//! A scan is `thrust::inclusive_scan` over the experts (moe/moe_utils.cuh): 1,023 bytes from
//! `cudaMalloc`. That figure was observed in a build by the real toolkit. `docs/real-gpu.md`
//! describes how such a build verifies all three launchers.
//!
//! Like the C code, these functions ignore an allocation that failed. On a device the kernel would
//! then fault; here the allocation is only missing.
#![expect(non_snake_case, reason = "candle's own names")]

use std::ffi::{c_int, c_longlong, c_void};

use crate::cudart;
use crate::ffi::Symbol;
use crate::machine::{Handle, Machine};
use memcheck_kernels::Alignment;
use memcheck_kernels::quantized::tiles::{self, Scales};
use memcheck_kernels::quantized::{self, Format, QuantizedProduct};
use memcheck_kernels::{Experts, Routing};
use memcheck_kernels::{Kind, Memory as _};

#[cfg(not(any(test, feature = "standalone")))]
unsafe extern "C" {
    fn cudaMallocAsync(dev_ptr: *mut *mut c_void, size: usize, stream: *mut c_void) -> c_int;
    fn cudaFreeAsync(dev_ptr: *mut c_void, stream: *mut c_void) -> c_int;
    fn cudaMalloc(dev_ptr: *mut *mut c_void, size: usize) -> c_int;
    fn cudaFree(dev_ptr: *mut c_void) -> c_int;
}
#[cfg(any(test, feature = "standalone"))]
use crate::hooked::{cudaFree, cudaFreeAsync, cudaMalloc, cudaMallocAsync};

/// Elements of a row are padded to a multiple of this number.
const MATRIX_ROW_PADDING: i64 = 512;
/// Number of elements and of bytes of a `block_q8_1`.
const Q8_1: (i64, i64) = (32, 36);

/// Runs `work` with `bytes` of device memory, like C code that allocates scratch memory.
fn with_scratch(bytes: i64, stream: *mut c_void, work: impl FnOnce(u64)) {
    let mut scratch = std::ptr::null_mut();
    let size = usize::try_from(bytes).unwrap_or(0);
    // SAFETY: the result pointer points to a local.
    let status = unsafe { cudaMallocAsync(&mut scratch, size, stream) };
    work(scratch as u64);
    if status == 0 {
        // SAFETY: the block was allocated above and has no other owner.
        unsafe { cudaFreeAsync(scratch, stream) };
    }
}

/// Scratch bytes of a scan that cub of CUDA 13.0 requests, the same number for 8 and for 60,000
/// elements.
const SCAN_BYTES: usize = 1023;

/// Performs the calls of `thrust::inclusive_scan`, from counts to offsets.
fn scan(counts: u64, offsets: u64, stream: *mut c_void) {
    launch(counts, stream);
    let mut scratch = std::ptr::null_mut();
    // SAFETY: the result pointer points to a local.
    let status = unsafe { cudaMalloc(&mut scratch, SCAN_BYTES) };
    launch(offsets, stream);
    if status == 0 {
        // SAFETY: the block was allocated above and has no other owner.
        unsafe { cudaFree(scratch) };
    }
}

/// Launches one kernel that writes unknown values to `output`.
fn launch(output: u64, stream: *mut c_void) {
    compute(stream, move |machine| machine.overwritten_from(output));
}

/// Launches one kernel that `work` computes.
pub(crate) fn compute(stream: *mut c_void, work: impl Fn(&mut Machine) + Send + Sync + 'static) {
    let _quiet = memcheck_limits::quiet::enter();
    // A launcher returns no result, so an error is only stored as the thread's last error.
    cudart::status(cudart::launch(stream as Handle, work));
}

/// The type of a product's input with the number `dtype`.
fn kind(dtype: c_int) -> Kind {
    if dtype == 0 { Kind::F16 } else { Kind::Bf16 }
}

/// The format with the number `quantization`.
fn format(quantization: c_int) -> Option<Format> {
    Some(match quantization {
        0 => Format::Q8_0,
        1 => Format::Q4K,
        2 => Format::Q2K,
        3 => Format::Q3K,
        4 => Format::Q5K,
        5 => Format::Q6K,
        _ => return None,
    })
}

/// Defines launchers, the table that lists them, and for tests the types of their arguments.
macro_rules! launchers {
    (
        $table:ident, $types:ident;
        $(fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $result:ty)? $body:block)*
    ) => {
        $(
            #[unsafe(export_name = concat!("memcheck_sim_", stringify!($name)))]
            pub(crate) unsafe extern "C" fn $name($($arg: $ty),*) $(-> $result)? $body
        )*
        static $table: &[Symbol] = &[
            $(Symbol { name: stringify!($name), address: $name as *const () }),*
        ];
        #[cfg(test)]
        static $types: &[(&str, &[&str])] = &[
            $((stringify!($name), &[$(stringify!($ty)),*])),*
        ];
    };
}

launchers! {
    OTHERS, OTHERS_TYPES;

    fn moe_gemm_wmma(
        input: u64, weights: u64, tokens: u64,
        experts: u64, scales: u64, output: u64,
        counts: u64, offsets: u64, num_experts: c_int, topk: c_int,
        m: c_int, n: c_int, k: c_int, dtype: c_int, prefill: bool, stream: *mut c_void,
    ) {
        if prefill {
            scan(counts, offsets, stream);
        } else {
            launch(counts, stream);
            launch(offsets, stream);
        }
        let routing = Routing {
            tokens, experts, factors: scales,
            count: num_experts, topk, m, n, k,
        };
        compute(stream, move |machine| {
            routing.count(machine, counts, offsets);
            let (input, to) = ((input, kind(dtype)), (output, kind(dtype)));
            routing.run(machine, Experts::Plain, input, weights, to);
        });
    }

    fn moe_gemm_gguf(
        input: u64, weights: u64, tokens: u64,
        experts: u64, scales: u64, output: u64,
        num_experts: c_int, topk: c_int, m: c_int, n: c_int, k: c_int,
        quantization: c_int, stream: *mut c_void,
    ) {
        let routing = Routing {
            tokens, experts, factors: scales,
            count: num_experts, topk, m, n, k,
        };
        let rows = gguf_rows(scales != 0, topk, m);
        with_scratch(gguf_scratch(rows, k), stream, |quantized| {
            compute(stream, move |machine| {
                let sizes = [i64::from(k), padded(k), rows];
                let sizes = sizes.map(|size| u64::try_from(size).unwrap_or(0));
                quantized::quantize_rows(machine, Kind::F32, input, quantized, sizes);
            });
            let Some(format) = format(quantization) else { return launch(output, stream) };
            compute(stream, move |machine| {
                let (from, to) = ((quantized, Kind::F32), (output, Kind::F32));
                routing.run(machine, Experts::Quantized(format), from, weights, to);
            });
        });
    }

    fn moe_gemm_gguf_prefill(
        input: u64, weights: u64, tokens: u64,
        experts: u64, scales: u64, output: u64,
        num_experts: c_int, topk: c_int, m: c_int, n: c_int, k: c_int,
        dtype: c_int, quantization: c_int, stream: *mut c_void,
    ) {
        let routing = Routing {
            tokens, experts, factors: scales,
            count: num_experts, topk, m, n, k,
        };
        let number = i64::from(num_experts);
        with_scratch(4 * number, stream, |counts| {
            with_scratch(4 * (number + 1), stream, |offsets| {
                scan(counts, offsets, stream);
                let Some(format) = format(quantization) else { return launch(output, stream) };
                compute(stream, move |machine| {
                    let (from, to) = ((input, kind(dtype)), (output, Kind::F32));
                    routing.run(machine, Experts::Dequantized(format), from, weights, to);
                });
            });
        });
    }
}

/// Returns the rows of the input of `moe_gemm_gguf`.
fn gguf_rows(weighted: bool, topk: c_int, m: c_int) -> i64 {
    i64::from(if weighted { m } else { m / topk.max(1) })
}

/// Returns the bytes that `moe_gemm_gguf` allocates for its quantized input.
fn gguf_scratch(rows: i64, k: c_int) -> i64 {
    rows * (padded(k) / Q8_1.0 * Q8_1.1)
}

fn padded(k: c_int) -> i64 {
    (i64::from(k) + MATRIX_ROW_PADDING - 1) / MATRIX_ROW_PADDING * MATRIX_ROW_PADDING
}

/// The 30 products of a quantized matrix with few rows.
macro_rules! mmvq {
    ($($name:ident: $format:ident $kind:ident,)*) => {
        launchers! {
            MMVQ, MMVQ_TYPES;
            $(fn $name(
                vx: u64, vy: u64, dst: u64, ncols: c_int, nrows: c_int,
                stride_y: c_int, stride_dst: c_int, b_size: c_int, stream: *mut c_void,
            ) {
                let sizes = [ncols, nrows, stride_y, stride_dst, b_size];
                let [columns, rows, vector_stride, stride, batch] =
                    sizes.map(|size| u64::try_from(size).unwrap_or(0));
                let product = QuantizedProduct {
                    format: Format::$format, weights: vx, vectors: vy,
                    to: dst, columns, rows, vector_stride, stride, batch,
                };
                compute(stream, move |machine| {
                    if product.run(machine, Kind::$kind).is_err() {
                        machine.overwritten_from(dst);
                    }
                });
            }
            )*
        }
    };
}

mmvq! {
    launch_mmvq_gguf_q4_0_bf16_plain: Q4_0 Bf16,
    launch_mmvq_gguf_q4_0_f32_plain: Q4_0 F32,
    launch_mmvq_gguf_q4_0_f16_plain: Q4_0 F16,
    launch_mmvq_gguf_q4_1_bf16_plain: Q4_1 Bf16,
    launch_mmvq_gguf_q4_1_f32_plain: Q4_1 F32,
    launch_mmvq_gguf_q4_1_f16_plain: Q4_1 F16,
    launch_mmvq_gguf_q5_0_bf16_plain: Q5_0 Bf16,
    launch_mmvq_gguf_q5_0_f32_plain: Q5_0 F32,
    launch_mmvq_gguf_q5_0_f16_plain: Q5_0 F16,
    launch_mmvq_gguf_q5_1_bf16_plain: Q5_1 Bf16,
    launch_mmvq_gguf_q5_1_f32_plain: Q5_1 F32,
    launch_mmvq_gguf_q5_1_f16_plain: Q5_1 F16,
    launch_mmvq_gguf_q8_0_bf16_plain: Q8_0 Bf16,
    launch_mmvq_gguf_q8_0_f32_plain: Q8_0 F32,
    launch_mmvq_gguf_q8_0_f16_plain: Q8_0 F16,
    launch_mmvq_gguf_q2_k_bf16_plain: Q2K Bf16,
    launch_mmvq_gguf_q2_k_f32_plain: Q2K F32,
    launch_mmvq_gguf_q2_k_f16_plain: Q2K F16,
    launch_mmvq_gguf_q3_k_bf16_plain: Q3K Bf16,
    launch_mmvq_gguf_q3_k_f32_plain: Q3K F32,
    launch_mmvq_gguf_q3_k_f16_plain: Q3K F16,
    launch_mmvq_gguf_q4_k_bf16_plain: Q4K Bf16,
    launch_mmvq_gguf_q4_k_f32_plain: Q4K F32,
    launch_mmvq_gguf_q4_k_f16_plain: Q4K F16,
    launch_mmvq_gguf_q5_k_bf16_plain: Q5K Bf16,
    launch_mmvq_gguf_q5_k_f32_plain: Q5K F32,
    launch_mmvq_gguf_q5_k_f16_plain: Q5K F16,
    launch_mmvq_gguf_q6_k_bf16_plain: Q6K Bf16,
    launch_mmvq_gguf_q6_k_f32_plain: Q6K F32,
    launch_mmvq_gguf_q6_k_f16_plain: Q6K F16,
}

/// The quantizers of the input of these products.
macro_rules! mmvq_quantize {
    ($($name:ident: $kind:ident,)*) => {
        launchers! {
            MMVQ_QUANTIZE, MMVQ_QUANTIZE_TYPES;
            $(fn $name(
                x: u64, vy: u64, kx: c_int, kx_padded: c_int, rows: c_int,
                stream: *mut c_void,
            ) {
                let sizes = [kx, kx_padded, rows].map(|size| u64::try_from(size).unwrap_or(0));
                compute(stream, move |machine| {
                    quantized::quantize_rows(machine, Kind::$kind, x, vy, sizes);
                });
            }
            )*
        }
    };
}

mmvq_quantize! {
    launch_mmvq_gguf_quantize_q8_1_bf16: Bf16,
    launch_mmvq_gguf_quantize_q8_1_f16: F16,
    launch_mmvq_gguf_quantize_q8_1_f32: F32,
}

/// The products of a quantized matrix with many rows.
macro_rules! mmq {
    ($($name:ident: $format:ident,)*) => {
        launchers! {
            MMQ, MMQ_TYPES;
            $(fn $name(
                fixup: u64, x: u64, y: u64, dst: u64,
                ncols_x: c_longlong, nrows_x: c_longlong, ncols_y: c_longlong,
                _stride_x: c_longlong, stride_dst: c_longlong, _cc: c_int, _nsm: c_int,
                _smpbo: c_longlong, _warp: c_int, stream: *mut c_void,
            ) {
                if fixup != 0 {
                    launch(fixup, stream);
                }
                let sizes = [ncols_x, nrows_x, stride_dst, ncols_y];
                let [columns, rows, stride, batch] =
                    sizes.map(|size| u64::try_from(size).unwrap_or(0));
                let product = QuantizedProduct {
                    format: Format::$format, weights: x, vectors: y, to: dst,
                    columns, rows, vector_stride: 0, stride, batch,
                };
                compute(stream, move |machine| product.run_tiled(machine));
            }
            )*
        }
    };
}

mmq! {
    launch_mmq_gguf_q4_0: Q4_0,
    launch_mmq_gguf_q4_1: Q4_1,
    launch_mmq_gguf_q5_0: Q5_0,
    launch_mmq_gguf_q5_1: Q5_1,
    launch_mmq_gguf_q8_0: Q8_0,
    launch_mmq_gguf_q2_k: Q2K,
    launch_mmq_gguf_q3_k: Q3K,
    launch_mmq_gguf_q4_k: Q4K,
    launch_mmq_gguf_q5_k: Q5K,
    launch_mmq_gguf_q6_k: Q6K,
}

/// The quantizers of the input of these products.
macro_rules! mmq_quantize {
    ($($name:ident: $scales:ident,)*) => {
        launchers! {
            MMQ_QUANTIZE, MMQ_QUANTIZE_TYPES;
            $(fn $name(
                x: u64, ids: u64, vy: u64, _type_x: c_int,
                ne00: c_longlong, s01: c_longlong, _s02: c_longlong, _s03: c_longlong,
                ne0: c_longlong, ne1: c_longlong, ne2: c_longlong, ne3: c_longlong,
                stream: *mut c_void,
            ) {
                // candle passes no ids and one matrix.
                if ids != 0 || (ne2, ne3) != (1, 1) {
                    return launch(vy, stream);
                }
                let sizes = [ne00, s01, ne0, ne1].map(|size| u64::try_from(size).unwrap_or(0));
                compute(stream, move |machine| {
                    tiles::quantize(machine, Scales::$scales, x, vy, sizes);
                });
            }
            )*
        }
    };
}

mmq_quantize! {
    launch_mmq_quantize_q8_1_D4: D4,
    launch_mmq_quantize_q8_1_DS4: Ds4,
    launch_mmq_quantize_q8_1_D2S6: D2s6,
}

launchers! {
    ALIGN, ALIGN_TYPES;

    // Sorts tokens by expert. Only candle's feature `cutile` calls it.
    fn candle_launch_moe_align(
        topk: u64,
        sorted: u64,
        experts: u64,
        padded: u64,
        cumsum: u64,
        num_experts: c_int,
        block: c_int,
        numel: c_int,
        max_padded: c_int,
        stream: *mut c_void,
    ) -> c_int {
        let [count, block, tokens, most] =
            [num_experts, block, numel, max_padded].map(|size| u64::try_from(size).unwrap_or(0));
        let alignment = Alignment {
            experts_of_tokens: topk,
            sorted,
            experts,
            padded,
            ends: cumsum,
            count,
            block,
            tokens,
            most,
        };
        compute(stream, move |machine| alignment.run(machine));
        0
    }
}

pub(crate) static EXPORTS: &[&[Symbol]] = &[OTHERS, MMVQ, MMVQ_QUANTIZE, MMQ, MMQ_QUANTIZE, ALIGN];

#[cfg(test)]
mod sources;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scratch_has_the_size_that_the_c_code_computes() {
        // With k = 2048 a row has 2048 / 32 blocks of 36 bytes.
        assert_eq!(gguf_scratch(gguf_rows(true, 8, 16), 2048), 16 * 64 * 36);
        assert_eq!(gguf_scratch(gguf_rows(false, 8, 16), 2048), 2 * 64 * 36);
        // Rows are padded to 512 elements.
        assert_eq!(gguf_scratch(gguf_rows(true, 8, 1), 513), 32 * 36);
    }
}
