//! Live blocks that a census counts together.

/// One item of a census: live blocks of one size, one birth and, if known, one call site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Living {
    /// Number of the call site, if it is known.
    pub site: Option<u32>,
    /// Bytes of one block.
    pub size: u64,
    /// Index of the iteration of birth, warm-up included; `None` for the set-up.
    pub born: Option<u32>,
    /// Number of blocks.
    pub count: u64,
}
