//! The simulated CUDA device: candle's CUDA backend without a GPU.
//!
//! This is a part of memcheck, and any version can change it. Depend on `memcheck-runtime` instead.
//!
//! A test binary that links this crate needs no CUDA library. The crate answers every call that
//! cudarc makes to the driver, cuBLAS, cuRAND, the runtime API and NVML, so candle's real CUDA
//! backend and the real cudarc run on it unmodified. Kernels compute small results. Large ones are
//! unknown, and device memory then consists of addresses without backing. A model of any size
//! therefore takes almost no time and no memory, but the program makes the same allocations and
//! frees, in the same order, as on a device.
//!
//! # What it cannot know
//!
//! - **Values beyond its limits.** Values are stored up to 256 MiB, and a launch computes at most
//!   2^24 operations, unless [`Spec::values`] sets other limits. Results of other launches, and of
//!   kernels that the simulator does not compute and for which [`register_kernel`] has no function,
//!   are unknown. They read as zeros, [`Statistics::unknown_reads`] counts these reads,
//!   [`observe_unknown_reads`] reports them, and [`observe_unsimulated_launches`] the launches.
//! - **Memory that libraries allocate for themselves**: contexts, workspaces, code. NVML's figure
//!   and the records of CUPTI contain estimates for contexts and for cuBLAS's workspace.
//! - **`reserved` and NVML's figures**: these are estimates, and the code marks them as such.
//! - **Workspaces of cuDNN and cuBLASLt**: the sizes that these return are estimates
//!   ([`workspaces()`]).
//! - **Kernels that are compiled at run time**: they launch, and their results are unknown.
//! - **Virtual memory management, arrays, textures, most of cuDNN and parts of cuBLASLt, NCCL and of
//!   graphs**: these calls fail, never silently. The first call of each function prints its name on
//!   stderr, and [`unsupported_calls`] lists them.
//!
//! # How a program links it
//!
//! Every function is `#[unsafe(no_mangle)] extern "C"`, except those that allocate or free device
//! or pinned memory. These are in [`hooked`] under their C names, because another crate defines the
//! symbols as probes and forwards the calls to them. A program must call [`link()`] once, so that
//! the linker includes all functions.
//!
//! With the feature `standalone` the crate is built as the CUDA libraries themselves, for a program
//! that a real toolkit has built. `scripts/simulated-driver` links it under their names. The crate
//! then also exports the hooked functions and NVML.
//!
//! A program that loads the CUDA libraries at run time gets the same functions after a call of
//! [`provide_libraries`].
//!
//! The machine is set by [`configure`]. Otherwise the first call reads it from the environment:
//! [`MACHINE_VARIABLE`], [`FAULTS_VARIABLE`], [`PROCESSES_VARIABLE`] and [`VALUES_VARIABLE`].
//!
//! The simulator marks the thread as [quiet](memcheck_limits::quiet) while it works, so
//! that a counting allocator can leave out the simulator's own host allocations.

#![cfg_attr(
    not(feature = "standalone"),
    expect(non_snake_case, reason = "the hooked functions have the names that CUDA gave them")
)]

/// The folder of this crate's sources. Reports recognize the simulator's stack frames by it.
pub const FOLDER: &str = env!("CARGO_MANIFEST_DIR");

mod activity;
mod attributes;
mod code;
mod cublas;
mod cublaslt;
mod cudart;
mod cudnn;
mod cupti;
mod curand;
mod descriptors;
mod driver;
mod events;
mod faults;
mod ffi;
mod flash;
mod gaps;
mod handle;
pub mod hooked;
mod host;
mod kernels;
mod launchers;
mod link;
mod loaded;
mod machine;
mod memory;
mod nccl;
mod nvml;
mod nvrtc;
mod operations;
mod pools;
mod processes;
mod reads;
mod refused;
mod registered;
mod spec;
mod transfer;
mod unified;
mod unsimulated;
mod unsupported;
mod uuid;
mod version;
mod workspaces;

pub use faults::{Faults, FaultsError, Named};
pub use link::link;
pub use loaded::{ProvideError, provide_libraries};
pub use machine::{ConfigureError, Statistics, configure, copied_from, failed_assert, statistics};
pub use memcheck_kernels::{FailedAssert, HostLaunch, register_kernel, register_kernel_with};
pub use nvml::{CONTEXT_ESTIMATE, NvmlError, attach_nvml, nvml_table};
pub use operations::Operations;
pub use processes::{Process, ProcessesError, processes};
pub use reads::{UnknownRead, observe_unknown_reads};
pub use refused::unsupported_calls;
pub use spec::{
    DEFAULT_MACHINE, DeviceSpec, FAULTS_VARIABLE, MACHINE_VARIABLE, MAX_CAPACITY, MAX_DEVICES,
    PROCESSES_VARIABLE, Spec, SpecError, VALUES_VARIABLE, VISIBLE_VARIABLE,
};
pub use unified::count_heap;
pub use unsimulated::{Unsimulated, observe_unsimulated_launches};
pub use workspaces::{Workspaces, workspaces};
