//! A reader that fails after a signal, so that long copies end at once.

use std::io::{self, Read};

use crate::system::process::Interrupt;

#[derive(Debug)]
pub(super) struct Interruptible<'a, R> {
    inner: R,
    interrupt: &'a Interrupt,
}

impl<'a, R> Interruptible<'a, R> {
    pub(super) fn new(inner: R, interrupt: &'a Interrupt) -> Self {
        Self { inner, interrupt }
    }
}

impl<R: Read> Read for Interruptible<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // The kind must not be `Interrupted`, because the standard library then reads again.
        if self.interrupt.is_set() {
            return Err(io::Error::other("the run was interrupted"));
        }
        self.inner.read(buffer)
    }
}
