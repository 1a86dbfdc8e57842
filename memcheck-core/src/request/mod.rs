//! The request: configuration and environment variables.

pub mod config;
pub mod variables;
