//! The element types as Rust types, with the device's rules of rounding.
//!
//! Operations on f16 and bf16 are made in f32 and rounded once, which is exact for `+ - * /` and
//! the square root. A function of f32 is computed in f64 and rounded, which is faster than a
//! function of f32 without optimization. The result is the nearest f32 on every computer, unless the
//! f64 is within its own error of a tie. The functions of `libm` are the same on every computer.
//! Those of a device differ in the last bits.

use half::{bf16, f16};

use super::kinds::Kind;

/// A number from which every conversion starts. It is exact for every element.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Number {
    Integer(i64),
    Real(f64),
}

pub(crate) trait Element:
    Copy + PartialEq + PartialOrd + Default + std::fmt::Debug + 'static
{
    const WIDTH: usize;
    const KIND: Kind;

    /// Reads an element from exactly `WIDTH` bytes.
    fn load(bytes: &[u8]) -> Self;
    /// Writes an element to exactly `WIDTH` bytes.
    fn store_at(self, to: &mut [u8]);

    fn store(self, to: &mut Vec<u8>) {
        let start = to.len();
        to.resize(start + Self::WIDTH, 0);
        self.store_at(&mut to[start..]);
    }

    /// Converts with rounding to the nearest value. A real number that is out of range becomes the
    /// nearest integer; an integer that is out of range wraps.
    fn from_number(number: Number) -> Self;
    fn number(self) -> Number;

    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    /// Integers: truncated. A division by zero has all bits set, as on a device.
    fn over(self, other: Self) -> Self;
    /// f32 and f64 drop a NaN; f16 and bf16 keep it.
    fn larger(self, other: Self) -> Self;
    fn smaller(self, other: Self) -> Self;

    /// Returns `self * factor + summand`, with a rounding after each operation.
    fn times_plus(self, factor: Self, summand: Self) -> Self {
        self.times(factor).plus(summand)
    }

    fn is_zero(self) -> bool {
        self == Self::default()
    }
}

/// A floating-point type.
pub(crate) trait Real: Element {
    /// The type of sums: f32 for the types of 16 bits.
    type Wide: Real;

    fn from_f64(value: f64) -> Self;
    fn wide(self) -> Self::Wide;
    fn from_wide(value: Self::Wide) -> Self;

    fn exp(self) -> Self;
    fn ln(self) -> Self;
    fn sin(self) -> Self;
    fn cos(self) -> Self;
    fn tanh(self) -> Self;
    fn erf(self) -> Self;
    /// The distribution function of the standard normal distribution.
    fn normcdf(self) -> Self;
    fn sqrt(self) -> Self;
    fn powf(self, exponent: Self) -> Self;
    fn ceil(self) -> Self;
    fn floor(self) -> Self;
    /// Halves are rounded away from zero.
    fn round(self) -> Self;
    fn abs(self) -> Self;

    fn negative(self) -> Self;
    fn recip(self) -> Self {
        Self::from_f64(1.0).over(self)
    }
}

macro_rules! integer {
    ($($type:ident, $kind:ident;)*) => {$(
        impl Element for $type {
            const WIDTH: usize = size_of::<$type>();
            const KIND: Kind = Kind::$kind;

            fn load(bytes: &[u8]) -> Self {
                Self::from_ne_bytes(bytes.try_into().expect("an element has its own width"))
            }

            fn store_at(self, to: &mut [u8]) {
                to.copy_from_slice(&self.to_ne_bytes());
            }

            fn from_number(number: Number) -> Self {
                match number {
                    Number::Integer(value) => value as Self,
                    Number::Real(value) => value as Self,
                }
            }

            fn number(self) -> Number {
                Number::Integer(self as i64)
            }

            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }

            fn times(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }

            fn over(self, other: Self) -> Self {
                if other == 0 { !0 } else { self.wrapping_div(other) }
            }

            fn larger(self, other: Self) -> Self {
                self.max(other)
            }

            fn smaller(self, other: Self) -> Self {
                self.min(other)
            }
        }
    )*};
}

integer! { u8, U8; u32, U32; i16, I16; i32, I32; i64, I64; }

macro_rules! real {
    ($($type:ident, $kind:ident, $functions:ident;)*) => {$(
        impl Element for $type {
            const WIDTH: usize = size_of::<$type>();
            const KIND: Kind = Kind::$kind;

            fn load(bytes: &[u8]) -> Self {
                Self::from_ne_bytes(bytes.try_into().expect("an element has its own width"))
            }

            fn store_at(self, to: &mut [u8]) {
                to.copy_from_slice(&self.to_ne_bytes());
            }

            fn from_number(number: Number) -> Self {
                match number {
                    Number::Integer(value) => value as Self,
                    Number::Real(value) => value as Self,
                }
            }

            fn number(self) -> Number {
                Number::Real(f64::from(self))
            }

            fn plus(self, other: Self) -> Self {
                self + other
            }

            fn minus(self, other: Self) -> Self {
                self - other
            }

            fn times(self, other: Self) -> Self {
                self * other
            }

            fn over(self, other: Self) -> Self {
                self / other
            }

            fn larger(self, other: Self) -> Self {
                self.max(other)
            }

            fn smaller(self, other: Self) -> Self {
                self.min(other)
            }
        }

        impl Real for $type {
            type Wide = Self;

            fn from_f64(value: f64) -> Self {
                value as Self
            }

            fn wide(self) -> Self {
                self
            }

            fn from_wide(value: Self) -> Self {
                value
            }

            real!(@functions $functions);

            fn normcdf(self) -> Self {
                (0.5 * libm::erfc(-f64::from(self) * std::f64::consts::FRAC_1_SQRT_2)) as Self
            }

            fn sqrt(self) -> Self {
                self.sqrt()
            }

            fn ceil(self) -> Self {
                self.ceil()
            }

            fn floor(self) -> Self {
                self.floor()
            }

            fn round(self) -> Self {
                self.round()
            }

            fn abs(self) -> Self {
                self.abs()
            }

            fn negative(self) -> Self {
                -self
            }
        }
    )*};
    (@functions wide) => {
        real!(@wide exp ln sin cos tanh);

        fn erf(self) -> Self {
            libm::erff(self)
        }

        fn powf(self, exponent: Self) -> Self {
            f64::from(self).powf(exponent.into()) as Self
        }
    };
    (@functions libm) => {
        real!(@libm exp exp, ln log, sin sin, cos cos, tanh tanh, erf erf);

        fn powf(self, exponent: Self) -> Self {
            libm::pow(self, exponent)
        }
    };
    (@wide $($name:ident)*) => {$(
        fn $name(self) -> Self {
            f64::from(self).$name() as Self
        }
    )*};
    (@libm $($name:ident $function:ident),*) => {$(
        fn $name(self) -> Self {
            libm::$function(self)
        }
    )*};
}

real! { f32, F32, wide; f64, F64, libm; }

macro_rules! half {
    ($($type:ident, $kind:ident;)*) => {$(
        impl Element for $type {
            const WIDTH: usize = 2;
            const KIND: Kind = Kind::$kind;

            fn load(bytes: &[u8]) -> Self {
                Self::from_ne_bytes(bytes.try_into().expect("an element has its own width"))
            }

            fn store_at(self, to: &mut [u8]) {
                to.copy_from_slice(&self.to_ne_bytes());
            }

            fn from_number(number: Number) -> Self {
                match number {
                    Number::Integer(value) => Self::from_f64(value as f64),
                    Number::Real(value) => <Self as Real>::from_f64(value),
                }
            }

            fn number(self) -> Number {
                Number::Real(self.to_f64())
            }

            half!(@both plus +, minus -, times *, over /);

            fn larger(self, other: Self) -> Self {
                match () {
                    () if self.is_nan() || other.is_nan() => Self::NAN,
                    () => Self::from_f32(self.to_f32().max(other.to_f32())),
                }
            }

            fn smaller(self, other: Self) -> Self {
                match () {
                    () if self.is_nan() || other.is_nan() => Self::NAN,
                    () => Self::from_f32(self.to_f32().min(other.to_f32())),
                }
            }
        }

        impl Real for $type {
            type Wide = f32;

            fn from_f64(value: f64) -> Self {
                Self::from_f32(to_odd(value))
            }

            fn wide(self) -> f32 {
                self.to_f32()
            }

            fn from_wide(value: f32) -> Self {
                Self::from_f32(value)
            }

            half!(@functions exp ln sin cos tanh erf normcdf sqrt ceil floor round abs);

            fn powf(self, exponent: Self) -> Self {
                Self::from_f32(Real::powf(self.to_f32(), exponent.to_f32()))
            }

            fn negative(self) -> Self {
                -self
            }
        }
    )*};
    (@both $($name:ident $operator:tt),*) => {$(
        fn $name(self, other: Self) -> Self {
            Self::from_f32(self.to_f32() $operator other.to_f32())
        }
    )*};
    (@functions $($name:ident)*) => {$(
        fn $name(self) -> Self {
            Self::from_f32(Real::$name(self.to_f32()))
        }
    )*};
}

half! { f16, F16; bf16, Bf16; }

/// Converts to f32 with rounding to odd, so that a second rounding to 16 bits gives what a single
/// one gives.
fn to_odd(value: f64) -> f32 {
    let nearest = value as f32;
    if f64::from(nearest) == value || !nearest.is_finite() || nearest.to_bits() & 1 == 1 {
        return nearest;
    }
    // The value is between `nearest` and a neighbour, whose last bit is 1.
    let away = f64::from(nearest).abs() < value.abs();
    f32::from_bits(if away { nearest.to_bits() + 1 } else { nearest.to_bits() - 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    #[test]
    fn integers_wrap_and_reals_saturate() {
        assert_eq!(250_u8.plus(10), 4);
        assert_eq!(3_u8.minus(5), 254);
        assert_eq!(i64::MIN.over(-1), i64::MIN);
        assert_eq!((7_u32.over(2), (-7_i64).over(2), 7_u8.over(0)), (3, -3, 255));
        assert_eq!(u8::from_number(Number::Real(300.7)), 255);
        assert_eq!(u32::from_number(Number::Real(-1.5)), 0);
        assert_eq!(u8::from_number(Number::Integer(258)), 2);
    }

    #[test]
    fn a_maximum_drops_or_keeps_nan() {
        assert_eq!(Element::larger(f32::NAN, 1.0), 1.0);
        assert_eq!(Element::smaller(1.0, f64::NAN), 1.0);
        assert!(f16::NAN.larger(f16::ONE).is_nan());
        assert!(bf16::ONE.smaller(bf16::NAN).is_nan());
        assert_eq!(f16::ONE.larger(f16::NEG_ONE), f16::ONE);
    }

    #[test]
    fn a_conversion_to_16_bits_rounds_once() {
        // Just above the middle of two f16: rounding to f32 first would hit the middle.
        let above = 1.0 + 2_f64.powi(-11) + 2_f64.powi(-40);
        assert_eq!(<f16 as Real>::from_f64(above).to_f64(), 1.0 + 2_f64.powi(-10));
        assert_eq!(<f16 as Real>::from_f64(1.0 + 2_f64.powi(-11)).to_f64(), 1.0);
        assert_eq!(<f16 as Real>::from_f64(70000.0), f16::INFINITY);
        assert_eq!(<bf16 as Real>::from_f64(1e300), bf16::INFINITY);
        assert!(<f16 as Real>::from_f64(f64::NAN).is_nan());
        assert_eq!(f16::from_number(Number::Integer(2049)).to_f32(), 2048.0);
    }

    #[test]
    fn functions_have_their_textbook_values() {
        let near = |a: f64, b: f64| (a - b).abs() < 1e-6;
        assert!(near(Real::normcdf(1.0_f32).into(), 0.841_344_746));
        assert!(near(Real::erf(0.5_f64), 0.520_499_877_8));
        assert_eq!((<f32 as Real>::round(2.5), <f64 as Real>::round(-0.5)), (3.0, -1.0));
        assert_eq!(<f16 as Real>::sqrt(f16::from_f32(2.0)), f16::from_f32(2_f32.sqrt()));
        assert_eq!(Real::recip(4.0_f32), 0.25);
    }

    proptest! {
        #[test]
        fn rounding_once_gives_the_nearest_of_16_bits(value in -70000.0..70000.0_f64) {
            let rounded = <f16 as Real>::from_f64(value).to_f64();
            let bits = <f16 as Real>::from_f64(value).to_bits();
            for neighbour in [bits.wrapping_sub(1), bits + 1].map(f16::from_bits) {
                if neighbour.is_finite() && rounded.is_finite() {
                    prop_assert!((rounded - value).abs() <= (neighbour.to_f64() - value).abs());
                }
            }
        }
    }
}
