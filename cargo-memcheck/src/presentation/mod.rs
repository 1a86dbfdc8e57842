//! Presentation: outcomes become lines, reports and stored results.

pub(crate) mod events;
#[cfg(feature = "comparison")]
pub(crate) mod history;
pub(crate) mod origin;
pub(crate) mod presenters;
pub(crate) mod results;
pub(crate) mod schema;
pub(crate) mod tally;
