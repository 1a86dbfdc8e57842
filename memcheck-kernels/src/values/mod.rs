//! The values that device memory holds, as far as they are known.
//!
//! A byte of a block is unknown, or it is known. The known bytes of a block are all zeros, which
//! needs no storage, or they are stored. A new block is unknown. Copies, fills and kernels keep
//! track of the known bytes by range.
//!
//! Unknown bytes read as zeros, but a kernel that depends on them has an unknown result. The store
//! has a limit ([`Limits`]): if a write would exceed it, the block that is being written becomes
//! unknown. Large models therefore cost no memory and no time.

mod limits;
mod ranges;
mod types;

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;

pub use limits::Limits;
use limits::OperationCount;
use ranges::Ranges;
use types::Types;

/// A range of bytes in a live block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The address of the block.
    pub block: u64,
    /// The bytes of the block.
    pub size: u64,
    /// Bytes from the start of the block to the range.
    pub offset: u64,
    /// The bytes of the range.
    pub length: u64,
}

impl Span {
    fn range(self) -> Range<u64> {
        self.offset..self.offset + self.length
    }

    fn is_whole(self) -> bool {
        self.length == self.size
    }
}

/// A part of a range that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'a> {
    /// This number of bytes, all zeros.
    Zeros(u64),
    /// Stored bytes.
    Bytes(&'a [u8]),
}

/// Bytes that a copy moves in the time of one operation of a kernel.
const BYTES_OF_AN_OPERATION: u64 = 16;

/// The largest block that can use the reserve.
const SMALL: u64 = 64 << 10;
/// Bytes above the limit for small blocks, so that token ids and layouts are known where large
/// weights have filled the store.
const RESERVE: u64 = 8 << 20;

/// The number of reads by the program that met unknown bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UnknownReads {
    /// Reads that met at least one unknown byte.
    pub reads: u64,
    /// The unknown bytes of these reads.
    pub bytes: u64,
}

/// The known values of all blocks.
#[derive(Debug)]
pub struct Values {
    /// The blocks of which at least one byte is known, by address.
    blocks: BTreeMap<u64, Contents>,
    limit: u64,
    /// Bytes that are stored.
    stored: u64,
    work: OperationCount,
    types: Types,
    unknown_reads: UnknownReads,
    /// Accesses of kernels that begin in a block and end outside of it.
    outside: Cell<u64>,
}

#[derive(Debug)]
struct Contents {
    known: Ranges,
    /// As long as the block, or empty if all known bytes are zeros.
    bytes: Vec<u8>,
}

impl Values {
    /// Returns values of which nothing is known.
    pub fn new(limits: Limits) -> Self {
        Self {
            blocks: BTreeMap::new(),
            limit: limits.bytes,
            stored: 0,
            work: OperationCount::new(limits),
            types: Types::new(),
            unknown_reads: UnknownReads::default(),
            outside: Cell::new(0),
        }
    }

    /// Returns whether the limits permit a launch with this many operations.
    pub fn permits(&self, operations: u64) -> bool {
        self.work.permits(operations)
    }

    /// Counts the operations of a launch. Returns false, and counts nothing, if the limits do not
    /// permit them.
    pub fn charge(&mut self, operations: u64) -> bool {
        self.work.charge(operations)
    }

    /// Counts the operations of a launch that the limits permit.
    pub(crate) fn count_operations(&mut self, operations: u64) {
        self.work.add(operations);
    }

    /// Returns whether the limits permit a launch of this many random numbers.
    pub(crate) fn permits_numbers(&self, count: u64, operations: u64) -> bool {
        self.work.permits_numbers(count, operations)
    }

    /// The operations that were counted so far.
    pub fn operations(&self) -> u64 {
        self.work.done()
    }

    /// Counts on from an earlier number of operations.
    pub fn count_operations_from(&mut self, done: u64) {
        self.work.count_from(done);
    }

    /// True if every byte is unknown at all times.
    fn keeps_nothing(&self) -> bool {
        self.limit == 0
    }

    /// Returns the numbers of the reads by the program that met unknown bytes.
    pub fn unknown_reads(&self) -> UnknownReads {
        self.unknown_reads
    }

    /// Returns the number of accesses of kernels that began in a block and ended outside of it.
    pub fn outside(&self) -> u64 {
        self.outside.get()
    }

    /// Counts an access of a kernel that begins in a block and ends outside of it.
    pub(crate) fn count_outside(&self) {
        self.outside.set(self.outside.get() + 1);
    }

    /// Counts a read by the program of `unknown` unknown bytes.
    pub fn count_read(&mut self, unknown: u64) {
        if unknown > 0 {
            self.unknown_reads.reads += 1;
            self.unknown_reads.bytes += unknown;
        }
    }

    /// Makes a range unknown, because a kernel has written elements there whose type has this name.
    pub(crate) fn forget_elements(&mut self, span: Span, name: Option<&'static str>) {
        self.forget(span);
        if let Some(name) = name {
            self.types.note(span.block, name);
        }
    }

    /// Returns the name of the type of the elements that a kernel has left unknown in a block, as
    /// far as it is known.
    pub fn element_type(&self, block: u64) -> Option<&'static str> {
        self.types.get(block)
    }

    /// Makes a range unknown.
    pub fn forget(&mut self, span: Span) {
        self.types.forget(span.block);
        // PERF: every launch of a large model calls this, and its blocks are unknown already.
        let Some(contents) = self.blocks.get_mut(&span.block) else { return };
        contents.known.remove(span.range());
        if contents.known.is_empty() {
            self.forget_block(span.block);
        }
    }

    /// Makes a block unknown, because it was freed or cannot be stored.
    pub fn forget_block(&mut self, block: u64) {
        self.types.forget(block);
        if let Some(contents) = self.blocks.remove(&block) {
            self.stored -= contents.bytes.len() as u64;
        }
    }

    /// Makes everything unknown.
    pub(crate) fn forget_all(&mut self) {
        self.blocks.clear();
        self.stored = 0;
    }

    /// Makes a range zeros.
    pub fn zero(&mut self, span: Span) {
        if self.keeps_nothing() {
            return;
        }
        if span.is_whole() {
            self.forget_block(span.block);
        }
        let contents = self.blocks.entry(span.block).or_insert_with(Contents::unknown);
        contents.known.insert(span.range());
        if !contents.bytes.is_empty() {
            contents.bytes[span.offset as usize..][..span.length as usize].fill(0);
        }
    }

    /// Stores the bytes of a range. If the limit does not permit it, the whole block becomes
    /// unknown.
    pub fn write(&mut self, span: Span, bytes: &[u8]) {
        if !self.has_room(span) {
            // `stored` stays as it is, because a block with storage has room.
            self.blocks.remove(&span.block);
            return;
        }
        let contents = self.blocks.entry(span.block).or_insert_with(Contents::unknown);
        if contents.bytes.is_empty() {
            self.stored += span.size;
        }
        if span.is_whole() {
            contents.bytes.clear();
            contents.bytes.extend_from_slice(bytes);
        } else {
            // Known bytes of a block without storage are zeros.
            contents.bytes.resize(span.size as usize, 0);
            contents.bytes[span.offset as usize..][..bytes.len()].copy_from_slice(bytes);
        }
        contents.known.insert(span.range());
    }

    /// Copies the known bytes of `from`. What is unknown there becomes unknown in `to`.
    pub fn copy(&mut self, to: Span, from: Span) {
        let is_stored = self.view(from).is_some_and(|view| view.bytes().is_some());
        // Zeros have no bytes to move.
        if is_stored && !self.charge(from.length / BYTES_OF_AN_OPERATION) {
            return self.forget(to);
        }
        // Copied first, because both ranges can be in one block.
        let mut parts = Vec::new();
        self.read(from, |offset, part| match part {
            Part::Zeros(length) => parts.push((offset, length, None)),
            Part::Bytes(bytes) => parts.push((offset, bytes.len() as u64, Some(bytes.to_vec()))),
        });
        self.forget(to);
        for (offset, length, bytes) in parts {
            let part = Span { offset: to.offset + offset, length, ..to };
            match bytes {
                Some(bytes) => self.write(part, &bytes),
                None => self.zero(part),
            }
        }
    }

    /// Calls `visit` with each known part of a range and its offset in the range. Returns the
    /// number of unknown bytes.
    pub fn read<'a>(&'a self, span: Span, mut visit: impl FnMut(u64, Part<'a>)) -> u64 {
        let Some(contents) = self.blocks.get(&span.block) else { return span.length };
        let mut unknown = span.length;
        for part in contents.known.within(span.range()) {
            let length = part.end - part.start;
            unknown -= length;
            visit(
                part.start - span.offset,
                match contents.bytes.is_empty() {
                    true => Part::Zeros(length),
                    false => Part::Bytes(&contents.bytes[part.start as usize..part.end as usize]),
                },
            );
        }
        unknown
    }

    /// Returns the bytes of a range if all of them are known.
    pub fn bytes(&self, span: Span) -> Option<Cow<'_, [u8]>> {
        let contents = self.blocks.get(&span.block)?;
        contents.known.contains(&span.range()).then(|| match contents.bytes.is_empty() {
            true => Cow::Owned(vec![0; span.length as usize]),
            false => Cow::Borrowed(&contents.bytes[span.offset as usize..][..span.length as usize]),
        })
    }

    /// Returns what is known of the block of a range; `None` if nothing is.
    pub(crate) fn view(&self, span: Span) -> Option<View<'_>> {
        self.blocks.get(&span.block).map(|contents| View { contents, offset: span.offset })
    }

    /// Returns whether the limit permits storage for the block, or the block has it.
    pub(crate) fn has_room(&self, span: Span) -> bool {
        if self.blocks.get(&span.block).is_some_and(|contents| !contents.bytes.is_empty()) {
            return true;
        }
        let reserve = if span.size <= SMALL { RESERVE } else { 0 };
        let most = self.limit.saturating_add(reserve);
        !self.keeps_nothing() && self.stored.saturating_add(span.size) <= most
    }
}

impl Contents {
    fn unknown() -> Self {
        Self { known: Ranges::default(), bytes: Vec::new() }
    }
}

/// The known bytes of a block, from an offset on.
pub(crate) struct View<'a> {
    contents: &'a Contents,
    offset: u64,
}

impl<'a> View<'a> {
    /// Returns whether `length` bytes from `first` on are known.
    pub(crate) fn knows(&self, first: u64, length: u64) -> bool {
        let start = self.offset + first;
        self.contents.known.contains(&(start..start + length))
    }

    /// Returns the stored bytes; `None` if all known bytes are zeros. Unknown bytes have no
    /// meaning.
    pub(crate) fn bytes(&self) -> Option<&'a [u8]> {
        let bytes = &self.contents.bytes;
        (!bytes.is_empty()).then(|| &bytes[self.offset as usize..])
    }
}

#[cfg(test)]
mod tests;
