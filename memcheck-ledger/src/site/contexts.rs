//! Numbers for contexts: call stacks with their scopes.

use crate::intern::{Interner, mix};

/// Has room for a quarter of a million stacks of 60 frames on average. An interpreter has no memory
/// that costs nothing until it is touched.
static CONTEXTS: Interner =
    if cfg!(miri) { Interner::new(1 << 8, 1 << 12) } else { Interner::new(1 << 18, 1 << 24) };

/// A call stack in a scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// Return addresses, the innermost first.
    pub frames: Vec<u64>,
    /// The scope, as a number of [`crate::scope`].
    pub scope: u32,
}

pub(super) fn map() -> std::io::Result<()> {
    CONTEXTS.map()
}

/// The number of a context; 0 if the table is full. `frames` are return addresses, the outermost
/// first, and `hash` is the hash of all of them.
pub(super) fn number(frames: &[u64], hash: u64, scope: u32) -> u32 {
    let words = Words { scope: Some(scope.into()), frames };
    CONTEXTS.number(mix(hash, scope.into()), words)
}

/// True if the frames and scopes of all contexts so far are known.
pub fn is_complete() -> bool {
    CONTEXTS.is_complete()
}

/// An iterator over the scope and then the frames from the innermost.
struct Words<'a> {
    scope: Option<u64>,
    frames: &'a [u64],
}

impl Iterator for Words<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        if let Some(scope) = self.scope.take() {
            return Some(scope);
        }
        let (last, rest) = self.frames.split_last()?;
        self.frames = rest;
        Some(*last)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let length = self.frames.len() + usize::from(self.scope.is_some());
        (length, Some(length))
    }
}

impl ExactSizeIterator for Words<'_> {}

/// The context with this number, if its words are known.
pub fn context(number: u32) -> Option<Context> {
    let words = CONTEXTS.words(number)?;
    let (scope, frames) = words.split_first()?;
    Some(Context { frames: frames.to_vec(), scope: *scope as u32 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_in_another_scope_is_another_context() {
        map().unwrap();
        let one = number(&[1, 2, 3], 77 << 32, 4);
        assert_eq!(number(&[1, 2, 3], 77 << 32, 4), one);
        assert_eq!(context(one), Some(Context { frames: vec![3, 2, 1], scope: 4 }));
        let other = number(&[1, 2, 3], 77 << 32, 5);
        assert_ne!(other, one);
        assert_eq!(context(other).unwrap().scope, 5);
        assert_eq!(context(0), None);
    }
}
