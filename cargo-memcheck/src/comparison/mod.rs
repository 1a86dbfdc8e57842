//! Several runs compared: two of them, many against a good one, and all of a history. The functions
//! are pure.

pub(crate) mod bisect;
pub(crate) mod history;
pub(crate) mod runs;
