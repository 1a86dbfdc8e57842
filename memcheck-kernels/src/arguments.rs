//! The arguments of a launch, as the caller passes them: an array of pointers to values, without a
//! count and without sizes. The signature of the kernel is the only source of both.

use std::ffi::c_void;

use super::element::Element;

/// A parameter of a kernel or a launcher that is not in the table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// The bytes of a value.
    pub size: u64,
    /// True for a pointer to const: what it points to cannot be written through it.
    pub is_to_const: bool,
}

impl Parameter {
    /// A parameter that can be any pointer.
    pub fn of_size(size: u64) -> Self {
        Self { size, is_to_const: false }
    }
}

impl std::fmt::Debug for Parameter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}{}", self.size, if self.is_to_const { "c" } else { "" })
    }
}

/// More arguments than any kernel in the table has.
const MOST: usize = 16;

/// The values of a launch's arguments, by number.
#[derive(Debug, Clone, Copy)]
pub struct Arguments {
    /// Each value in its first bytes; the others are zero.
    values: [[u8; 8]; MOST],
}

impl Arguments {
    /// Reads the arguments. Returns `None` if one of them has no address.
    ///
    /// # Safety
    ///
    /// `pointers` must be null, or point to one pointer for each width. Each of these must be null
    /// or readable for the bytes of its width. A width must be at most 8.
    pub unsafe fn read(
        pointers: *const *mut c_void,
        widths: impl Iterator<Item = u64>,
    ) -> Option<Self> {
        if pointers.is_null() {
            return None;
        }
        let mut values = [[0; 8]; MOST];
        for (number, width) in widths.enumerate() {
            // SAFETY: the array has a pointer for each width, as the caller promises.
            let pointer = unsafe { *pointers.add(number) };
            if pointer.is_null() {
                return None;
            }
            // SAFETY: the pointer is readable for `width` bytes, as the caller promises.
            let bytes = unsafe { std::slice::from_raw_parts(pointer.cast(), width as usize) };
            values[number][..bytes.len()].copy_from_slice(bytes);
        }
        Some(Self { values })
    }

    /// Returns a pointer, a `size_t` or another integer of 64 bits.
    pub(crate) fn long(&self, number: usize) -> u64 {
        u64::from_ne_bytes(self.values[number])
    }

    /// Returns a value of the type `T`.
    pub(crate) fn element<T: Element>(&self, number: usize) -> T {
        T::load(&self.values[number][..T::WIDTH])
    }

    #[cfg(test)]
    pub(crate) fn of(values: &[[u8; 8]]) -> Self {
        let mut all = [[0; 8]; MOST];
        all[..values.len()].copy_from_slice(values);
        Self { values: all }
    }
}

/// Reads values of any size.
///
/// # Safety
///
/// As for [`Arguments::read`], but a width has no maximum.
pub(super) unsafe fn bytes(
    pointers: *const *mut c_void,
    parameters: &[Parameter],
) -> Option<Vec<Vec<u8>>> {
    let read = |(number, parameter): (usize, &Parameter)| {
        // SAFETY: the array has a pointer for each width, as the caller promises.
        let pointer = unsafe { *pointers.add(number) };
        // SAFETY: a pointer that is not null is readable for the bytes of its parameter, as the
        // caller promises.
        (!pointer.is_null()).then(|| unsafe {
            std::slice::from_raw_parts(pointer.cast::<u8>(), parameter.size as usize).to_vec()
        })
    };
    if pointers.is_null() && !parameters.is_empty() {
        return None;
    }
    parameters.iter().enumerate().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_has_its_own_width() {
        let (mut a, mut b, mut c) = (0x1122_3344_5566_7788_u64, -2_i32, 1.5_f32);
        let pointers = [(&raw mut a).cast(), (&raw mut b).cast(), (&raw mut c).cast()];
        // SAFETY: the array has three pointers to values of these widths.
        let read = unsafe { Arguments::read(pointers.as_ptr(), [8, 4, 4].into_iter()) }.unwrap();
        assert_eq!(read.long(0), a);
        assert_eq!(read.element::<i32>(1), -2);
        assert_eq!(read.element::<f32>(2), 1.5);
        // SAFETY: a null array is allowed, and so is a null pointer in it.
        unsafe {
            assert!(Arguments::read(std::ptr::null(), [8].into_iter()).is_none());
            let none = [std::ptr::null_mut()];
            assert!(Arguments::read(none.as_ptr(), [8].into_iter()).is_none());
        }
    }
}
