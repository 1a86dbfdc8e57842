//! The kernels of the simulated device, and the values of its memory.
//!
//! This is a part of memcheck, and any version can change it. Depend on `memcheck-runtime` instead.
//!
//! `memcheck-sim` is the device: it allocates, frees and launches. This crate computes what a
//! launch writes, as far as its inputs are known. Only `memcheck-sim` uses it.
//!
//! [`Values`] holds what is known of the device's memory. A kernel of candle has a row in a table,
//! which names its arguments and the function that computes it. The function reads its inputs,
//! checks that they are known, and writes its outputs. If an input is unknown, or if the launch
//! exceeds a limit ([`Limits`]), the outputs become unknown.
//!
//! Kernels are computed one after the other, at the call that launches them. This is correct
//! because all other work of the simulated device is complete then.

mod affine;
mod align;
mod arguments;
mod asserts;
mod attention;
mod binary;
mod cast;
mod compare;
mod conv;
mod convolution;
mod copy;
mod element;
mod epilogue;
mod f8;
mod fill;
#[cfg(test)]
mod harness;
mod host;
mod image;
mod indexing;
mod kinds;
mod launch;
mod layout;
mod memory;
mod moe;
mod multiply;
mod norms;
mod operand;
mod pool;
mod product;
pub mod quantized;
mod random;
mod reduce;
mod rope;
mod select;
mod sort;
mod sum;
mod table;
mod unary;
mod values;
mod work;

pub use align::Alignment;
pub use arguments::Arguments;
pub use arguments::Parameter;
pub use asserts::FailedAssert;
pub use attention::{Attention, Rows, Table};
pub use convolution::{Convolution, Convolve, Tensor};
pub use epilogue::{Activation, Bias, Epilogue};
pub use host::{HostLaunch, register_kernel, register_kernel_with, stated_parameters};
pub use image::{ANY_NAME, Image, KernelCode, RUN_TIME};
pub use kinds::Kind;
pub use launch::Shape;
pub(crate) use launch::{Known, Launch, Unknown};
pub use memory::Memory;
pub use moe::{Experts, Routing};
pub use operand::Operand;
pub use product::{Product, Scalars, absolute_sum};
pub use random::{Distribution, Generator};
pub use table::Kernel;
pub use values::{Limits, Part, Span, UnknownReads, Values};
pub(crate) use work::ELEMENT;

/// Computes a kernel. An error means that the kernel is not computed at all; the blocks that it can
/// write then become unknown.
pub(crate) type Run = fn(&mut Launch<'_>) -> Known;

/// Calls `$work` with `$T` as the element type of a floating-point kernel.
macro_rules! with_real {
    ($kind:expr, $T:ident => $work:expr) => {
        match $kind {
            $crate::Kind::F32 => {
                type $T = f32;
                $work
            }
            $crate::Kind::F64 => {
                type $T = f64;
                $work
            }
            $crate::Kind::F16 => {
                type $T = half::f16;
                $work
            }
            $crate::Kind::Bf16 => {
                type $T = half::bf16;
                $work
            }
            _ => Err($crate::Unknown),
        }
    };
}
use with_real;

/// Calls `$work` with `$T` as the element type of a kernel for numbers.
macro_rules! with_number {
    ($kind:expr, $T:ident => $work:expr) => {
        match $kind {
            $crate::Kind::U8 => { type $T = u8; $work }
            $crate::Kind::U32 => { type $T = u32; $work }
            $crate::Kind::I16 => { type $T = i16; $work }
            $crate::Kind::I32 => { type $T = i32; $work }
            $crate::Kind::I64 => { type $T = i64; $work }
            kind => $crate::with_real!(kind, $T => $work),
        }
    };
}
use with_number;

/// As `with_number`, and for the type of 8 bits, which has two names.
macro_rules! with_element {
    ($kind:expr, $T:ident => $work:expr) => {
        match $kind {
            $crate::Kind::F8 | $crate::Kind::Fp8 => {
                type $T = $crate::f8::F8;
                $work
            }
            kind => $crate::with_number!(kind, $T => $work),
        }
    };
}
use with_element;

/// Calls `$work` with `$T` as an element type of the right width, for a kernel that does not
/// compute with elements. f8 is a `u8` here.
macro_rules! with_any {
    ($kind:expr, $T:ident => $work:expr) => {
        match $kind {
            $crate::Kind::F8 => { type $T = u8; $work }
            kind => $crate::with_number!(kind, $T => $work),
        }
    };
}
use with_any;

impl table::Kernel {
    /// Computes a launch.
    pub fn launch(self, memory: &mut dyn Memory, shape: Shape, arguments: Arguments) {
        let mut launch = Launch { memory, root: self.row.root, kind: self.kind, shape, arguments };
        if (self.row.run)(&mut launch) == Err(Unknown) {
            for (number, _) in self.row.arguments.match_indices('w') {
                memory.overwritten_from(arguments.long(number));
            }
        }
    }
}

/// Computes a kernel or a launcher with the host function that the program has registered for its
/// name. Returns false if there is none, or if it cannot compute the launch. `parameters` are the
/// bytes of the arguments.
pub fn launch_registered(
    memory: &mut dyn Memory,
    name: &str,
    shape: Shape,
    parameters: &[Vec<u8>],
) -> bool {
    host::launch(name, memory, shape, parameters)
}

/// The most bytes of a block in which addresses are searched: 8,192 of them.
const ADDRESSES: u64 = 64 << 10;

/// Makes unknown whatever a launch can write: the blocks that its arguments point to, and those
/// that addresses in these blocks point to, if they are known. `arguments` are the bytes of a value
/// for each of `parameters`.
pub fn forget_arguments(memory: &mut dyn Memory, parameters: &[Parameter], arguments: &[Vec<u8>]) {
    let blocks = |is_to_const| {
        let pairs = arguments.iter().zip(parameters);
        let pairs = pairs.filter(|(_, parameter)| parameter.is_to_const == is_to_const);
        blocks_of(memory, pairs.map(|(argument, _)| argument.as_slice()))
    };
    let (read, mut written) = (blocks(true), blocks(false));
    // An array in constant memory can have the addresses of blocks that are written.
    let arrays = read.iter().chain(&written).filter(|span| span.length <= ADDRESSES);
    let texts: Vec<Vec<u8>> =
        arrays.filter_map(|&span| memory.values().bytes(span).map(|it| it.into_owned())).collect();
    written.extend(blocks_of(memory, texts.iter().map(Vec::as_slice)));
    for span in written {
        memory.values_mut().forget_block(span.block);
    }
}

/// Returns the ranges from each address in the bytes to the end of its block.
fn blocks_of<'a>(memory: &dyn Memory, bytes: impl Iterator<Item = &'a [u8]>) -> Vec<Span> {
    let words = bytes.flat_map(|bytes| bytes.chunks_exact(8));
    let addresses = words.map(|word| u64::from_ne_bytes(word.try_into().expect("8 bytes")));
    addresses.filter_map(|address| memory.span_to_end(address)).collect()
}

/// Makes everything unknown, because a kernel without a signature was launched.
pub fn launch_opaque(memory: &mut dyn Memory) {
    memory.values_mut().forget_all();
}

/// Reads the arguments of a kernel of which only the parameters are known.
///
/// # Safety
///
/// As for [`Arguments::read`].
pub unsafe fn read_arguments(
    pointers: *const *mut std::ffi::c_void,
    parameters: &[Parameter],
) -> Option<Vec<Vec<u8>>> {
    // SAFETY: the caller makes the same promise.
    unsafe { arguments::bytes(pointers, parameters) }
}

#[cfg(test)]
mod tests;
