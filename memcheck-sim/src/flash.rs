//! The C functions of candle-flash-attn and of candle-flash-attn-v3, which nvcc would compile from
//! CUTLASS in a build for a real device.
//!
//! Both launch one kernel and allocate nothing: candle allocates the output, the sums of the rows
//! and the counter of version 3. The C code of version 2 always has one split, so it needs no
//! accumulators. Their symbols have a prefix, like those of `kernels`.

use std::ffi::{c_int, c_void};

use crate::ffi::Symbol;
use crate::kernels::compute;
use memcheck_kernels::{Attention, Memory as _, Rows, Table};

/// Flash-attention 2. The parameters are those of `flash_api.cu`.
#[unsafe(export_name = "memcheck_sim_run_mha")]
pub(crate) unsafe extern "C" fn run_mha(
    q: u64,
    k: u64,
    v: u64,
    o: u64,
    sums: u64,
    slopes: u64,
    ends_q: u64,
    ends_k: u64,
    q_batch: u32,
    k_batch: u32,
    v_batch: u32,
    o_batch: u32,
    slopes_batch: u32,
    q_row: u32,
    k_row: u32,
    v_row: u32,
    o_row: u32,
    q_head: u32,
    k_head: u32,
    v_head: u32,
    o_head: u32,
    sequences: u32,
    heads: u32,
    heads_k: u32,
    width: u32,
    _width_rounded: u32,
    scale: f32,
    length_q: u32,
    length_k: u32,
    _q_rounded: u32,
    _k_rounded: u32,
    total_q: u32,
    is_bf16: c_int,
    is_causal: c_int,
    unpadded: c_int,
    left: c_int,
    right: c_int,
    softcap: f32,
    pages: u64,
    pages_batch: u32,
    page_rows: c_int,
    prefixes: u64,
    prefixes_batch: u32,
    prefix_count: c_int,
    stream: *mut c_void,
) {
    let attention = Attention {
        is_bf16: is_bf16 != 0,
        q: rows(q, [q_batch, q_row, q_head]),
        k: rows(k, [k_batch, k_row, k_head]),
        v: rows(v, [v_batch, v_row, v_head]),
        o: rows(o, [o_batch, o_row, o_head]),
        sums,
        sums_by_head: unpadded != 0,
        ends_q,
        ends_k,
        sequences: sequences.into(),
        heads: heads.into(),
        heads_k: heads_k.into(),
        width: width.into(),
        length_q: length_q.into(),
        length_k: length_k.into(),
        total_q: total_q.into(),
        scale,
        softcap,
        is_causal: is_causal != 0,
        window: [left.into(), right.into()],
        slopes: Table { address: slopes, stride: slopes_batch.into() },
        pages: Table { address: pages, stride: pages_batch.into() },
        page_rows: u64::try_from(page_rows).unwrap_or(0),
        prefixes: Table { address: prefixes, stride: prefixes_batch.into() },
        prefix_count: u64::try_from(prefix_count).unwrap_or(0),
    };
    compute(stream, move |machine| attention.run(machine));
}

/// Flash-attention 3. Its kernels do not read the slopes. Its C code does not set `is_local`, so
/// that a window has no effect unless it makes the launch causal.
#[unsafe(export_name = "memcheck_sim_run_mha_v3")]
pub(crate) unsafe extern "C" fn run_mha_v3(
    q: u64,
    k: u64,
    v: u64,
    o: u64,
    sums: u64,
    _slopes: u64,
    counter: u64,
    ends_q: u64,
    ends_k: u64,
    q_batch: u32,
    k_batch: u32,
    v_batch: u32,
    o_batch: u32,
    _slopes_batch: u32,
    q_row: u32,
    k_row: u32,
    v_row: u32,
    o_row: u32,
    q_head: u32,
    k_head: u32,
    v_head: u32,
    o_head: u32,
    sequences: u32,
    heads: u32,
    heads_k: u32,
    width: u32,
    _width_rounded: u32,
    scale: f32,
    length_q: u32,
    length_k: u32,
    _q_rounded: u32,
    _k_rounded: u32,
    is_bf16: c_int,
    is_causal: c_int,
    unpadded: c_int,
    _packing: c_int,
    _left: c_int,
    _right: c_int,
    total_q: u32,
    _total_k: u32,
    stream: *mut c_void,
) {
    let attention = Attention {
        is_bf16: is_bf16 != 0,
        q: rows(q, [q_batch, q_row, q_head]),
        k: rows(k, [k_batch, k_row, k_head]),
        v: rows(v, [v_batch, v_row, v_head]),
        o: rows(o, [o_batch, o_row, o_head]),
        sums,
        sums_by_head: unpadded != 0,
        ends_q,
        ends_k,
        sequences: sequences.into(),
        heads: heads.into(),
        heads_k: heads_k.into(),
        width: width.into(),
        length_q: length_q.into(),
        length_k: length_k.into(),
        total_q: total_q.into(),
        scale,
        is_causal: is_causal != 0,
        window: [-1, -1],
        ..Attention::default()
    };
    compute(stream, move |machine| {
        attention.run(machine);
        // The scheduler counts its tiles there.
        machine.overwritten(counter, 4);
    });
}

fn rows(address: u64, [batch, row, head]: [u32; 3]) -> Rows {
    Rows { address, batch: batch.into(), row: row.into(), head: head.into() }
}

pub(crate) static EXPORTS: &[Symbol] = &[
    Symbol { name: "run_mha", address: run_mha as *const () },
    Symbol { name: "run_mha_v3", address: run_mha_v3 as *const () },
];
