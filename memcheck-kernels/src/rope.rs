//! Rotary embeddings: pairs of elements that are rotated by an angle of their position.
//!
//! Each operation rounds to the element type, as candle's kernels do. The CPU's code for f16 and
//! bf16 rounds in the same places.

use super::element::Element;
use super::work::ROTATION;
use super::{Known, Launch, Unknown, with_real};

/// `T* src, T* cos, T* sin, T* dst, u32 bh, u32 td, u32 stride_b`, with pairs of neighbours
pub(super) fn interleaved(launch: &mut Launch<'_>) -> Known {
    let [bh, td, batch] = sizes(launch);
    let table = td / 2;
    rotate(launch, Rotation { count: bh * td, table, batch, width: td }, |pair| RotatedPair {
        first: 2 * pair,
        second: 2 * pair + 1,
        angle: pair % table,
    })
}

/// `T* src, T* cos, T* sin, T* dst, u32 bh, u32 td, u32 d, u32 stride_b`, with pairs of the two
/// halves of a row of `d` elements
pub(super) fn halves(launch: &mut Launch<'_>) -> Known {
    let [bh, td, d, batch] = sizes(launch);
    let (table, half) = (td / 2, d / 2);
    rotate(launch, Rotation { count: bh * td, table, batch, width: d }, |pair| {
        let first = pair / half * d + pair % half;
        RotatedPair { first, second: first + half, angle: pair % table }
    })
}

/// `T* src, T* cos, T* sin, T* dst, u32 b, u32 t, u32 h, u32 d, u32 stride_b`, as `halves`, but
/// with the heads after the positions
pub(super) fn positions_first(launch: &mut Launch<'_>) -> Known {
    let [b, t, h, d, batch] = sizes(launch);
    let (table, half) = (t.saturating_mul(d) / 2, d / 2);
    let count = [t, h, d].iter().fold(b, |all, &dim| all.saturating_mul(dim));
    rotate(launch, Rotation { count, table, batch, width: d }, |pair| {
        let (row, at) = (pair / half, pair % half);
        let first = row * d + at;
        RotatedPair { first, second: first + half, angle: row / h % t * half + at }
    })
}

/// Returns the last arguments of the kernel.
fn sizes<const COUNT: usize>(launch: &Launch<'_>) -> [u64; COUNT] {
    std::array::from_fn(|at| u64::from(launch.value::<u32>(4 + at)))
}

#[derive(Clone, Copy)]
struct Rotation {
    count: u64,
    /// Angles of a batch element.
    table: u64,
    /// Elements after which the next angles start; 0 if all share the same angles.
    batch: u64,
    /// Elements in a row of pairs, which must be even.
    width: u64,
}

struct RotatedPair {
    first: u64,
    second: u64,
    angle: u64,
}

fn rotate(
    launch: &mut Launch<'_>,
    rotation: Rotation,
    place: impl Fn(u64) -> RotatedPair,
) -> Known {
    let Rotation { count, table, batch, width } = rotation;
    let [from, cos, sin, to] = [0, 1, 2, 3].map(|at| launch.long(at));
    with_real!(launch.kind, T => {
        launch.produce::<T>(to, count, count.saturating_mul(ROTATION.of(T::KIND)), |source| {
            if count == 0 {
                return Ok(Vec::new());
            }
            // Otherwise some elements are not in a pair.
            if width % 2 == 1 || table == 0 || width == 0 || table % (width / 2) != 0 {
                return Err(Unknown);
            }
            let all: Vec<T> = source.elements(from, count)?;
            let batches = if batch == 0 { 1 } else { count.div_ceil(batch) };
            let angles = table.saturating_mul(batches);
            let cos: Vec<T> = source.elements(cos, angles)?;
            let sin: Vec<T> = source.elements(sin, angles)?;
            let mut result = vec![T::default(); all.len()];
            for pair in 0..count / 2 {
                let RotatedPair { first, second, angle } = place(pair);
                let angle = (angle + (2 * pair).checked_div(batch).unwrap_or(0) * table) as usize;
                let (cos, sin) = (cos[angle], sin[angle]);
                let (first, second) = (first as usize, second as usize);
                let (x, y) = (all[first], all[second]);
                result[first] = x.times(cos).minus(y.times(sin));
                result[second] = x.times(sin).plus(y.times(cos));
            }
            Ok(result)
        })
    })
}

#[cfg(test)]
mod tests {
    use crate::element::Real;
    use crate::harness::{TestDevice, arguments};

    use half::{bf16, f16};

    /// Angles of which the first is a quarter turn and the others are none.
    fn tables<T: Real>(device: &mut TestDevice, angles: usize) -> (u64, u64) {
        let (zero, one) = (T::default(), T::from_f64(1.0));
        let (mut cos, mut sin) = (vec![one; angles], vec![zero; angles]);
        (cos[0], sin[0]) = (zero, one);
        (device.upload(&cos), device.upload(&sin))
    }

    fn eight<T: Real>() -> Vec<T> {
        (1..=8).map(|at| T::from_f64(f64::from(at))).collect()
    }

    fn of<T: Real>(values: [i32; 8]) -> Option<Vec<T>> {
        Some(values.map(|value| T::from_f64(f64::from(value))).to_vec())
    }

    fn check<T: Real>(suffix: &str) {
        let mut device = TestDevice::new();
        let (from, to) = (device.upload(&eight::<T>()), device.allocate(8 * T::WIDTH));
        // One head with two positions of four elements: four angles.
        let (cos, sin) = tables::<T>(&mut device, 4);
        let name = |root: &str| format!("{root}_{suffix}");
        device.launch(&name("rope_i"), &arguments![from, cos, sin, to, 1_u32, 8_u32, 0_u32]);
        assert_eq!(device.download(to, 8), of::<T>([-2, 1, 3, 4, 5, 6, 7, 8]));
        device.launch(&name("rope"), &arguments![from, cos, sin, to, 1_u32, 8_u32, 4_u32, 0_u32]);
        assert_eq!(device.download(to, 8), of::<T>([-3, 2, 1, 4, 5, 6, 7, 8]));
        // Two heads with one position: both have the quarter turn.
        device.launch(&name("rope"), &arguments![from, cos, sin, to, 2_u32, 4_u32, 4_u32, 0_u32]);
        assert_eq!(device.download(to, 8), of::<T>([-3, 2, 1, 4, -7, 6, 5, 8]));
        // One position with two heads, then two positions with one head.
        let all = arguments![from, cos, sin, to, 1_u32, 1_u32, 2_u32, 4_u32, 0_u32];
        device.launch(&name("rope_thd"), &all);
        assert_eq!(device.download(to, 8), of::<T>([-3, 2, 1, 4, -7, 6, 5, 8]));
        let all = arguments![from, cos, sin, to, 1_u32, 2_u32, 1_u32, 4_u32, 0_u32];
        device.launch(&name("rope_thd"), &all);
        assert_eq!(device.download(to, 8), of::<T>([-3, 2, 1, 4, 5, 6, 7, 8]));
    }

    #[test]
    fn pairs_are_rotated_by_the_angle_of_their_position() {
        check::<f32>("f32");
        check::<f64>("f64");
        check::<f16>("f16");
        check::<bf16>("bf16");
    }

    #[test]
    fn each_batch_element_can_have_its_own_angles() {
        let mut device = TestDevice::new();
        let (from, to) = (device.upload(&eight::<f32>()), device.allocate(32));
        // Two batch elements of four elements, each with two angles.
        let (cos, sin) = tables::<f32>(&mut device, 4);
        device.launch("rope_i_f32", &arguments![from, cos, sin, to, 2_u32, 4_u32, 4_u32]);
        assert_eq!(device.download(to, 8), of::<f32>([-2, 1, 3, 4, 5, 6, 7, 8]));
        device.launch("rope_i_f32", &arguments![from, cos, sin, to, 2_u32, 4_u32, 0_u32]);
        assert_eq!(device.download(to, 8), of::<f32>([-2, 1, 3, 4, -6, 5, 7, 8]));
        device.launch("rope_f32", &arguments![from, cos, sin, to, 2_u32, 4_u32, 4_u32, 4_u32]);
        assert_eq!(device.download(to, 8), of::<f32>([-3, 2, 1, 4, 5, 6, 7, 8]));
        let all = arguments![from, cos, sin, to, 2_u32, 1_u32, 1_u32, 4_u32, 4_u32];
        device.launch("rope_thd_f32", &all);
        assert_eq!(device.download(to, 8), of::<f32>([-3, 2, 1, 4, 5, 6, 7, 8]));
    }

    #[test]
    fn an_unknown_or_impossible_rotation_is_unknown() {
        let mut device = TestDevice::new();
        let (from, to) = (device.upload(&eight::<f32>()), device.upload(&[9_f32; 9]));
        let (cos, unknown) = (device.upload(&[1_f32; 4]), device.allocate(16));
        device.launch("rope_i_f32", &arguments![from, cos, unknown, to, 1_u32, 8_u32, 0_u32]);
        assert_eq!(device.download::<f32>(to, 1), None);
        assert_eq!(device.download(to + 32, 1), Some(vec![9_f32]));
        device.launch("rope_f32", &arguments![from, cos, cos, to, 1_u32, 3_u32, 3_u32, 0_u32]);
        assert_eq!(device.download::<f32>(to, 1), None);
        for (td, d) in [(4_u32, 0_u32), (6, 4), (4, 8)] {
            let to = device.upload(&[9_f32; 8]);
            device.launch("rope_f32", &arguments![from, cos, cos, to, 1_u32, td, d, 0_u32]);
            assert_eq!(device.download::<f32>(to, 1), None, "{td} {d}");
        }
        device.launch("rope_i_f32", &arguments![from, cos, cos, to, 0_u32, 0_u32, 0_u32]);
    }
}
