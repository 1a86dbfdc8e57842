//! The handles that the driver returns.

use litemap::LiteMap;

/// An opaque handle, which is a pointer in C; 0 means none.
pub(crate) type Handle = u64;

/// The objects of a kind by their handle, in the order in which they were made. A sorted vector: as
/// `BTreeMap`s, these and the simulator's other small maps took 4 s longer to compile.
pub(crate) type Objects<T> = LiteMap<Handle, T>;
