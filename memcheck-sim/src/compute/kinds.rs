//! The element types of kernels, under the names that kernels have for them.

/// An element type of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    U8,
    U32,
    I16,
    I32,
    I64,
    Bf16,
    F16,
    F32,
    F64,
    /// `f8_e4m3`.
    F8,
    /// The same type, which some kernels call `fp8_e4m3`.
    Fp8,
    /// The kernel has no element type in its name.
    Untyped,
}

impl Kind {
    /// The end of a kernel's name, with the underscore before it.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Self::U8 => "_u8",
            Self::U32 => "_u32",
            Self::I16 => "_i16",
            Self::I32 => "_i32",
            Self::I64 => "_i64",
            Self::Bf16 => "_bf16",
            Self::F16 => "_f16",
            Self::F32 => "_f32",
            Self::F64 => "_f64",
            Self::F8 => "_f8_e4m3",
            Self::Fp8 => "_fp8_e4m3",
            Self::Untyped => "",
        }
    }

    /// The name of candle's type. A kernel for bytes is used for more than one type.
    pub(crate) fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::U8 | Self::F8 | Self::Fp8 | Self::Untyped => return None,
            Self::U32 => "u32",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::Bf16 => "bf16",
            Self::F16 => "f16",
            Self::F32 => "f32",
            Self::F64 => "f64",
        })
    }

    pub(crate) fn width(self) -> u64 {
        match self {
            Self::U8 | Self::F8 | Self::Fp8 | Self::Untyped => 1,
            Self::I16 | Self::Bf16 | Self::F16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::I64 | Self::F64 => 8,
        }
    }
}
