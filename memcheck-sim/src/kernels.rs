//! The launchers of candle-kernels' C code, which nvcc would compile in a build for a real device.
//!
//! A launch does nothing, like one through `cuLaunchKernel`. But these functions have typed
//! arguments, so the simulator forgets the known contents of their output buffers. Three of them
//! allocate scratch memory. The simulated ones must allocate it through the same symbols, so
//! that a probe of allocations can see it:
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

use std::ffi::{c_int, c_longlong, c_void};

use crate::compute::Memory as _;
use crate::cudart;
use crate::ffi::Symbol;
use crate::machine::{Handle, with};

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
fn with_scratch(bytes: i64, stream: *mut c_void, work: impl FnOnce(*mut c_void)) {
    let mut scratch = std::ptr::null_mut();
    let size = usize::try_from(bytes).unwrap_or(0);
    // SAFETY: the result pointer points to a local.
    let status = unsafe { cudaMallocAsync(&mut scratch, size, stream) };
    work(scratch);
    if status == 0 {
        // SAFETY: the block was allocated above and has no other owner.
        unsafe { cudaFreeAsync(scratch, stream) };
    }
}

/// Scratch bytes of a scan that cub of CUDA 13.0 requests, the same number for 8 and for 60,000
/// elements.
const SCAN_BYTES: usize = 1023;

/// Performs the calls of `thrust::inclusive_scan`, from counts to offsets.
fn scan(counts: *mut c_void, offsets: *mut c_void, stream: *mut c_void) {
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

/// Launches one kernel that writes to `output`.
fn launch(output: *mut c_void, stream: *mut c_void) {
    let _quiet = memcheck_core::measurement::quiet::enter();
    // A launcher returns no result, so an error is only stored as the thread's last error.
    if cudart::status(cudart::launch(stream as Handle)) == 0 {
        cudart::status(with(|machine| {
            machine.overwritten_from(output as u64);
            Ok(())
        }));
    }
}

macro_rules! launchers {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => {
        $(
            $(#[$doc])*
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $name($($arg: $ty),*) $body
        )*
        static OTHERS: &[Symbol] = &[
            $(Symbol { name: stringify!($name), address: $name as *const () }),*
        ];
    };
}

launchers! {
    fn moe_gemm_wmma(
        _input: *const c_void, _weights: *const c_void, _tokens: *const c_int,
        _experts: *const c_int, _scales: *const f32, output: *mut c_void,
        counts: *mut c_int, offsets: *mut c_int, _num_experts: c_int, _topk: c_int,
        _m: c_int, _n: c_int, _k: c_int, _dtype: c_int, prefill: bool, stream: *mut c_void,
    ) {
        if prefill {
            scan(counts.cast(), offsets.cast(), stream);
        } else {
            launch(counts.cast(), stream);
            launch(offsets.cast(), stream);
        }
        launch(output, stream);
    }

    fn moe_gemm_gguf(
        _input: *const f32, _weights: *const c_void, _tokens: *const c_int,
        _experts: *const c_int, scales: *const f32, output: *mut c_void,
        _num_experts: c_int, topk: c_int, m: c_int, _n: c_int, k: c_int,
        _quantization: c_int, stream: *mut c_void,
    ) {
        with_scratch(gguf_scratch(!scales.is_null(), topk, m, k), stream, |quantized| {
            launch(quantized, stream);
            launch(output, stream);
        });
    }

    fn moe_gemm_gguf_prefill(
        _input: *const c_void, _weights: *const u8, _tokens: *const c_int,
        _experts: *const c_int, _scales: *const f32, output: *mut c_void,
        num_experts: c_int, _topk: c_int, _m: c_int, _n: c_int, _k: c_int,
        _dtype: c_int, _quantization: c_int, stream: *mut c_void,
    ) {
        let experts = i64::from(num_experts);
        with_scratch(4 * experts, stream, |counts| {
            with_scratch(4 * (experts + 1), stream, |offsets| {
                scan(counts, offsets, stream);
                launch(output, stream);
            });
        });
    }
}

/// Returns the bytes that `moe_gemm_gguf` allocates for its quantized input.
fn gguf_scratch(weighted: bool, topk: c_int, m: c_int, k: c_int) -> i64 {
    let rows = i64::from(if weighted { m } else { m / topk.max(1) });
    let padded = (i64::from(k) + MATRIX_ROW_PADDING - 1) / MATRIX_ROW_PADDING * MATRIX_ROW_PADDING;
    rows * (padded / Q8_1.0 * Q8_1.1)
}

/// The 30 products of a quantized matrix with few rows.
macro_rules! mmvq {
    ($($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $name(
                _vx: *const c_void, _vy: *const c_void, dst: *mut c_void, _ncols: c_int, _nrows: c_int,
                _stride_y: c_int, _stride_dst: c_int, _b_size: c_int, stream: *mut c_void,
            ) {
                launch(dst, stream);
            }
        )*
        static MMVQ: &[Symbol] =
            &[$(Symbol { name: stringify!($name), address: $name as *const () }),*];
    };
}

mmvq! {
    launch_mmvq_gguf_q4_0_bf16_plain launch_mmvq_gguf_q4_0_f32_plain launch_mmvq_gguf_q4_0_f16_plain
    launch_mmvq_gguf_q4_1_bf16_plain launch_mmvq_gguf_q4_1_f32_plain launch_mmvq_gguf_q4_1_f16_plain
    launch_mmvq_gguf_q5_0_bf16_plain launch_mmvq_gguf_q5_0_f32_plain launch_mmvq_gguf_q5_0_f16_plain
    launch_mmvq_gguf_q5_1_bf16_plain launch_mmvq_gguf_q5_1_f32_plain launch_mmvq_gguf_q5_1_f16_plain
    launch_mmvq_gguf_q8_0_bf16_plain launch_mmvq_gguf_q8_0_f32_plain launch_mmvq_gguf_q8_0_f16_plain
    launch_mmvq_gguf_q2_k_bf16_plain launch_mmvq_gguf_q2_k_f32_plain launch_mmvq_gguf_q2_k_f16_plain
    launch_mmvq_gguf_q3_k_bf16_plain launch_mmvq_gguf_q3_k_f32_plain launch_mmvq_gguf_q3_k_f16_plain
    launch_mmvq_gguf_q4_k_bf16_plain launch_mmvq_gguf_q4_k_f32_plain launch_mmvq_gguf_q4_k_f16_plain
    launch_mmvq_gguf_q5_k_bf16_plain launch_mmvq_gguf_q5_k_f32_plain launch_mmvq_gguf_q5_k_f16_plain
    launch_mmvq_gguf_q6_k_bf16_plain launch_mmvq_gguf_q6_k_f32_plain launch_mmvq_gguf_q6_k_f16_plain
}

/// The quantizers of the input of these products.
macro_rules! mmvq_quantize {
    ($($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $name(
                _x: *const c_void, vy: *mut c_void, _kx: c_int, _kx_padded: c_int, _rows: c_int,
                stream: *mut c_void,
            ) {
                launch(vy, stream);
            }
        )*
        static MMVQ_QUANTIZE: &[Symbol] =
            &[$(Symbol { name: stringify!($name), address: $name as *const () }),*];
    };
}

mmvq_quantize! {
    launch_mmvq_gguf_quantize_q8_1_bf16
    launch_mmvq_gguf_quantize_q8_1_f16
    launch_mmvq_gguf_quantize_q8_1_f32
}

/// The products of a quantized matrix with many rows.
macro_rules! mmq {
    ($($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $name(
                fixup: *mut c_void, _x: *const c_void, _y: *const c_void, dst: *mut c_void,
                _ncols_x: c_longlong, _nrows_x: c_longlong, _ncols_y: c_longlong,
                _stride_x: c_longlong, _stride_dst: c_longlong, _cc: c_int, _nsm: c_int,
                _smpbo: c_longlong, _warp: c_int, stream: *mut c_void,
            ) {
                if !fixup.is_null() {
                    launch(fixup, stream);
                }
                launch(dst, stream);
            }
        )*
        static MMQ: &[Symbol] =
            &[$(Symbol { name: stringify!($name), address: $name as *const () }),*];
    };
}

mmq! {
    launch_mmq_gguf_q4_0 launch_mmq_gguf_q4_1 launch_mmq_gguf_q5_0 launch_mmq_gguf_q5_1
    launch_mmq_gguf_q8_0 launch_mmq_gguf_q2_k launch_mmq_gguf_q3_k launch_mmq_gguf_q4_k
    launch_mmq_gguf_q5_k launch_mmq_gguf_q6_k
}

/// The quantizers of the input of these products.
macro_rules! mmq_quantize {
    ($($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $name(
                _x: *const c_void, _ids: *const c_int, vy: *mut c_void, _type_x: c_int,
                _ne00: c_longlong, _s01: c_longlong, _s02: c_longlong, _s03: c_longlong,
                _ne0: c_longlong, _ne1: c_longlong, _ne2: c_longlong, _ne3: c_longlong,
                stream: *mut c_void,
            ) {
                launch(vy, stream);
            }
        )*
        static MMQ_QUANTIZE: &[Symbol] =
            &[$(Symbol { name: stringify!($name), address: $name as *const () }),*];
    };
}

mmq_quantize! { launch_mmq_quantize_q8_1_D4 launch_mmq_quantize_q8_1_DS4 launch_mmq_quantize_q8_1_D2S6 }

/// Sorts tokens by expert. Only candle's feature `cutile` calls it.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn candle_launch_moe_align(
    _topk: *const c_int,
    sorted: *mut c_int,
    experts: *mut c_int,
    padded: *mut c_int,
    cumsum: *mut c_int,
    _num_experts: c_int,
    _block: c_int,
    _numel: c_int,
    _max_padded: c_int,
    stream: *mut c_void,
) -> c_int {
    for output in [sorted, experts, padded, cumsum] {
        launch(output.cast(), stream);
    }
    0
}

static ALIGN: &[Symbol] =
    &[Symbol { name: "candle_launch_moe_align", address: candle_launch_moe_align as *const () }];

pub(crate) static EXPORTS: &[&[Symbol]] = &[OTHERS, MMVQ, MMVQ_QUANTIZE, MMQ, MMQ_QUANTIZE, ALIGN];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scratch_has_the_size_that_the_c_code_computes() {
        // With k = 2048 a row has 2048 / 32 blocks of 36 bytes.
        assert_eq!(gguf_scratch(true, 8, 16, 2048), 16 * 64 * 36);
        assert_eq!(gguf_scratch(false, 8, 16, 2048), 2 * 64 * 36);
        // Rows are padded to 512 elements.
        assert_eq!(gguf_scratch(true, 8, 1, 513), 32 * 36);
    }

    #[test]
    fn every_launcher_of_candle_is_exported() {
        let all: Vec<_> = EXPORTS.iter().flat_map(|table| table.iter()).collect();
        assert_eq!(all.len(), 3 + 30 + 3 + 10 + 3 + 1);
    }
}
