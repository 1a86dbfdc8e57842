//! The element types of kernels, under the names that kernels have for them.

/// An element type of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Unsigned integers of 8 bits.
    U8,
    /// Unsigned integers of 32 bits.
    U32,
    /// Signed integers of 16 bits.
    I16,
    /// Signed integers of 32 bits.
    I32,
    /// Signed integers of 64 bits.
    I64,
    /// bfloat16: 8 bits of exponent.
    Bf16,
    /// Half precision: 5 bits of exponent.
    F16,
    /// Single precision.
    F32,
    /// Double precision.
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
    pub fn name(self) -> Option<&'static str> {
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

    /// Returns the bytes of an element.
    pub fn width(self) -> u64 {
        match self {
            Self::U8 | Self::F8 | Self::Fp8 | Self::Untyped => 1,
            Self::I16 | Self::Bf16 | Self::F16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::I64 | Self::F64 => 8,
        }
    }
}
