//! The handles that the driver returns.

/// An opaque handle, which is a pointer in C; 0 means none.
pub(crate) type Handle = u64;
