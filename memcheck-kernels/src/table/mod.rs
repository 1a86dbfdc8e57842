//! The kernels of candle-kernels 0.11.1 with their arguments, one row for each kernel. `editions`
//! has the differences of earlier versions.
//!
//! A kernel of a module is named `{root}{suffix of the type}`. It exists from a compute capability
//! on, which is the macro `__CUDA_ARCH__` around its definition. `sources` compares the rows with the
//! sources of candle-kernels, after the C preprocessor.
//!
//! The letters of `arguments` are the types of the arguments in order: `p` a pointer that the
//! kernel reads, `w` a pointer that it writes, `s` `size_t`, `l` `int64_t`, `i` `int`, `u`
//! `unsigned`, `f` `float`, `d` `double`, `b` `bool`, and `t` the element type.

mod editions;
mod elementwise;
#[cfg(test)]
mod known_sources;
mod quantized;
mod rest;
#[cfg(test)]
mod sources;

use super::Run;
use super::kinds::Kind;
pub(crate) use editions::Edition;

pub struct Row {
    /// The name without the type.
    pub(super) root: &'static str,
    pub(super) kinds: &'static [Variant],
    pub(super) arguments: &'static str,
    pub(super) run: Run,
}

/// A type for which a kernel exists, and the compute capability, such as 80, from which it exists.
pub(super) type Variant = (Kind, u8);

/// On every card.
const ALWAYS: u8 = 0;
/// Types for which several kernels exist.
const FLOATS: &[Variant] =
    &[(Kind::Bf16, 80), (Kind::F16, ALWAYS), (Kind::F32, ALWAYS), (Kind::F64, ALWAYS)];
const FLOATS_FP8: &[Variant] = &[
    (Kind::Bf16, 80),
    (Kind::F16, ALWAYS),
    (Kind::F32, ALWAYS),
    (Kind::F64, ALWAYS),
    (Kind::Fp8, 89),
];
const NUMBERS: &[Variant] = &[
    (Kind::U8, ALWAYS),
    (Kind::U32, ALWAYS),
    (Kind::I64, ALWAYS),
    (Kind::Bf16, 80),
    (Kind::F16, ALWAYS),
    (Kind::F32, ALWAYS),
    (Kind::F64, ALWAYS),
];
const NUMBERS_F8: &[Variant] = &[
    (Kind::U8, ALWAYS),
    (Kind::U32, ALWAYS),
    (Kind::I64, ALWAYS),
    (Kind::Bf16, 80),
    (Kind::F16, ALWAYS),
    (Kind::F32, ALWAYS),
    (Kind::F64, ALWAYS),
    (Kind::F8, 89),
];
const NUMBERS_FP8: &[Variant] = &[
    (Kind::U8, ALWAYS),
    (Kind::U32, ALWAYS),
    (Kind::I64, ALWAYS),
    (Kind::Bf16, 80),
    (Kind::F16, ALWAYS),
    (Kind::F32, ALWAYS),
    (Kind::F64, ALWAYS),
    (Kind::Fp8, 89),
];
const NUMBERS_F8_80: &[Variant] = &[
    (Kind::U8, ALWAYS),
    (Kind::U32, ALWAYS),
    (Kind::I64, ALWAYS),
    (Kind::Bf16, 80),
    (Kind::F16, ALWAYS),
    (Kind::F32, ALWAYS),
    (Kind::F64, ALWAYS),
    (Kind::F8, 80),
];
const NUMBERS_BF16: &[Variant] = &[
    (Kind::U8, ALWAYS),
    (Kind::U32, ALWAYS),
    (Kind::I64, ALWAYS),
    (Kind::Bf16, ALWAYS),
    (Kind::F16, ALWAYS),
    (Kind::F32, ALWAYS),
    (Kind::F64, ALWAYS),
    (Kind::F8, 80),
];
const IMAGES: &[Variant] = &[
    (Kind::U8, ALWAYS),
    (Kind::U32, ALWAYS),
    (Kind::Bf16, 80),
    (Kind::F16, ALWAYS),
    (Kind::F32, ALWAYS),
    (Kind::F64, ALWAYS),
];
const UNTYPED: &[Variant] = &[(Kind::Untyped, ALWAYS)];
const HALF_SINGLE: &[Variant] = &[(Kind::F16, ALWAYS), (Kind::F32, ALWAYS)];
const F8_ONLY: &[Variant] = &[(Kind::F8, 89)];
const FP8_ONLY: &[Variant] = &[(Kind::Fp8, 89)];

const fn row(
    root: &'static str,
    kinds: &'static [Variant],
    arguments: &'static str,
    run: Run,
) -> Row {
    Row { root, kinds, arguments, run }
}

/// The rows of a module, by the name of its source file.
static MODULES: &[(&str, &[Row])] = &[
    ("affine", elementwise::AFFINE),
    ("binary", elementwise::BINARY),
    ("cast", elementwise::CAST),
    ("conv", rest::CONV),
    ("fill", elementwise::FILL),
    ("indexing", rest::INDEXING),
    ("quantized", quantized::QUANTIZED),
    ("reduce", rest::REDUCE),
    ("sort", rest::SORT),
    ("ternary", elementwise::TERNARY),
    ("unary", elementwise::UNARY),
];

/// A kernel: a row and an element type.
#[derive(Clone, Copy)]
pub struct Kernel {
    pub(crate) row: &'static Row,
    pub(crate) kind: Kind,
}

/// Returns the rows of a module of candle-kernels.
pub(super) fn module(stem: &str) -> Option<&'static [Row]> {
    MODULES.iter().find(|(name, _)| *name == stem).map(|&(_, rows)| rows)
}

/// Returns all rows.
pub(super) fn all() -> impl Iterator<Item = &'static Row> {
    MODULES.iter().flat_map(|&(_, rows)| rows)
}

/// Returns the kernel with this name on a card with this compute capability.
pub(super) fn find(
    mut rows: impl Iterator<Item = &'static Row>,
    name: &str,
    capability: u8,
) -> Option<Kernel> {
    rows.find_map(|row| {
        let suffix = name.strip_prefix(row.root)?;
        let &(kind, _) = row
            .kinds
            .iter()
            .find(|&&(kind, from)| kind.suffix() == suffix && from <= capability)?;
        Some(Kernel { row, kind })
    })
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}{}", self.row.root, self.kind.suffix())
    }
}

impl Kernel {
    /// The widths of the arguments in bytes.
    pub fn widths(self) -> impl Iterator<Item = u64> {
        self.row.arguments.chars().map(move |letter| match letter {
            'b' => 1,
            'i' | 'u' | 'f' => 4,
            't' => self.kind.width(),
            _ => 8,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_in_its_module_from_its_capability_on() {
        let in_module = |stem, name, capability| {
            find(module(stem).unwrap().iter(), name, capability).map(|found| format!("{found:?}"))
        };
        assert_eq!(in_module("unary", "uneg_f32", 75).as_deref(), Some("uneg_f32"));
        assert_eq!(in_module("unary", "uneg_bf16", 75), None);
        assert_eq!(in_module("unary", "uneg_bf16", 80).as_deref(), Some("uneg_bf16"));
        assert_eq!(in_module("affine", "uneg_f32", 90), None);
        assert_eq!(in_module("reduce", "adamw_mt_f32", 90), None);
        assert_eq!(in_module("unary", "uneg_f8e4m3", 90), None);
        assert_eq!(in_module("binary", "badd_i32", 90), None);
        assert_eq!(in_module("cast", "cast_u8_f32", 75).as_deref(), Some("cast_u8_f32"));
        assert_eq!(in_module("quantized", "quantize_q8_1", 75).as_deref(), Some("quantize_q8_1"));
        assert!(module("moe").is_none());
    }

    #[test]
    fn widths_follow_the_letters_and_the_type() {
        let widths = |stem, name| {
            find(module(stem).unwrap().iter(), name, 90).unwrap().widths().collect::<Vec<_>>()
        };
        assert_eq!(widths("affine", "affine_f16"), [8, 8, 8, 8, 8, 2, 2]);
        assert_eq!(widths("fill", "copy2d_f32"), [8, 8, 4, 4, 4, 4]);
        assert_eq!(widths("conv", "upsample_bilinear2d_f32"), [8, 8, 1, 1, 8, 1, 8, 8, 8, 8]);
    }
}
