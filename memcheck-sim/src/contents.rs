//! The known contents of device memory: small uploads.
//!
//! Kernels do nothing, so device memory has no contents and reads as zeros. But a program that
//! uploads token ids or a scalar and reads them back expects the same bytes. Copies of at most
//! [`MAX_COPY`] bytes are therefore kept, up to [`MAX_TOTAL`] bytes together, until a call
//! overwrites or frees them.
//!
//! The simulator cannot see the writes of a kernel that is launched through `cuLaunchKernel`,
//! because its arguments are opaque. A program that uploads a small buffer, changes it in place
//! with a kernel and reads it back gets the uploaded bytes.

use std::collections::{BTreeMap, BTreeSet};

/// The maximum size of a copy or fill that is kept.
pub(crate) const MAX_COPY: u64 = 64 << 10;
/// The maximum number of bytes that are kept. The oldest are dropped first.
pub(crate) const MAX_TOTAL: usize = 8 << 20;

/// Known bytes by address. Ranges must never overlap.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pieces: BTreeMap<u64, Piece>,
    by_age: BTreeSet<(u64, u64)>,
    total: usize,
    clock: u64,
}

#[derive(Debug)]
struct Piece {
    bytes: Vec<u8>,
    age: u64,
}

impl Contents {
    pub(crate) fn store(&mut self, address: u64, bytes: &[u8]) {
        self.forget(address, bytes.len() as u64);
        // Unknown memory reads as zeros, so zeros need not be stored.
        if bytes.len() as u64 > MAX_COPY || bytes.iter().all(|&byte| byte == 0) {
            return;
        }
        self.clock += 1;
        self.insert(address, Piece { bytes: bytes.to_vec(), age: self.clock });
        while self.total > MAX_TOTAL
            && let Some(&(_, oldest)) = self.by_age.first()
        {
            self.remove(oldest);
        }
    }

    /// Forgets `length` bytes from `address`.
    pub(crate) fn forget(&mut self, address: u64, length: u64) {
        let end = address.saturating_add(length);
        for start in self.overlapping(address, end) {
            let Some(piece) = self.remove(start) else { continue };
            let age = piece.age;
            if start < address {
                let kept = (address - start) as usize;
                self.insert(start, Piece { bytes: piece.bytes[..kept].to_vec(), age });
            }
            if start + piece.bytes.len() as u64 > end {
                let kept = (end - start) as usize;
                self.insert(end, Piece { bytes: piece.bytes[kept..].to_vec(), age });
            }
        }
    }

    /// Calls `copy` with the offset and the bytes of each known range within `length` bytes from
    /// `address`.
    pub(crate) fn read(&self, address: u64, length: u64, mut copy: impl FnMut(u64, &[u8])) {
        let end = address.saturating_add(length);
        for start in self.overlapping(address, end) {
            let bytes = &self.pieces[&start].bytes;
            let first = address.saturating_sub(start) as usize;
            let last = bytes.len().min((end - start) as usize);
            copy((start + first as u64) - address, &bytes[first..last]);
        }
    }

    pub(crate) fn copy(&mut self, to: u64, from: u64, length: u64) {
        let mut known = Vec::new();
        self.read(from, length, |offset, bytes| known.push((offset, bytes.to_vec())));
        self.forget(to, length);
        for (offset, bytes) in known {
            self.store(to + offset, &bytes);
        }
    }

    fn overlapping(&self, address: u64, end: u64) -> Vec<u64> {
        // PERF: every free calls this, and most programs have uploaded no small buffer.
        if self.pieces.is_empty() {
            return Vec::new();
        }
        let mut starts: Vec<u64> = self
            .pieces
            .range(..address)
            .next_back()
            .filter(|&(&start, piece)| start + piece.bytes.len() as u64 > address)
            .map(|(&start, _)| start)
            .into_iter()
            .collect();
        if address < end {
            starts.extend(self.pieces.range(address..end).map(|(&start, _)| start));
        } else {
            starts.clear();
        }
        starts
    }

    fn insert(&mut self, start: u64, piece: Piece) {
        self.total += piece.bytes.len();
        self.by_age.insert((piece.age, start));
        self.pieces.insert(start, piece);
    }

    fn remove(&mut self, start: u64) -> Option<Piece> {
        let piece = self.pieces.remove(&start)?;
        self.total -= piece.bytes.len();
        self.by_age.remove(&(piece.age, start));
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(contents: &Contents, address: u64, length: u64) -> Vec<u8> {
        let mut all = vec![0; length as usize];
        contents.read(address, length, |offset, bytes| {
            all[offset as usize..][..bytes.len()].copy_from_slice(bytes);
        });
        all
    }

    #[test]
    fn stored_bytes_read_back_from_any_offset() {
        let mut contents = Contents::default();
        contents.store(100, &[1, 2, 3, 4]);
        assert_eq!(bytes(&contents, 98, 8), [0, 0, 1, 2, 3, 4, 0, 0]);
        assert_eq!(bytes(&contents, 101, 2), [2, 3]);
        assert_eq!(bytes(&contents, 104, 2), [0, 0]);
    }

    #[test]
    fn an_overwritten_middle_leaves_both_ends() {
        let mut contents = Contents::default();
        contents.store(100, &[1, 2, 3, 4, 5]);
        contents.forget(102, 1);
        assert_eq!(bytes(&contents, 100, 5), [1, 2, 0, 4, 5]);
        contents.store(101, &[9, 9]);
        assert_eq!(bytes(&contents, 100, 5), [1, 9, 9, 4, 5]);
        contents.forget(0, 1000);
        assert_eq!(bytes(&contents, 100, 5), [0; 5]);
        assert_eq!(contents.total, 0);
        assert!(contents.by_age.is_empty());
    }

    #[test]
    fn a_copy_carries_the_known_bytes() {
        let mut contents = Contents::default();
        contents.store(100, &[1, 2, 3, 4]);
        contents.store(200, &[7; 8]);
        contents.copy(200, 98, 6);
        assert_eq!(bytes(&contents, 200, 8), [0, 0, 1, 2, 3, 4, 7, 7]);
    }

    #[test]
    fn the_oldest_goes_when_it_is_too_much() {
        let mut contents = Contents::default();
        let piece = vec![1; MAX_COPY as usize];
        for index in 0..=(MAX_TOTAL as u64 / MAX_COPY) {
            contents.store(index * MAX_COPY, &piece);
        }
        assert_eq!(bytes(&contents, 0, 1), [0]);
        assert_eq!(bytes(&contents, MAX_COPY, 1), [1]);
        assert_eq!(contents.total, MAX_TOTAL);
        contents.store(0, &vec![1; MAX_COPY as usize + 1]);
        assert_eq!(bytes(&contents, 0, 1), [0]);
    }
}
