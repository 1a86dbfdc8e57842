//! Kernels on quantized blocks. The element type is that of the result or, without one, f32.

use super::*;
use crate::quantized::{self, Format};

pub(super) static QUANTIZED: &[Row] = &[
    row("dequantize_block_q2_K", HALF_SINGLE, "pw", |it| quantized::dequantize(it, Format::Q2K)),
    row("dequantize_block_q3_K", HALF_SINGLE, "pw", |it| quantized::dequantize(it, Format::Q3K)),
    row("dequantize_block_q4_0", HALF_SINGLE, "pwi", |it| quantized::dequantize(it, Format::Q4_0)),
    row("dequantize_block_q4_1", HALF_SINGLE, "pwi", |it| quantized::dequantize(it, Format::Q4_1)),
    row("dequantize_block_q4_K", HALF_SINGLE, "pw", |it| quantized::dequantize(it, Format::Q4K)),
    row("dequantize_block_q5_0", HALF_SINGLE, "pwi", |it| quantized::dequantize(it, Format::Q5_0)),
    row("dequantize_block_q5_1", HALF_SINGLE, "pwi", |it| quantized::dequantize(it, Format::Q5_1)),
    row("dequantize_block_q5_K", HALF_SINGLE, "pw", |it| quantized::dequantize(it, Format::Q5K)),
    row("dequantize_block_q6_K", HALF_SINGLE, "pw", |it| quantized::dequantize(it, Format::Q6K)),
    row("dequantize_block_q8_0", HALF_SINGLE, "pwi", |it| quantized::dequantize(it, Format::Q8_0)),
    row("dequantize_block_q8_K", HALF_SINGLE, "pw", |it| quantized::dequantize(it, Format::Q8K)),
    row("dequantize_mul_mat_vec_q2_k", UNTYPED, "ppwii", |it| {
        quantized::dequantized_k(it, Format::Q2K)
    }),
    row("dequantize_mul_mat_vec_q3_k", UNTYPED, "ppwii", |it| {
        quantized::dequantized_k(it, Format::Q3K)
    }),
    row("dequantize_mul_mat_vec_q4_0_cuda", UNTYPED, "ppwii", |it| {
        quantized::dequantized_vector(it, Format::Q4_0)
    }),
    row("dequantize_mul_mat_vec_q4_1_cuda", UNTYPED, "ppwii", |it| {
        quantized::dequantized_vector(it, Format::Q4_1)
    }),
    row("dequantize_mul_mat_vec_q4_k", UNTYPED, "ppwii", |it| {
        quantized::dequantized_k(it, Format::Q4K)
    }),
    row("dequantize_mul_mat_vec_q5_0_cuda", UNTYPED, "ppwii", |it| {
        quantized::dequantized_vector(it, Format::Q5_0)
    }),
    row("dequantize_mul_mat_vec_q5_1_cuda", UNTYPED, "ppwii", |it| {
        quantized::dequantized_vector(it, Format::Q5_1)
    }),
    row("dequantize_mul_mat_vec_q5_k", UNTYPED, "ppwi", |it| {
        quantized::dequantized_k(it, Format::Q5K)
    }),
    row("dequantize_mul_mat_vec_q6_k", UNTYPED, "ppwii", |it| {
        quantized::dequantized_k(it, Format::Q6K)
    }),
    row("dequantize_mul_mat_vec_q8_0_cuda", UNTYPED, "ppwii", |it| {
        quantized::dequantized_vector(it, Format::Q8_0)
    }),
    row(
        "get_rows",
        &[(Kind::Bf16, ALWAYS), (Kind::F16, ALWAYS), (Kind::F32, ALWAYS)],
        "ppwls",
        |it| quantized::rows(it, None),
    ),
    row("get_rows_q2_K", UNTYPED, "ppwls", |it| quantized::rows(it, Some(Format::Q2K))),
    row("get_rows_q3_K", UNTYPED, "ppwls", |it| quantized::rows(it, Some(Format::Q3K))),
    row("get_rows_q4_0", UNTYPED, "ppwls", |it| quantized::rows(it, Some(Format::Q4_0))),
    row("get_rows_q4_1", UNTYPED, "ppwls", |it| quantized::rows(it, Some(Format::Q4_1))),
    row("get_rows_q4_K", UNTYPED, "ppwls", |it| quantized::rows(it, Some(Format::Q4K))),
    row("get_rows_q5_0", UNTYPED, "ppwls", |it| quantized::rows(it, Some(Format::Q5_0))),
    row("get_rows_q5_1", UNTYPED, "ppwls", |it| quantized::rows(it, Some(Format::Q5_1))),
    row("get_rows_q5_K", UNTYPED, "ppwls", |it| quantized::rows(it, Some(Format::Q5K))),
    row("get_rows_q6_K", UNTYPED, "ppwls", |it| quantized::rows(it, Some(Format::Q6K))),
    row("get_rows_q8_0", UNTYPED, "ppwls", |it| quantized::rows(it, Some(Format::Q8_0))),
    row("indexed_moe_forward_q2k_q8_1", UNTYPED, "pppwiiiiii", |it| {
        quantized::experts(it, Format::Q2K)
    }),
    row("indexed_moe_forward_q3k_q8_1", UNTYPED, "pppwiiiiii", |it| {
        quantized::experts(it, Format::Q3K)
    }),
    row("indexed_moe_forward_q4k_q8_1", UNTYPED, "pppwiiiiii", |it| {
        quantized::experts(it, Format::Q4K)
    }),
    row("indexed_moe_forward_q5k_q8_1", UNTYPED, "pppwiiiiii", |it| {
        quantized::experts(it, Format::Q5K)
    }),
    row("indexed_moe_forward_q6k_q8_1", UNTYPED, "pppwiiiiii", |it| {
        quantized::experts(it, Format::Q6K)
    }),
    row("indexed_moe_forward_q8_0_q8_1", UNTYPED, "pppwiiiiii", |it| {
        quantized::experts(it, Format::Q8_0)
    }),
    row("mul_mat_q2_K", UNTYPED, "ppwiiiii", |it| quantized::matrices(it, Format::Q2K)),
    row("mul_mat_q3_K", UNTYPED, "ppwiiiii", |it| quantized::matrices(it, Format::Q3K)),
    row("mul_mat_q4_0", UNTYPED, "ppwiiiii", |it| quantized::matrices(it, Format::Q4_0)),
    row("mul_mat_q4_1", UNTYPED, "ppwiiiii", |it| quantized::matrices(it, Format::Q4_1)),
    row("mul_mat_q4_K", UNTYPED, "ppwiiiii", |it| quantized::matrices(it, Format::Q4K)),
    row("mul_mat_q5_0", UNTYPED, "ppwiiiii", |it| quantized::matrices(it, Format::Q5_0)),
    row("mul_mat_q5_1", UNTYPED, "ppwiiiii", |it| quantized::matrices(it, Format::Q5_1)),
    row("mul_mat_q5_K", UNTYPED, "ppwiiiii", |it| quantized::matrices(it, Format::Q5K)),
    row("mul_mat_q6_K", UNTYPED, "ppwiiiii", |it| quantized::matrices(it, Format::Q6K)),
    row("mul_mat_q8_0", UNTYPED, "ppwiiiii", |it| quantized::matrices(it, Format::Q8_0)),
    row("quantize_q8_1", UNTYPED, "pwii", quantized::quantize),
    row("mul_mat_vec_q2_K_q8_1_cuda1", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q2K, 1)
    }),
    row("mul_mat_vec_q2_K_q8_1_cuda2", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q2K, 2)
    }),
    row("mul_mat_vec_q2_K_q8_1_cuda3", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q2K, 3)
    }),
    row("mul_mat_vec_q2_K_q8_1_cuda4", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q2K, 4)
    }),
    row("mul_mat_vec_q2_K_q8_1_cuda5", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q2K, 5)
    }),
    row("mul_mat_vec_q2_K_q8_1_cuda6", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q2K, 6)
    }),
    row("mul_mat_vec_q2_K_q8_1_cuda7", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q2K, 7)
    }),
    row("mul_mat_vec_q2_K_q8_1_cuda8", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q2K, 8)
    }),
    row("mul_mat_vec_q3_K_q8_1_cuda1", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q3K, 1)
    }),
    row("mul_mat_vec_q3_K_q8_1_cuda2", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q3K, 2)
    }),
    row("mul_mat_vec_q3_K_q8_1_cuda3", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q3K, 3)
    }),
    row("mul_mat_vec_q3_K_q8_1_cuda4", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q3K, 4)
    }),
    row("mul_mat_vec_q3_K_q8_1_cuda5", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q3K, 5)
    }),
    row("mul_mat_vec_q3_K_q8_1_cuda6", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q3K, 6)
    }),
    row("mul_mat_vec_q3_K_q8_1_cuda7", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q3K, 7)
    }),
    row("mul_mat_vec_q3_K_q8_1_cuda8", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q3K, 8)
    }),
    row("mul_mat_vec_q4_0_q8_1_cuda1", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q4_0, 1)
    }),
    row("mul_mat_vec_q4_0_q8_1_cuda2", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q4_0, 2)
    }),
    row("mul_mat_vec_q4_0_q8_1_cuda3", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q4_0, 3)
    }),
    row("mul_mat_vec_q4_0_q8_1_cuda4", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q4_0, 4)
    }),
    row("mul_mat_vec_q4_0_q8_1_cuda5", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q4_0, 5)
    }),
    row("mul_mat_vec_q4_0_q8_1_cuda6", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q4_0, 6)
    }),
    row("mul_mat_vec_q4_0_q8_1_cuda7", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q4_0, 7)
    }),
    row("mul_mat_vec_q4_0_q8_1_cuda8", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q4_0, 8)
    }),
    row("mul_mat_vec_q4_1_q8_1_cuda1", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q4_1, 1)
    }),
    row("mul_mat_vec_q4_1_q8_1_cuda2", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q4_1, 2)
    }),
    row("mul_mat_vec_q4_1_q8_1_cuda3", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q4_1, 3)
    }),
    row("mul_mat_vec_q4_1_q8_1_cuda4", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q4_1, 4)
    }),
    row("mul_mat_vec_q4_1_q8_1_cuda5", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q4_1, 5)
    }),
    row("mul_mat_vec_q4_1_q8_1_cuda6", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q4_1, 6)
    }),
    row("mul_mat_vec_q4_1_q8_1_cuda7", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q4_1, 7)
    }),
    row("mul_mat_vec_q4_1_q8_1_cuda8", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q4_1, 8)
    }),
    row("mul_mat_vec_q4_K_q8_1_cuda1", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q4K, 1)
    }),
    row("mul_mat_vec_q4_K_q8_1_cuda2", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q4K, 2)
    }),
    row("mul_mat_vec_q4_K_q8_1_cuda3", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q4K, 3)
    }),
    row("mul_mat_vec_q4_K_q8_1_cuda4", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q4K, 4)
    }),
    row("mul_mat_vec_q4_K_q8_1_cuda5", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q4K, 5)
    }),
    row("mul_mat_vec_q4_K_q8_1_cuda6", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q4K, 6)
    }),
    row("mul_mat_vec_q4_K_q8_1_cuda7", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q4K, 7)
    }),
    row("mul_mat_vec_q4_K_q8_1_cuda8", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q4K, 8)
    }),
    row("mul_mat_vec_q5_0_q8_1_cuda1", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q5_0, 1)
    }),
    row("mul_mat_vec_q5_0_q8_1_cuda2", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q5_0, 2)
    }),
    row("mul_mat_vec_q5_0_q8_1_cuda3", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q5_0, 3)
    }),
    row("mul_mat_vec_q5_0_q8_1_cuda4", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q5_0, 4)
    }),
    row("mul_mat_vec_q5_0_q8_1_cuda5", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q5_0, 5)
    }),
    row("mul_mat_vec_q5_0_q8_1_cuda6", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q5_0, 6)
    }),
    row("mul_mat_vec_q5_0_q8_1_cuda7", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q5_0, 7)
    }),
    row("mul_mat_vec_q5_0_q8_1_cuda8", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q5_0, 8)
    }),
    row("mul_mat_vec_q5_1_q8_1_cuda1", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q5_1, 1)
    }),
    row("mul_mat_vec_q5_1_q8_1_cuda2", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q5_1, 2)
    }),
    row("mul_mat_vec_q5_1_q8_1_cuda3", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q5_1, 3)
    }),
    row("mul_mat_vec_q5_1_q8_1_cuda4", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q5_1, 4)
    }),
    row("mul_mat_vec_q5_1_q8_1_cuda5", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q5_1, 5)
    }),
    row("mul_mat_vec_q5_1_q8_1_cuda6", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q5_1, 6)
    }),
    row("mul_mat_vec_q5_1_q8_1_cuda7", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q5_1, 7)
    }),
    row("mul_mat_vec_q5_1_q8_1_cuda8", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q5_1, 8)
    }),
    row("mul_mat_vec_q5_K_q8_1_cuda1", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q5K, 1)
    }),
    row("mul_mat_vec_q5_K_q8_1_cuda2", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q5K, 2)
    }),
    row("mul_mat_vec_q5_K_q8_1_cuda3", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q5K, 3)
    }),
    row("mul_mat_vec_q5_K_q8_1_cuda4", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q5K, 4)
    }),
    row("mul_mat_vec_q5_K_q8_1_cuda5", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q5K, 5)
    }),
    row("mul_mat_vec_q5_K_q8_1_cuda6", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q5K, 6)
    }),
    row("mul_mat_vec_q5_K_q8_1_cuda7", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q5K, 7)
    }),
    row("mul_mat_vec_q5_K_q8_1_cuda8", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q5K, 8)
    }),
    row("mul_mat_vec_q6_K_q8_1_cuda1", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q6K, 1)
    }),
    row("mul_mat_vec_q6_K_q8_1_cuda2", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q6K, 2)
    }),
    row("mul_mat_vec_q6_K_q8_1_cuda3", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q6K, 3)
    }),
    row("mul_mat_vec_q6_K_q8_1_cuda4", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q6K, 4)
    }),
    row("mul_mat_vec_q6_K_q8_1_cuda5", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q6K, 5)
    }),
    row("mul_mat_vec_q6_K_q8_1_cuda6", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q6K, 6)
    }),
    row("mul_mat_vec_q6_K_q8_1_cuda7", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q6K, 7)
    }),
    row("mul_mat_vec_q6_K_q8_1_cuda8", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q6K, 8)
    }),
    row("mul_mat_vec_q8_0_q8_1_cuda1", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q8_0, 1)
    }),
    row("mul_mat_vec_q8_0_q8_1_cuda2", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q8_0, 2)
    }),
    row("mul_mat_vec_q8_0_q8_1_cuda3", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q8_0, 3)
    }),
    row("mul_mat_vec_q8_0_q8_1_cuda4", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q8_0, 4)
    }),
    row("mul_mat_vec_q8_0_q8_1_cuda5", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q8_0, 5)
    }),
    row("mul_mat_vec_q8_0_q8_1_cuda6", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q8_0, 6)
    }),
    row("mul_mat_vec_q8_0_q8_1_cuda7", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q8_0, 7)
    }),
    row("mul_mat_vec_q8_0_q8_1_cuda8", UNTYPED, "ppwiiii", |it| {
        quantized::vectors(it, Format::Q8_0, 8)
    }),
];
