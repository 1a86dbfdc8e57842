//! Numbers for types of tensors: the shape with the element type.

use candle_core::DType;
use memcheck_core::measurement::attribution::Tensor;
use memcheck_ledger::intern::{Interner, mix};

use super::layout;

/// Limited by the bits for a shape in a block's origin.
static TYPES: Interner = Interner::new((1 << 16) - 1, 1 << 20);

/// Maps the table, if that has not been done.
pub(super) fn map() -> std::io::Result<()> {
    TYPES.map()
}

/// The number of a type of tensor; 0 if the table is full.
pub(super) fn type_number(dims: &[usize], dtype: DType) -> u16 {
    let words = || dims.iter().map(|&dim| dim as u64);
    let hash = words().fold(mix(1, dtype as u64), mix);
    // The element type first, then the dimensions.
    // On the stack, because this runs inside an allocation.
    let mut all = [0u64; 9];
    let Some(room) = all.get_mut(1..=dims.len()) else { return 0 };
    for (to, dim) in room.iter_mut().zip(words()) {
        *to = dim;
    }
    all[0] = dtype as u64;
    let number = TYPES.number(hash, all[..=dims.len()].iter().copied());
    u16::try_from(number).unwrap_or(0)
}

/// True if all types so far have a number.
pub(super) fn is_complete() -> bool {
    TYPES.is_complete()
}

/// The type of tensor with this number.
pub(crate) fn tensor_type(number: u16) -> Option<Tensor> {
    let words = TYPES.words(number.into())?;
    let (dtype, shape) = words.split_first()?;
    let dtype = layout::DTYPES.iter().find(|known| **known as u64 == *dtype)?;
    Some(Tensor { shape: shape.to_vec(), dtype: dtype.as_str().to_owned() })
}
