//! Reductions of the values of all ranks, in the order of the ranks.
//!
//! Sums of 16-bit types are made in f32 and rounded once. NCCL's order depends on its algorithm, so
//! its last bits can differ.

use half::{bf16, f16};

/// Returns the bytes of an element of an `ncclDataType_t`.
pub(super) fn width(kind: u64) -> Option<u64> {
    Some(match kind {
        0 | 1 | 10 | 11 => 1,
        2 | 3 | 7 => 4,
        4 | 5 | 8 => 8,
        6 | 9 => 2,
        _ => return None,
    })
}

/// Reduces contributions of equal length by an `ncclRedOp_t`; `None` if it is not simulated.
pub(super) fn reduce(kind: u64, operation: u64, parts: &[Vec<u8>]) -> Option<Vec<u8>> {
    macro_rules! integers {
        ($type:ty) => {
            fold::<$type, { size_of::<$type>() }>(
                parts,
                <$type>::from_ne_bytes,
                match operation {
                    0 | 4 => <$type>::wrapping_add,
                    1 => <$type>::wrapping_mul,
                    2 => |a, b| a.max(b),
                    3 => |a, b| a.min(b),
                    _ => return None,
                },
                |sum, count| match operation {
                    4 => sum.wrapping_div(count as $type).to_ne_bytes(),
                    _ => sum.to_ne_bytes(),
                },
            )
        };
    }
    macro_rules! reals {
        ($type:ty, $wide:ty, $widen:expr, $narrow:expr) => {
            fold::<$wide, { size_of::<$type>() }>(
                parts,
                |bytes| $widen(<$type>::from_ne_bytes(bytes)),
                match operation {
                    0 | 4 => |a, b| a + b,
                    1 => |a, b| a * b,
                    2 => <$wide>::max,
                    3 => <$wide>::min,
                    _ => return None,
                },
                |sum, count| match operation {
                    4 => $narrow(sum / count as $wide).to_ne_bytes(),
                    _ => $narrow(sum).to_ne_bytes(),
                },
            )
        };
    }
    Some(match kind {
        0 => integers!(i8),
        1 => integers!(u8),
        2 => integers!(i32),
        3 => integers!(u32),
        4 => integers!(i64),
        5 => integers!(u64),
        6 => reals!(f16, f32, f32::from, f16::from_f32),
        7 => reals!(f32, f32, |x| x, |x: f32| x),
        8 => reals!(f64, f64, |x| x, |x: f64| x),
        9 => reals!(bf16, f32, f32::from, bf16::from_f32),
        _ => return None,
    })
}

fn fold<T: Copy, const WIDTH: usize>(
    parts: &[Vec<u8>],
    load: impl Fn([u8; WIDTH]) -> T,
    combine: fn(T, T) -> T,
    store: impl Fn(T, usize) -> [u8; WIDTH],
) -> Vec<u8> {
    let at = |part: &[u8], index: usize| {
        let mut bytes = [0; WIDTH];
        bytes.copy_from_slice(&part[index * WIDTH..][..WIDTH]);
        load(bytes)
    };
    let count = parts.first().map_or(0, |part| part.len() / WIDTH);
    let element = |index: usize| {
        let mut values = parts.iter().map(|part| at(part, index));
        let first = values.next().expect("a reduction has a rank");
        store(values.fold(first, combine), parts.len())
    };
    (0..count).flat_map(element).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_combines_the_elements_of_all_ranks() {
        let parts = [[1.0_f32, 8.0], [3.0, -2.0]];
        let parts = parts.map(|part| part.iter().flat_map(|x| x.to_ne_bytes()).collect::<Vec<_>>());
        let results = [0, 1, 2, 3, 4].map(|operation| {
            let bytes = reduce(7, operation, &parts).unwrap();
            [0, 4].map(|at| f32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap()))
        });
        let expected = [[4.0, 6.0], [3.0, -16.0], [3.0, 8.0], [1.0, -2.0], [2.0, 3.0]];
        assert_eq!(results, expected);
        assert_eq!(reduce(7, 5, &parts), None);
        assert_eq!(reduce(10, 0, &parts), None);
    }

    #[test]
    fn integers_wrap_and_halves_are_rounded_once() {
        assert_eq!(reduce(0, 0, &[vec![100], vec![100]]), Some(vec![200]));
        assert_eq!(reduce(1, 4, &[vec![7], vec![2]]), Some(vec![4]));
        // 2048 + 1 + 1 would stay 2048 if each sum were rounded.
        let halves = [2048.0, 1.0, 1.0].map(|x| f16::from_f32(x).to_ne_bytes().to_vec());
        assert_eq!(reduce(6, 0, &halves), Some(f16::from_f32(2050.0).to_ne_bytes().to_vec()));
        assert_eq!([width(9), width(8), width(12)], [Some(2), Some(8), None]);
    }
}
