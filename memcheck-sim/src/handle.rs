//! What the driver hands out.

/// An opaque handle, as C sees it a pointer; 0 is none.
pub(crate) type Handle = u64;
