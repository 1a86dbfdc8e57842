//! The operating system: child processes, GPUs, launchers, executables, temporary folders,
//! printing, files that are replaced as a whole, panics, and errors that end the command.

#[cfg(all(target_os = "linux", not(memcheck_portable)))]
pub(crate) mod binary;
#[cfg(all(target_os = "linux", not(memcheck_portable)))]
pub(crate) mod elf;
pub(crate) mod error;
pub(crate) mod escape;
#[cfg(all(target_os = "linux", not(memcheck_portable)))]
pub(crate) mod files;
#[cfg(all(target_os = "linux", not(memcheck_portable)))]
pub(crate) mod gpus;
#[cfg(all(target_os = "linux", not(memcheck_portable)))]
pub(crate) mod launcher;
#[cfg(all(target_os = "linux", not(memcheck_portable)))]
pub(crate) mod libraries;
pub(crate) mod panics;
pub(crate) mod printing;
#[cfg(all(target_os = "linux", not(memcheck_portable)))]
pub(crate) mod process;
pub(crate) mod shell;
#[cfg(all(target_os = "linux", not(memcheck_portable)))]
pub(crate) mod temporary;
