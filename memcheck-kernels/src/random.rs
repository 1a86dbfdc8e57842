//! Random numbers of cuRAND's generators.
//!
//! A generator is a seed and a position. The number at a position depends on nothing else, so a
//! program gets the same numbers in every run. The streams are not those of NVIDIA's generators.

use super::element::{Element, Number};
use super::kinds::Kind;
use super::memory::Memory;
use super::{Known, Unknown, launch, work};

/// The state of a generator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Generator {
    /// Two generators with the same seed give the same numbers.
    pub seed: u64,
    /// The position of the next number. A number of any type takes one position.
    pub position: u64,
}

/// The numbers that a generator writes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Distribution {
    /// All bits are random.
    Bits,
    /// Between 0 and 1. 0 is excluded, and 1 is included.
    Uniform,
    /// A normal distribution.
    Normal {
        /// The mean of the normal distribution.
        mean: f64,
        /// Its standard deviation.
        deviation: f64,
    },
    /// The exponential of a normal distribution.
    LogNormal {
        /// The mean of the normal distribution.
        mean: f64,
        /// Its standard deviation.
        deviation: f64,
    },
    /// Not computed.
    Poisson,
}

impl Generator {
    /// Writes `count` numbers at `to`, and moves on by as many positions even if the limits do not
    /// permit it, so that the numbers after them stay the same. The numbers have one of the types
    /// of cuRAND's functions: u32, i64, f32 or f64.
    pub fn generate(
        &mut self,
        memory: &mut dyn Memory,
        (kind, to): (Kind, u64),
        count: u64,
        distribution: Distribution,
    ) {
        match kind {
            Kind::U32 => self.write::<u32>(memory, to, count, distribution),
            Kind::I64 => self.write::<i64>(memory, to, count, distribution),
            Kind::F32 => self.write::<f32>(memory, to, count, distribution),
            Kind::F64 => self.write::<f64>(memory, to, count, distribution),
            _ => memory.overwritten_elements(to, count, kind),
        }
    }

    fn write<T: Element>(
        &mut self,
        memory: &mut dyn Memory,
        to: u64,
        count: u64,
        distribution: Distribution,
    ) {
        let start = self.position;
        self.position = start.wrapping_add(count);
        let operations = count.saturating_mul(distribution.work());
        let is_permitted = memory.values().permits_numbers(count, operations);
        let result = match is_permitted && launch::has_room::<T>(memory, to, count) {
            true => {
                numbers::<T>(distribution, count, |at| mixed(self.seed, start.wrapping_add(at)))
            }
            false => Err(Unknown),
        };
        launch::finish::<T>(memory, to, count, operations, result);
    }
}

impl Distribution {
    /// The operations for one number.
    fn work(self) -> u64 {
        match self {
            Self::Bits | Self::Uniform | Self::Poisson => work::UNIFORM,
            Self::Normal { .. } | Self::LogNormal { .. } => work::NORMAL,
        }
    }
}

/// Returns the numbers of a launch; `bits` are the random bits of each position.
fn numbers<T: Element>(
    distribution: Distribution,
    count: u64,
    bits: impl Fn(u64) -> u64,
) -> Known<Vec<T>> {
    let mut all = Vec::with_capacity(count as usize + 1);
    for at in (0..count).step_by(2) {
        all.extend(pair::<T>(distribution, [bits(at), bits(at + 1)])?);
    }
    all.truncate(count as usize);
    Ok(all)
}

/// Returns the numbers at two positions.
fn pair<T: Element>(distribution: Distribution, bits: [u64; 2]) -> Known<[T; 2]> {
    let normal = |mean: f64, deviation: f64| {
        // Box and Muller: two positions give two numbers.
        let [first, second] = bits.map(unit::<T>);
        let radius = (-2.0 * libm::log(first)).sqrt();
        let (sine, cosine) = libm::sincos(std::f64::consts::TAU * second);
        [cosine, sine].map(|side| mean + deviation * radius * side)
    };
    let values = match distribution {
        Distribution::Bits => {
            return Ok(bits.map(|bits| T::load(&bits.to_ne_bytes()[..T::WIDTH])));
        }
        Distribution::Uniform => bits.map(unit::<T>),
        Distribution::Normal { mean, deviation } => normal(mean, deviation),
        Distribution::LogNormal { mean, deviation } => normal(mean, deviation).map(libm::exp),
        Distribution::Poisson => return Err(Unknown),
    };
    Ok(values.map(|value| T::from_number(Number::Real(value))))
}

/// Returns a number above 0 and up to 1, with as many random bits as the type has.
fn unit<T: Element>(bits: u64) -> f64 {
    let digits = if T::WIDTH == 8 { 53 } else { 24 };
    ((bits >> (64 - digits)) + 1) as f64 / (1_u64 << digits) as f64
}

/// Returns random bits for a position: SplitMix64, whose state is the position.
fn mixed(seed: u64, position: u64) -> u64 {
    const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
    let finish = |mut bits: u64| {
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    };
    // The seed is mixed first, so that two seeds do not give the same stream, shifted.
    finish(finish(seed.wrapping_add(STEP)).wrapping_add(position.wrapping_mul(STEP)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::TestDevice;

    const COUNT: u64 = 20_000;

    fn numbers<T: Element>(generator: &mut Generator, distribution: Distribution) -> Vec<T> {
        let mut device = TestDevice::new();
        let to = device.allocate(COUNT as usize * T::WIDTH);
        generator.generate(&mut device.memory, (T::KIND, to), COUNT, distribution);
        device.download(to, COUNT as usize).expect("the numbers are known")
    }

    /// The mean, the standard deviation, and the correlation of neighbours.
    fn moments(numbers: impl Iterator<Item = f64>) -> [f64; 3] {
        let numbers: Vec<f64> = numbers.collect();
        let count = numbers.len() as f64;
        let mean = numbers.iter().sum::<f64>() / count;
        let variance = numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
        let pairs = numbers.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean));
        [mean, variance.sqrt(), pairs.sum::<f64>() / count / variance]
    }

    #[track_caller]
    fn assert_near(got: [f64; 3], expected: [f64; 3], tolerance: f64) {
        for (got, expected) in got.into_iter().zip(expected) {
            assert!((got - expected).abs() < tolerance, "{got} is not near {expected}");
        }
    }

    #[test]
    fn the_moments_are_those_of_the_distribution() {
        let mut generator = Generator { seed: 299_792_458, position: 0 };
        let uniform = numbers::<f32>(&mut generator, Distribution::Uniform);
        assert!(uniform.iter().all(|&x| x > 0.0 && x <= 1.0));
        let deviation = 12_f64.sqrt().recip();
        assert_near(moments(uniform.into_iter().map(f64::from)), [0.5, deviation, 0.0], 0.02);
        let uniform = numbers::<f64>(&mut generator, Distribution::Uniform);
        assert_near(moments(uniform.into_iter()), [0.5, deviation, 0.0], 0.02);
        let normal = Distribution::Normal { mean: 3.0, deviation: 2.0 };
        let of = numbers::<f32>(&mut generator, normal);
        assert_near(moments(of.into_iter().map(f64::from)), [3.0, 2.0, 0.0], 0.05);
        assert_near(
            moments(numbers::<f64>(&mut generator, normal).into_iter()),
            [3.0, 2.0, 0.0],
            0.05,
        );
        let normal = Distribution::LogNormal { mean: 0.0, deviation: 0.5 };
        let logarithms = numbers::<f64>(&mut generator, normal).into_iter().map(f64::ln);
        assert_near(moments(logarithms), [0.0, 0.5, 0.0], 0.02);
        let bits = numbers::<u32>(&mut generator, Distribution::Bits);
        let ones: u32 = bits.iter().map(|bits| bits.count_ones()).sum();
        assert!((f64::from(ones) / COUNT as f64 - 16.0).abs() < 0.1);
    }

    #[test]
    fn a_seed_repeats_its_stream_and_each_launch_moves_on() {
        let start = Generator { seed: 5, position: 0 };
        let (mut one, mut two) = (start, start);
        let first = numbers::<f32>(&mut one, Distribution::Uniform);
        assert_eq!(first, numbers::<f32>(&mut two, Distribution::Uniform));
        assert_ne!(first, numbers::<f32>(&mut one, Distribution::Uniform));
        let mut other = Generator { seed: 6, position: 0 };
        assert_ne!(first, numbers::<f32>(&mut other, Distribution::Uniform));
    }

    #[test]
    fn numbers_that_are_not_computed_are_unknown_and_still_move_on() {
        let mut device = TestDevice::new();
        let to = device.upload(&[0_u32; 2]);
        let mut generator = Generator::default();
        generator.generate(&mut device.memory, (Kind::U32, to), 2, Distribution::Poisson);
        assert!(!device.is_known(to));
        let huge = device.allocate(1 << 34);
        generator.generate(&mut device.memory, (Kind::F32, huge), 1 << 32, Distribution::Uniform);
        assert_eq!(generator.position, (1 << 32) + 2);
        assert!(!device.is_known(huge));
    }
}
