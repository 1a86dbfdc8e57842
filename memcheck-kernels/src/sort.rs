//! The positions of a row's elements in sorted order.

use super::element::Element;
use super::work::COMPARISON;
use super::{Known, Launch, Unknown, with_number};

/// `T* x, u32* dst, i32 ncols, i32 ncols_pad`, a block for each row
///
/// This is candle's bitonic network, so that equal elements and NaN come out in the device's order.
/// The CPU's sort is stable and this one is not.
pub(super) fn positions(launch: &mut Launch<'_>, is_ascending: bool) -> Known {
    let (from, to) = (launch.long(0), launch.long(1));
    let [columns, padded] = [2, 3].map(|at| u64::try_from(launch.value::<i32>(at)).unwrap_or(0));
    let rows = u64::from(launch.shape.grid[0]);
    let count = rows.saturating_mul(columns);
    let stages = u64::from(padded.max(1).ilog2());
    let compared = rows.saturating_mul(padded).saturating_mul(stages * (stages + 1) / 2);
    with_number!(launch.kind, T => {
        launch.produce::<u32>(to, count, compared.saturating_mul(COMPARISON), |source| {
            if padded < columns || !padded.is_power_of_two() {
                return Err(Unknown);
            }
            let all: Vec<T> = source.elements(from, count)?;
            let rows = all.chunks_exact(columns.max(1) as usize);
            Ok(rows.flat_map(|row| sorted(row, padded as usize, is_ascending)).collect())
        })
    })
}

fn sorted<T: Element>(row: &[T], padded: usize, is_ascending: bool) -> Vec<u32> {
    let mut order: Vec<u32> = (0..padded as u32).collect();
    // Padding is after each element, in both directions.
    let is_after = |a: u32, b: u32| match (row.get(a as usize), row.get(b as usize)) {
        (None, _) => true,
        (_, None) => false,
        (Some(a), Some(b)) if is_ascending => a > b,
        (Some(a), Some(b)) => a < b,
    };
    let mut size = 2;
    while size <= padded {
        let mut distance = size / 2;
        while distance > 0 {
            for at in 0..padded {
                let other = at ^ distance;
                if other <= at || other >= padded {
                    continue;
                }
                let (first, second) = if at & size == 0 { (at, other) } else { (other, at) };
                if is_after(order[first], order[second]) {
                    order.swap(at, other);
                }
            }
            distance /= 2;
        }
        size *= 2;
    }
    order.truncate(row.len());
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{TestDevice, arguments};

    use half::{bf16, f16};
    use proptest::prelude::*;

    fn sort<T: Element>(name: &str, columns: usize, elements: &[T]) -> Option<Vec<u32>> {
        let mut device = TestDevice::new();
        let (from, to) = (device.upload(elements), device.allocate(elements.len() * 4));
        let padded = columns.next_power_of_two();
        device.launch_blocks(
            name,
            (elements.len() / columns) as u32,
            padded.min(1024) as u32,
            &arguments![from, to, columns as i32, padded as i32],
        );
        device.download(to, elements.len())
    }

    #[test]
    fn every_type_is_sorted_in_both_directions() {
        let rows = [3.0, 1.0, 2.0, -5.0, 9.0, 0.0];
        let ascending = Some(vec![1, 2, 0, 0, 2, 1]);
        let descending = Some(vec![0, 2, 1, 1, 2, 0]);
        assert_eq!(sort("asort_asc_f32", 3, &rows.map(|x| x as f32)), ascending);
        assert_eq!(sort("asort_desc_f32", 3, &rows.map(|x| x as f32)), descending);
        assert_eq!(sort("asort_asc_f64", 3, &rows), ascending);
        assert_eq!(sort("asort_desc_f16", 3, &rows.map(f16::from_f64)), descending);
        assert_eq!(sort("asort_asc_bf16", 3, &rows.map(bf16::from_f64)), ascending);
        assert_eq!(sort("asort_asc_i64", 3, &rows.map(|x| x as i64)), ascending);
        assert_eq!(sort("asort_desc_u8", 3, &[3_u8, 255, 0]), Some(vec![1, 0, 2]));
        assert_eq!(sort("asort_asc_u32", 3, &[3_u32, u32::MAX, 0]), Some(vec![2, 0, 1]));
        assert_eq!(sort("asort_asc_u32", 1, &[3_u32, 2]), Some(vec![0, 0]));
    }

    /// Worked out by hand: of four equal elements, the network exchanges none that are in order.
    /// Of [1, 0, 0, 0] it exchanges 0 with 1, then 1 with 3.
    #[test]
    fn equal_elements_come_out_in_the_order_of_the_network() {
        assert_eq!(sort("asort_asc_u8", 4, &[5_u8; 4]), Some(vec![0, 1, 2, 3]));
        assert_eq!(sort("asort_asc_u8", 4, &[1_u8, 0, 0, 0]), Some(vec![1, 3, 2, 0]));
        // The padding of three elements moves them: 2 and the padding are exchanged and back.
        assert_eq!(sort("asort_asc_u8", 3, &[5_u8; 3]), Some(vec![0, 1, 2]));
    }

    #[test]
    fn a_row_with_an_unknown_element_is_unknown() {
        let mut device = TestDevice::new();
        let (from, to) = (device.allocate(16), device.upload(&[7_u32; 5]));
        device.launch("fill_f32", &arguments![from, 1_f32, 3_usize]);
        device.launch_blocks("asort_asc_f32", 1, 4, &arguments![from, to, 4_i32, 4_i32]);
        assert_eq!(device.download::<u32>(to, 1), None);
        assert_eq!(device.download(to + 16, 1), Some(vec![7_u32]));
    }

    proptest! {
        #[test]
        fn the_result_is_a_permutation_in_order(row in prop::collection::vec(0..9_i64, 1..70)) {
            let order = sort("asort_desc_i64", row.len(), &row).unwrap();
            let mut all = order.clone();
            all.sort_unstable();
            prop_assert_eq!(all, (0..row.len() as u32).collect::<Vec<_>>());
            prop_assert!(order.is_sorted_by_key(|&at| -row[at as usize]));
        }
    }
}
