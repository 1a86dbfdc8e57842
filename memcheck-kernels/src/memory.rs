//! The memory that kernels read and write. The machine of `memcheck-sim` implements it.

use super::kinds::Kind;
use crate::asserts::FailedAssert;
use crate::values::{Span, Values};

/// The memory of a simulated machine, by address.
pub trait Memory {
    /// Returns what is known of the memory.
    fn values(&self) -> &Values;
    /// Returns the same, to change it.
    fn values_mut(&mut self) -> &mut Values;

    /// Ends the use of the device, because an assert of a kernel has failed.
    fn fail_assert(&mut self, failed: FailedAssert);

    /// Returns the range of `length` bytes at `address` if one live block of a device contains it.
    fn span(&self, address: u64, length: u64) -> Option<Span>;

    /// Returns the range from `address` to the end of the block that contains it.
    fn span_to_end(&self, address: u64) -> Option<Span>;

    /// As [`Memory::span`], for an access of a kernel. Counts one that begins in a block and ends
    /// outside of it, which would be a defect of the kernel.
    fn accessed(&self, address: u64, length: u64) -> Option<Span> {
        let span = self.span(address, length);
        if span.is_none() && self.span_to_end(address).is_some() {
            self.values().count_outside();
        }
        span
    }

    /// Returns `length` bytes of pinned, managed or registered memory.
    fn host_bytes(&self, address: u64, length: u64) -> Option<Vec<u8>>;

    /// Returns the bytes of a kernel's input if all of them are known.
    fn known_bytes(&self, address: u64, length: u64) -> Option<Vec<u8>> {
        match self.span(address, length) {
            Some(span) => self.values().bytes(span).map(std::borrow::Cow::into_owned),
            None => self.host_bytes(address, length),
        }
    }

    /// Writes the result of a kernel. Memory that is not in a live block is ignored.
    fn write_bytes(&mut self, address: u64, bytes: &[u8]);

    /// Makes `length` bytes unknown, because a kernel or a library has written there. Memory that
    /// is not in a block of a device is ignored.
    fn overwritten(&mut self, address: u64, length: u64) {
        if let Some(span) = self.accessed(address, length) {
            self.values_mut().forget(span);
        }
    }

    /// Makes `count` elements of a type unknown, because a kernel has written them.
    fn overwritten_elements(&mut self, address: u64, count: u64, kind: Kind) {
        if let Some(span) = self.accessed(address, count.saturating_mul(kind.width())) {
            self.values_mut().forget_elements(span, kind.name());
        }
    }

    /// Makes the block from `address` to its end unknown, because a kernel has written there an
    /// unknown number of bytes.
    fn overwritten_from(&mut self, address: u64) {
        if let Some(span) = self.span_to_end(address) {
            self.values_mut().forget(span);
        }
    }

    /// Makes `length` bytes zeros. Returns whether a block of a device contains them.
    fn zero_bytes(&mut self, address: u64, length: u64) -> bool {
        let span = self.span(address, length);
        if let Some(span) = span {
            self.values_mut().zero(span);
        }
        span.is_some()
    }

    /// Copies the known bytes of a kernel's input to its output. What is unknown there, or not in a
    /// live block, becomes unknown.
    fn copy_bytes(&mut self, to: u64, from: u64, length: u64) {
        if let (Some(to), Some(from)) = (self.span(to, length), self.span(from, length)) {
            return self.values_mut().copy(to, from);
        }
        match self.known_bytes(from, length) {
            Some(bytes) => self.write_bytes(to, &bytes),
            None => self.overwritten(to, length),
        }
    }
}
