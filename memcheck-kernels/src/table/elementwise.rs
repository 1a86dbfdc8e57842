//! Kernels that compute each element by itself: affine, binary, cast, fill, ternary and unary.

use super::*;
use crate::binary::{self, Arithmetic};
use crate::compare::{self, Comparison};
use crate::unary::{self, Op, WithParameter};
use crate::{affine, cast, copy, fill, select};

pub(super) static AFFINE: &[Row] = &[row(
    "affine",
    &[
        (Kind::U8, ALWAYS),
        (Kind::U32, ALWAYS),
        (Kind::I16, ALWAYS),
        (Kind::I32, ALWAYS),
        (Kind::I64, ALWAYS),
        (Kind::Bf16, 80),
        (Kind::F16, ALWAYS),
        (Kind::F32, ALWAYS),
        (Kind::F64, ALWAYS),
        (Kind::F8, 89),
    ],
    "ssppwtt",
    affine::run,
)];

pub(super) static BINARY: &[Row] = &[
    row("badd", NUMBERS_F8_80, "sspppw", |it| binary::run(it, Arithmetic::Add)),
    row("bdiv", NUMBERS_F8_80, "sspppw", |it| binary::run(it, Arithmetic::Div)),
    row("bmaximum", NUMBERS_F8_80, "sspppw", |it| binary::run(it, Arithmetic::Maximum)),
    row("bminimum", NUMBERS_F8_80, "sspppw", |it| binary::run(it, Arithmetic::Minimum)),
    row("bmul", NUMBERS_F8_80, "sspppw", |it| binary::run(it, Arithmetic::Mul)),
    row("bsub", NUMBERS_F8_80, "sspppw", |it| binary::run(it, Arithmetic::Sub)),
    row("eq", NUMBERS_F8_80, "sspppw", |it| compare::run(it, Comparison::Eq)),
    row("ge", NUMBERS_F8_80, "sspppw", |it| compare::run(it, Comparison::Ge)),
    row("gt", NUMBERS_F8_80, "sspppw", |it| compare::run(it, Comparison::Gt)),
    row("le", NUMBERS_F8_80, "sspppw", |it| compare::run(it, Comparison::Le)),
    row("lt", NUMBERS_F8_80, "sspppw", |it| compare::run(it, Comparison::Lt)),
    row("ne", NUMBERS_F8_80, "sspppw", |it| compare::run(it, Comparison::Ne)),
];

pub(super) static CAST: &[Row] = &[
    row(
        "cast_bf16",
        &[
            (Kind::U8, ALWAYS),
            (Kind::U32, 80),
            (Kind::Bf16, 80),
            (Kind::F16, ALWAYS),
            (Kind::F32, ALWAYS),
            (Kind::F64, ALWAYS),
            (Kind::F8, ALWAYS),
        ],
        "ssppw",
        |it| cast::run(it, Kind::Bf16),
    ),
    row(
        "cast_f16",
        &[
            (Kind::U8, ALWAYS),
            (Kind::U32, ALWAYS),
            (Kind::Bf16, ALWAYS),
            (Kind::F16, ALWAYS),
            (Kind::F32, ALWAYS),
            (Kind::F64, ALWAYS),
            (Kind::F8, 80),
        ],
        "ssppw",
        |it| cast::run(it, Kind::F16),
    ),
    row("cast_f32", NUMBERS_BF16, "ssppw", |it| cast::run(it, Kind::F32)),
    row("cast_f64", NUMBERS_BF16, "ssppw", |it| cast::run(it, Kind::F64)),
    row(
        "cast_f8_e4m3",
        &[
            (Kind::U8, 80),
            (Kind::I32, 80),
            (Kind::Bf16, 80),
            (Kind::F16, 80),
            (Kind::F32, 80),
            (Kind::F64, 80),
            (Kind::F8, 80),
        ],
        "ssppw",
        |it| cast::run(it, Kind::F8),
    ),
    row("cast_i32", &[(Kind::F8, 80)], "ssppw", |it| cast::run(it, Kind::I32)),
    row(
        "cast_i64",
        &[
            (Kind::U8, ALWAYS),
            (Kind::U32, ALWAYS),
            (Kind::I64, ALWAYS),
            (Kind::F32, ALWAYS),
            (Kind::F64, ALWAYS),
        ],
        "ssppw",
        |it| cast::run(it, Kind::I64),
    ),
    row("cast_u32", NUMBERS, "ssppw", |it| cast::run(it, Kind::U32)),
    row("cast_u8", NUMBERS_BF16, "ssppw", |it| cast::run(it, Kind::U8)),
];

pub(super) static FILL: &[Row] = &[
    row("const_set", NUMBERS_F8_80, "ssptw", fill::set),
    row("copy2d", NUMBERS_F8_80, "pwuuuu", copy::rows),
    row("fill", NUMBERS_F8_80, "wts", fill::fill),
];

pub(super) static TERNARY: &[Row] = &[
    row("where_i16", FP8_ONLY, "ssppppw", |it| select::run(it, Kind::I16)),
    row("where_i32", FP8_ONLY, "ssppppw", |it| select::run(it, Kind::I32)),
    row("where_i64", NUMBERS_FP8, "ssppppw", |it| select::run(it, Kind::I64)),
    row("where_u32", NUMBERS_FP8, "ssppppw", |it| select::run(it, Kind::U32)),
    row("where_u8", NUMBERS_FP8, "ssppppw", |it| select::run(it, Kind::U8)),
];

pub(super) static UNARY: &[Row] = &[
    row("uabs", FLOATS_FP8, "ssppw", |it| unary::run(it, Op::Abs)),
    row("uceil", FLOATS_FP8, "ssppw", |it| unary::run(it, Op::Ceil)),
    row("ucopy", NUMBERS_F8, "ssppw", copy::strided),
    row("ucos", FLOATS_FP8, "ssppw", |it| unary::run(it, Op::Cos)),
    row("uelu", FLOATS_FP8, "ssptpw", |it| unary::run_with_parameter(it, WithParameter::Elu)),
    row("uerf", FLOATS_FP8, "ssppw", |it| unary::run(it, Op::Erf)),
    row("uexp", FLOATS_FP8, "ssppw", |it| unary::run(it, Op::Exp)),
    row("ufloor", FLOATS_FP8, "ssppw", |it| unary::run(it, Op::Floor)),
    row("ugelu", FLOATS_FP8, "ssppw", |it| unary::run(it, Op::Gelu)),
    row("ugelu_erf", FLOATS_FP8, "ssppw", |it| unary::run(it, Op::GeluErf)),
    row("ulog", FLOATS_FP8, "ssppw", |it| unary::run(it, Op::Log)),
    row("uneg", FLOATS_FP8, "ssppw", |it| unary::run(it, Op::Neg)),
    row("unormcdf", FLOATS_FP8, "ssppw", |it| unary::run(it, Op::Normcdf)),
    row("upowf", FLOATS_FP8, "ssptpw", |it| unary::run_with_parameter(it, WithParameter::Powf)),
    row("urecip", FLOATS_FP8, "ssppw", |it| unary::run(it, Op::Recip)),
    row("urelu", FLOATS_FP8, "ssppw", |it| unary::run(it, Op::Relu)),
    row("uround", FLOATS_FP8, "ssppw", |it| unary::run(it, Op::Round)),
    row("usigmoid", FLOATS_FP8, "ssppw", |it| unary::run(it, Op::Sigmoid)),
    row("usign", FLOATS_FP8, "ssppw", |it| unary::run(it, Op::Sign)),
    row("usilu", FLOATS_FP8, "ssppw", |it| unary::run(it, Op::Silu)),
    row("usin", FLOATS_FP8, "ssppw", |it| unary::run(it, Op::Sin)),
    row("usqr", FLOATS_FP8, "ssppw", |it| unary::run(it, Op::Sqr)),
    row("usqrt", FLOATS_FP8, "ssppw", |it| unary::run(it, Op::Sqrt)),
    row("utanh", FLOATS_FP8, "ssppw", |it| unary::run(it, Op::Tanh)),
];
