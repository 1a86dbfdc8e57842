//! The simulated CUDA device: candle's CUDA backend, without a GPU.
//!
//! Linked into a test binary this crate answers every call that cudarc makes:
//! to the driver, cuBLAS, cuRAND, the runtime API and NVML. candle's real CUDA
//! backend and the real cudarc run unmodified on top of it. Kernels do nothing,
//! and device memory is addresses without backing, so a model of any size runs
//! in no time and no memory; what a program allocates, when, and what it frees
//! is exactly what it would be on a device.
//!
//! # What it cannot know
//!
//! - **Values.** Device memory reads as zeros. Small uploads (64 KiB each, 8 MiB
//!   together) come back as they were until something is seen to overwrite them;
//!   kernels launched through `cuLaunchKernel` are not seen. So a program whose
//!   way depends on values (expert routing, stop tokens) takes one road.
//! - **What libraries allocate for themselves**: contexts, workspaces, code. Of
//!   contexts and of cuBLAS's workspace there are estimates, in NVML's figure and
//!   in what CUPTI tells.
//! - **`reserved`, and NVML's figures**: estimates, marked as such where made.
//! - **Graph capture, virtual memory management, arrays, textures, run-time
//!   compilation, cuBLASLt, cuDNN, NCCL**: these calls fail, with their name on
//!   stderr, and [`unsupported_calls`] lists them. Never silently.
//!
//! # How it gets in
//!
//! Every function is `#[unsafe(no_mangle)] extern "C"`, but for those that
//! allocate or free device or pinned memory: these are in [`hooked`] under their
//! C names, for the crate that defines the symbols as probes and forwards here.
//! Call [`link()`] once, so that the linker takes everything along.
//!
//! With the feature `standalone` the crate is the libraries themselves, for a
//! program that a real toolkit has built: `scripts/simulated-driver` links it
//! under their names. Then it exports the hooked functions and NVML as well.
//!
//! The machine comes from [`configure`], or on the first call from the
//! environment: [`MACHINE_VARIABLE`], [`FAULTS_VARIABLE`] and [`PROCESSES_VARIABLE`].
//!
//! The simulator's own host allocations are made while its thread is
//! [quiet](memcheck_core::quiet), so a counting allocator can leave them out.

#![cfg_attr(
    not(feature = "standalone"),
    expect(non_snake_case, reason = "the hooked functions have the names that CUDA gave them")
)]

/// Where this crate is compiled: its own frames in a call stack are told by it.
pub const FOLDER: &str = env!("CARGO_MANIFEST_DIR");

mod activity;
mod code;
mod contents;
mod cublas;
mod cudart;
mod cupti;
mod curand;
mod driver;
mod events;
mod faults;
mod ffi;
mod handle;
pub mod hooked;
mod host;
mod kernels;
mod link;
mod machine;
mod memory;
mod nvml;
mod nvrtc;
mod pools;
mod processes;
mod refused;
mod registered;
mod spec;
mod transfer;
mod unsupported;
mod uuid;
mod version;

pub use faults::{Faults, FaultsError, Named};
pub use link::link;
pub use machine::{ConfigureError, Statistics, configure, statistics};
pub use nvml::{CONTEXT_ESTIMATE, NvmlError, attach_nvml, nvml_table};
pub use processes::{Process, ProcessesError, processes};
pub use refused::unsupported_calls;
pub use spec::{
    DEFAULT_MACHINE, DeviceSpec, FAULTS_VARIABLE, MACHINE_VARIABLE, MAX_CAPACITY, MAX_DEVICES,
    PROCESSES_VARIABLE, Spec, SpecError, VISIBLE_VARIABLE,
};
