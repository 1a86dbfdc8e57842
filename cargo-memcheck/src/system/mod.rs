//! The operating system: child processes, GPUs, launchers, executables, temporary folders,
//! printing, files that are replaced as a whole, panics, and errors that end the command.

pub(crate) mod binary;
pub(crate) mod error;
pub(crate) mod escape;
pub(crate) mod files;
pub(crate) mod gpus;
pub(crate) mod launcher;
pub(crate) mod libraries;
pub(crate) mod panics;
pub(crate) mod printing;
pub(crate) mod process;
pub(crate) mod shell;
pub(crate) mod temporary;
