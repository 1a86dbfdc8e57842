//! The request: the configuration of a workspace, the variables of the environment, and the notation of simulated machines.

pub mod config;
pub mod machine;
pub mod variables;
