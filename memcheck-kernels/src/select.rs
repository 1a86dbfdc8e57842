//! The choice between two elements.

use super::element::Element;
use super::launch::Source;
use super::layout::Layout;
use super::{ELEMENT, Kind, Known, Launch, Unknown, with_element};

/// `usize n, usize num_dims, info* (dims, strides of ids, of t and of f), I* ids, T* t, T* f, T*
/// out`
///
/// The element of `t` if the id is not zero, otherwise that of `f`. Both must be known.
pub(super) fn run(launch: &mut Launch<'_>, ids: Kind) -> Known {
    let (count, rank, info) = (launch.long(0), launch.long(1), launch.long(2));
    let [at, yes, no, output] = [3, 4, 5, 6].map(|number| launch.long(number));
    let operations = count.saturating_mul(ELEMENT);
    let inputs = launch.read(operations, |source| {
        let [of_ids, of_yes, of_no] = source.layouts(count, rank, info)?;
        let are_zero = match ids {
            Kind::U8 => are_zero::<u8>(source, at, &of_ids),
            Kind::U32 => are_zero::<u32>(source, at, &of_ids),
            Kind::I16 => are_zero::<i16>(source, at, &of_ids),
            Kind::I32 => are_zero::<i32>(source, at, &of_ids),
            Kind::I64 => are_zero::<i64>(source, at, &of_ids),
            _ => Err(Unknown),
        };
        Ok((are_zero?, of_yes, of_no))
    });
    with_element!(launch.kind, T => launch.produce::<T>(output, count, operations, |source| {
        let (are_zero, of_yes, of_no) = inputs?;
        let (yes, no) = (source.strided(yes, &of_yes)?, source.strided(no, &of_no)?);
        let pairs = yes.into_iter().zip(no);
        Ok(pairs.zip(are_zero).map(|((yes, no), is_zero)| if is_zero { no } else { yes }).collect())
    }))
}

fn are_zero<I: Element>(source: &Source<'_>, ids: u64, layout: &Layout) -> Known<Vec<bool>> {
    Ok(source.strided::<I>(ids, layout)?.into_iter().map(I::is_zero).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{TestDevice, arguments};

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
