//! The request: configuration, environment variables, and the notation of simulated machines.

pub mod config;
pub mod machine;
pub mod variables;
