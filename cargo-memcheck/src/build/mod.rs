//! The build: packages of the workspace, toolkits, and cargo's processes.

pub(crate) mod compile;
pub(crate) mod generated;
pub(crate) mod leg;
pub(crate) mod provenance;
pub(crate) mod starter;
pub(crate) mod toolchain;
pub(crate) mod workspace;
