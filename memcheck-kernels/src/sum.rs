//! Sums over dims by atomic additions to the target. candle does not launch this kernel.

use super::element::Element;
use super::layout::Layout;
use super::{ELEMENT, Known, Launch, Unknown, with_number};

/// `usize n, usize num_dims, usize num_sum_dims, info*, T* in, T* out`
///
/// `info` has the dims and the strides of the input, then the lengths and the strides of the dims
/// that are summed. The order of a device's additions is not determined; here it is that of the
/// elements.
pub(super) fn run(launch: &mut Launch<'_>) -> Known {
    let [count, rank, summed, info, from, to] = std::array::from_fn(|number| launch.long(number));
    let words = launch.source().words(info, rank.saturating_add(summed).saturating_mul(2))?;
    let (layout, summed_dims) = words.split_at(2 * rank as usize);
    let (dims, strides) = layout.split_at(rank as usize);
    let (lengths, steps) = summed_dims.split_at(summed as usize);
    let layout = Layout::new(dims, strides);
    // The target has as many elements as the input, at most.
    let is_small = launch.permits(count.saturating_mul(ELEMENT));
    if layout.count() != count || steps.contains(&0) || lengths.contains(&0) || !is_small {
        return Err(Unknown);
    }
    let target = |index: u64| {
        lengths
            .iter()
            .zip(steps)
            .fold(index, |index, (length, step)| (index / step / length) * step + index % step)
    };
    let outputs = (0..count).map(target).max().map_or(0, |last| last + 1);
    with_number!(launch.kind, T => {
        launch.produce::<T>(to, outputs, count.saturating_mul(ELEMENT), |source| {
            let mut sums: Vec<T> = source.elements(to, outputs)?;
            let elements: Vec<T> = source.strided(from, &layout)?;
            for (index, element) in (0..count).zip(elements) {
                let sum = &mut sums[target(index) as usize];
                *sum = sum.plus(element);
            }
            Ok(sums)
        })
    })
}

#[cfg(test)]
mod tests {
    use crate::harness::{TestDevice, arguments};

    #[test]
    fn elements_are_added_to_the_target() {
        let mut device = TestDevice::new();
        let from = device.upload(&[1_f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let to = device.upload(&[100_f32, 0.0, 0.0]);
        // Over the first dim of (2, 3): length 2, stride 3.
        let info = device.upload(&[2_i64, 3, 3, 1, 2, 3]);
        device.launch("sum_f32", &arguments![6_usize, 2_usize, 1_usize, info, from, to]);
        assert_eq!(device.download(to, 3), Some(vec![105_f32, 7.0, 9.0]));
        // The same of the transposed matrix, over its second dim: length 2, stride 1.
        let info = device.upload(&[3_i64, 2, 1, 3, 2, 1]);
        let to = device.upload(&[0_f32; 3]);
        device.launch("sum_f32", &arguments![6_usize, 2_usize, 1_usize, info, from, to]);
        assert_eq!(device.download(to, 3), Some(vec![5_f32, 7.0, 9.0]));
        let unknown = device.allocate(12);
        device.launch("sum_f32", &arguments![6_usize, 2_usize, 1_usize, info, from, unknown]);
        assert_eq!(device.download::<f32>(unknown, 1), None);
    }
}
