//! The operating system: child processes, GPUs, launchers, executables, temporary folders, printing, and errors that end the command.

pub(crate) mod binary;
pub(crate) mod error;
pub(crate) mod gpus;
pub(crate) mod launcher;
pub(crate) mod libraries;
pub(crate) mod printing;
pub(crate) mod process;
pub(crate) mod temporary;
