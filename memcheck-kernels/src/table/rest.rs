//! Convolutions, indexing, reductions, normalisation, rotary embeddings and sorting.

use super::*;
use crate::reduce::{self, Extreme};
use crate::{conv, indexing, norms, pool, rope, sort, sum};

pub(super) static CONV: &[Row] = &[
    row("avg_pool2d", IMAGES, "sssssppw", pool::average),
    row("col2im1d", IMAGES, "sssssspw", conv::from_columns),
    row("conv1d", IMAGES, "ssssspppw", conv::one_dim),
    row("conv2d", IMAGES, "sssssspppw", conv::two_dim),
    row("conv_transpose1d", IMAGES, "sssssspppw", conv::transposed_one_dim),
    row("conv_transpose2d", IMAGES, "ssssssspppw", conv::transposed_two_dim),
    row("im2col1d", IMAGES, "ssssssppw", conv::columns_one_dim),
    row("im2col", IMAGES, "ssssssssppw", conv::columns_two_dim),
    row("max_pool2d", IMAGES, "sssssppw", pool::largest),
    row("upsample_bilinear2d", IMAGES, "ssbbdbdppw", pool::bilinear),
    row("upsample_nearest2d", IMAGES, "ssddppw", pool::nearest),
];

pub(super) static INDEXING: &[Row] = &[
    row("gather_i16", F8_ONLY, "sppwssss", |it| indexing::gather(it, Kind::I16)),
    row("gather_i32", F8_ONLY, "sppwssss", |it| indexing::gather(it, Kind::I32)),
    row("gather_i64", NUMBERS_F8, "sppwssss", |it| indexing::gather(it, Kind::I64)),
    row("gather_u32", NUMBERS_F8, "sppwssss", |it| indexing::gather(it, Kind::U32)),
    row("gather_u8", NUMBERS_F8, "sppwssss", |it| indexing::gather(it, Kind::U8)),
    row("ia_i16", F8_ONLY, "pspwssss", |it| indexing::add(it, Kind::I16)),
    row("ia_i32", F8_ONLY, "pspwssss", |it| indexing::add(it, Kind::I32)),
    row("ia_i64", NUMBERS_F8, "pspwssss", |it| indexing::add(it, Kind::I64)),
    row("ia_u32", NUMBERS_F8, "pspwssss", |it| indexing::add(it, Kind::U32)),
    row("ia_u8", NUMBERS_F8, "pspwssss", |it| indexing::add(it, Kind::U8)),
    row("is_i16", F8_ONLY, "sspppwssss", |it| indexing::select(it, Kind::I16)),
    row("is_i32", F8_ONLY, "sspppwssss", |it| indexing::select(it, Kind::I32)),
    row("is_i64", NUMBERS_F8, "sspppwssss", |it| indexing::select(it, Kind::I64)),
    row("is_u32", NUMBERS_F8, "sspppwssss", |it| indexing::select(it, Kind::U32)),
    row("is_u8", NUMBERS_F8, "sspppwssss", |it| indexing::select(it, Kind::U8)),
    row("s_i64", NUMBERS, "ppwssss", |it| indexing::scatter(it, Kind::I64)),
    row("s_u32", NUMBERS, "ppwssss", |it| indexing::scatter(it, Kind::U32)),
    row("s_u8", NUMBERS, "ppwssss", |it| indexing::scatter(it, Kind::U8)),
    row("sa_i16", F8_ONLY, "ppwssss", |it| indexing::scatter_add(it, Kind::I16)),
    row("sa_i32", F8_ONLY, "ppwssss", |it| indexing::scatter_add(it, Kind::I32)),
    row("sa_i64", NUMBERS_F8, "ppwssss", |it| indexing::scatter_add(it, Kind::I64)),
    row("sa_u32", NUMBERS_F8, "ppwssss", |it| indexing::scatter_add(it, Kind::U32)),
    row("sa_u8", NUMBERS_F8, "ppwssss", |it| indexing::scatter_add(it, Kind::U8)),
];

pub(super) static REDUCE: &[Row] = &[
    row("fast_argmax", NUMBERS, "sssppw", |it| reduce::position(it, Extreme::Largest)),
    row("fast_argmin", NUMBERS, "sssppw", |it| reduce::position(it, Extreme::Smallest)),
    row("fast_max", NUMBERS, "sssppw", |it| reduce::extreme(it, Extreme::Largest)),
    row("fast_min", NUMBERS, "sssppw", |it| reduce::extreme(it, Extreme::Smallest)),
    row("fast_sum", NUMBERS, "sssppw", reduce::sum),
    row("fast_sum_small", NUMBERS, "sssppw", reduce::sum_small),
    row("layernorm", FLOATS, "pwppiif", norms::layer),
    row("rmsnorm", FLOATS, "pwpiif", norms::rms),
    row("rope", FLOATS, "pppwuuuu", rope::halves),
    row("rope_i", FLOATS, "pppwuuu", rope::interleaved),
    row("rope_thd", FLOATS, "pppwuuuuu", rope::positions_first),
    row("softmax", FLOATS, "pwi", norms::softmax),
    row(
        "sum",
        &[
            (Kind::U32, ALWAYS),
            (Kind::Bf16, 80),
            (Kind::F16, ALWAYS),
            (Kind::F32, ALWAYS),
            (Kind::F64, ALWAYS),
        ],
        "sssppw",
        sum::run,
    ),
];

pub(super) static SORT: &[Row] = &[
    row("asort_asc", NUMBERS, "pwii", |it| sort::positions(it, true)),
    row("asort_desc", NUMBERS, "pwii", |it| sort::positions(it, false)),
];
