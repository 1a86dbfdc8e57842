//! Convolutions, indexing, reductions, normalisation, rotary embeddings and sorting.

use super::*;

pub(super) static CONV: &[Row] = &[
    listed("avg_pool2d", IMAGES, "sssssppw"),
    listed("col2im1d", IMAGES, "sssssspw"),
    listed("conv1d", IMAGES, "ssssspppw"),
    listed("conv2d", IMAGES, "sssssspppw"),
    listed("conv_transpose1d", IMAGES, "sssssspppw"),
    listed("conv_transpose2d", IMAGES, "ssssssspppw"),
    listed("im2col1d", IMAGES, "ssssssppw"),
    listed("im2col", IMAGES, "ssssssssppw"),
    listed("max_pool2d", IMAGES, "sssssppw"),
    listed("upsample_bilinear2d", IMAGES, "ssbbdbdppw"),
    listed("upsample_nearest2d", IMAGES, "ssddppw"),
];

pub(super) static INDEXING: &[Row] = &[
    listed("gather_i16", F8_ONLY, "sppwssss"),
    listed("gather_i32", F8_ONLY, "sppwssss"),
    listed("gather_i64", NUMBERS_F8, "sppwssss"),
    listed("gather_u32", NUMBERS_F8, "sppwssss"),
    listed("gather_u8", NUMBERS_F8, "sppwssss"),
    listed("ia_i16", F8_ONLY, "pspwssss"),
    listed("ia_i32", F8_ONLY, "pspwssss"),
    listed("ia_i64", NUMBERS_F8, "pspwssss"),
    listed("ia_u32", NUMBERS_F8, "pspwssss"),
    listed("ia_u8", NUMBERS_F8, "pspwssss"),
    listed("is_i16", F8_ONLY, "sspppwssss"),
    listed("is_i32", F8_ONLY, "sspppwssss"),
    listed("is_i64", NUMBERS_F8, "sspppwssss"),
    listed("is_u32", NUMBERS_F8, "sspppwssss"),
    listed("is_u8", NUMBERS_F8, "sspppwssss"),
    listed("s_i64", NUMBERS, "ppwssss"),
    listed("s_u32", NUMBERS, "ppwssss"),
    listed("s_u8", NUMBERS, "ppwssss"),
    listed("sa_i16", F8_ONLY, "ppwssss"),
    listed("sa_i32", F8_ONLY, "ppwssss"),
    listed("sa_i64", NUMBERS_F8, "ppwssss"),
    listed("sa_u32", NUMBERS_F8, "ppwssss"),
    listed("sa_u8", NUMBERS_F8, "ppwssss"),
];

pub(super) static REDUCE: &[Row] = &[
    listed("fast_argmax", NUMBERS, "sssppw"),
    listed("fast_argmin", NUMBERS, "sssppw"),
    listed("fast_max", NUMBERS, "sssppw"),
    listed("fast_min", NUMBERS, "sssppw"),
    listed("fast_sum", NUMBERS, "sssppw"),
    listed("fast_sum_small", NUMBERS, "sssppw"),
    listed("layernorm", FLOATS, "pwppiif"),
    listed("rmsnorm", FLOATS, "pwpiif"),
    listed("rope", FLOATS, "pppwuuuu"),
    listed("rope_i", FLOATS, "pppwuuu"),
    listed("rope_thd", FLOATS, "pppwuuuuu"),
    listed("softmax", FLOATS, "pwi"),
    listed(
        "sum",
        &[
            (Kind::U32, ALWAYS),
            (Kind::Bf16, 80),
            (Kind::F16, ALWAYS),
            (Kind::F32, ALWAYS),
            (Kind::F64, ALWAYS),
        ],
        "sssppw",
    ),
];

pub(super) static SORT: &[Row] =
    &[listed("asort_asc", NUMBERS, "pwii"), listed("asort_desc", NUMBERS, "pwii")];
