//! The choice between two elements.

use super::element::Element;
use super::{ELEMENT, Kind, Known, Launch, Unknown, with_element};

/// `usize n, usize num_dims, info* (dims, strides of ids, of t and of f), I* ids, T* t, T* f, T*
/// out`
///
/// The element of `t` if the id is not zero, otherwise that of `f`. Both must be known.
pub(super) fn run(launch: &mut Launch<'_>, ids: Kind) -> Known {
    with_element!(launch.kind, T => match ids {
        Kind::U8 => select::<u8, T>(launch),
        Kind::U32 => select::<u32, T>(launch),
        Kind::I16 => select::<i16, T>(launch),
        Kind::I32 => select::<i32, T>(launch),
        Kind::I64 => select::<i64, T>(launch),
        _ => Err(Unknown),
    })
}

fn select<I: Element, T: Element>(launch: &mut Launch<'_>) -> Known {
    let (count, rank, info) = (launch.long(0), launch.long(1), launch.long(2));
    let [ids, yes, no, output] = [3, 4, 5, 6].map(|number| launch.long(number));
    launch.produce::<T>(output, count, count.saturating_mul(ELEMENT), |source| {
        let [of_ids, of_yes, of_no] = source.layouts(count, rank, info)?;
        let ids: Vec<I> = source.strided(ids, &of_ids)?;
        let (yes, no) = (source.strided(yes, &of_yes)?, source.strided(no, &of_no)?);
        let pairs = yes.into_iter().zip(no);
        Ok(ids
            .iter()
            .zip(pairs)
            .map(|(id, (yes, no))| if id.is_zero() { no } else { yes })
            .collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::harness::{TestDevice, arguments};

    fn choose<I: Element>(suffix: &str, ids: &[I]) -> Option<Vec<f32>> {
        let mut device = TestDevice::new();
        let (yes, no) = (device.upload(&[5_f32]), device.upload(&[1_f32, 2.0, 3.0]));
        let (ids, to) = (device.upload(ids), device.allocate(12));
        let info = device.upload(&[3_i64, 1, 0, 1]);
        let name = format!("where_{suffix}_f32");
        device.launch(&name, &arguments![3_usize, 1_usize, info, ids, yes, no, to]);
        device.download(to, 3)
    }

    #[test]
    fn an_id_that_is_not_zero_selects_the_first() {
        let expected = Some(vec![5_f32, 2.0, 5.0]);
        assert_eq!(choose("u8", &[1_u8, 0, 255]), expected);
        assert_eq!(choose("u32", &[1_u32, 0, 7]), expected);
        assert_eq!(choose("i64", &[-1_i64, 0, 1]), expected);
    }
}
