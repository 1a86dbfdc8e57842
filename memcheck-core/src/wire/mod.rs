//! The wire: the data that the command, the test processes and the estimator exchange.

pub mod estimate;
#[doc(hidden)]
pub mod example;
pub mod exit;
pub mod last_state;
pub mod protocol;
