//! The simulated machine: all its devices, contexts, streams and handles.
//!
//! [`Machine`] is a value, so that tests can create their own. A process has one machine behind a
//! mutex ([`with`]), which the first call creates. The machine stays usable after a thread has
//! panicked while it held the mutex.

pub(crate) mod graphs;
mod unified;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use crate::activity::{Activity, Record};
use crate::attributes::DescriptorValues;
use crate::code::{Answer, Code};
use crate::descriptors::Descriptor;
use crate::events::Events;
use crate::faults::Schedule;
use crate::ffi::Out;
use crate::host::{HostMemory, Origin};
use crate::memory::{self, Block, DeviceMemory};
use crate::pools::Pool;
use crate::processes::Process;
use crate::spec::{self, DeviceSpec, Spec};
use crate::unified::Copies;
use graphs::Graphs;
use memcheck_kernels::FailedAssert;
use memcheck_kernels::{Generator, Image};
use memcheck_kernels::{Limits, Values};

pub(crate) use crate::handle::{Handle, Objects};

/// The highest stream handle that is a default stream of the current context.
// `CU_STREAM_LEGACY` is 1, and `CU_STREAM_PER_THREAD` is 2.
const LAST_DEFAULT_STREAM: Handle = 2;

#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) spec: DeviceSpec,
    /// Its number on the machine, which is part of its UUID.
    pub(crate) number: u32,
    pub(crate) memory: DeviceMemory,
    /// The primary context's handle, which stays the same for the whole run.
    pub(crate) primary: Handle,
    pub(crate) primary_retained: u32,
    pub(crate) primary_flags: u32,
    pub(crate) default_pool: Handle,
    pub(crate) current_pool: Handle,
}

#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) device: usize,
    pub(crate) flags: u32,
    pub(crate) peers: Vec<Handle>,
}

/// A stream that the program has created.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stream {
    pub(crate) context: Handle,
    pub(crate) flags: u32,
    pub(crate) priority: i32,
}

#[derive(Debug)]
pub(crate) struct Module {
    pub(crate) context: Handle,
    pub(crate) image: Image,
}

/// A kernel of a module.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) module: Handle,
    pub(crate) name: Arc<str>,
    pub(crate) code: memcheck_kernels::KernelCode,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Library {
    pub(crate) context: Handle,
    pub(crate) stream: Handle,
    pub(crate) pointer_mode: i32,
    pub(crate) math_mode: i32,
    pub(crate) atomics_mode: i32,
    /// The state of a generator of cuRAND.
    pub(crate) generator: Generator,
    /// The estimated size in bytes of the library's own allocation.
    pub(crate) workspace: u64,
}

/// The numbers of calls to the simulator since the process started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Statistics {
    /// Calls that touched a device, the calls below included.
    pub device_calls: u64,
    /// Attempts to allocate on a device.
    pub allocations: u64,
    /// Attempts to free on a device.
    pub frees: u64,
    /// Launched kernels, those of libraries and of candle's C code included.
    pub launches: u64,
    /// Copies to the host that met unknown values.
    pub unknown_reads: u64,
    /// The unknown bytes of these copies, which the program got as zeros.
    pub unknown_bytes: u64,
    /// Reads and writes of kernels that began in a block and ended outside of it.
    pub outside: u64,
}

#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) devices: Vec<Device>,
    pub(crate) contexts: Objects<Context>,
    pub(crate) streams: Objects<Stream>,
    pub(crate) events: Events,
    pub(crate) pools: Objects<Pool>,
    pub(crate) modules: Objects<Module>,
    /// The handle of each function, by module and name.
    pub(crate) function_names: BTreeMap<(Handle, String), Handle>,
    pub(crate) functions: Objects<Function>,
    pub(crate) libraries: Objects<Library>,
    /// The descriptors of cuDNN.
    pub(crate) descriptors: Objects<Descriptor>,
    /// The descriptors of cuBLASLt.
    pub(crate) attributes: Objects<DescriptorValues>,
    pub(crate) graphs: Graphs,
    pub(crate) host: HostMemory,
    /// The copies from the host, if host and device share one memory.
    pub(crate) copies: Copies,
    pub(crate) values: Values,
    /// The simulated processes of other users.
    pub(crate) processes: Vec<Process>,
    /// The records for CUPTI.
    pub(crate) activity: Activity,
    pub(crate) schedule: Schedule,
    /// The first assert of a kernel that failed.
    pub(crate) failed_assert: Option<FailedAssert>,
    handles: u64,
}

impl Machine {
    pub(crate) fn new(spec: &Spec) -> Self {
        let mut machine = Self {
            devices: Vec::new(),
            contexts: Objects::new(),
            streams: Objects::new(),
            events: Events::default(),
            pools: Objects::new(),
            modules: Objects::new(),
            function_names: BTreeMap::new(),
            functions: Objects::new(),
            libraries: Objects::new(),
            descriptors: Objects::new(),
            attributes: Objects::new(),
            graphs: Graphs::default(),
            host: HostMemory::default(),
            copies: Copies::default(),
            values: Values::new(Limits::of(spec.values)),
            processes: spec.processes.clone(),
            activity: Activity::default(),
            schedule: Schedule::new(spec.faults),
            failed_assert: None,
            handles: 0,
        };
        for (ordinal, &device) in spec.devices.iter().enumerate() {
            let others = spec::held(&spec.processes, ordinal);
            let primary = machine.handle();
            let pool = machine.handle();
            machine.pools.insert(pool, Pool::of_device(ordinal));
            machine.devices.push(Device {
                spec: device,
                number: spec.numbers[ordinal],
                memory: DeviceMemory::new(ordinal, device.capacity)
                    .shared_with(others)
                    .with_heap(device.card.memory.is_shared()),
                primary,
                primary_retained: 0,
                primary_flags: 0,
                default_pool: pool,
                current_pool: pool,
            });
        }
        machine
    }

    /// Returns a new handle. A handle must never be reused, so that a stale one is always detected.
    pub(crate) fn handle(&mut self) -> Handle {
        self.handles += 1;
        // Below the regions of all devices, so that a handle is never a device pointer, and a multiple
        // of 16, as the driver's own handles are.
        0x0510_0000_0000 + self.handles * 16
    }

    /// Counts a call. Every call that touches a device must go through this function.
    pub(crate) fn touch(&mut self) -> Answer {
        self.schedule.call()?;
        if self.failed_assert.is_some() { Err(Code::ASSERT) } else { Ok(()) }
    }

    /// Lets every later call that touches a device fail.
    pub(crate) fn fail_assert(&mut self, failed: FailedAssert) {
        if self.failed_assert.is_none() {
            // A device prints the failed assertion on stderr too.
            eprintln!("memcheck-sim: {failed}: CUDA_ERROR_ASSERT");
            self.failed_assert = Some(failed);
        }
    }

    pub(crate) fn launched(&mut self) {
        self.schedule.launched();
    }

    pub(crate) fn statistics(&self) -> Statistics {
        Statistics {
            device_calls: self.schedule.calls(),
            allocations: self.schedule.allocations(),
            frees: self.schedule.frees(),
            launches: self.schedule.launches(),
            unknown_reads: self.values.unknown_reads().reads,
            unknown_bytes: self.values.unknown_reads().bytes,
            outside: self.values.outside(),
        }
    }

    pub(crate) fn device(&mut self, ordinal: i32) -> Answer<&mut Device> {
        usize::try_from(ordinal)
            .ok()
            .and_then(|ordinal| self.devices.get_mut(ordinal))
            .ok_or(Code::INVALID_DEVICE)
    }

    /// Returns the context with this handle, which must exist; 0 is never a context.
    pub(crate) fn context(&mut self, context: Handle) -> Answer<&mut Context> {
        if context == 0 {
            return Err(Code::INVALID_CONTEXT);
        }
        self.contexts.get_mut(&context).ok_or(Code::CONTEXT_IS_DESTROYED)
    }

    /// Returns the context of `stream`; `current` is the current context of the thread.
    pub(crate) fn stream_context(&mut self, stream: Handle, current: Handle) -> Answer<Handle> {
        let context = if stream <= LAST_DEFAULT_STREAM {
            current
        } else {
            self.streams.get(&stream).ok_or(Code::INVALID_HANDLE)?.context
        };
        self.context(context)?;
        Ok(context)
    }

    pub(crate) fn create_context(&mut self, ordinal: i32, flags: u32) -> Answer<Handle> {
        self.device(ordinal)?;
        let handle = self.handle();
        let device = ordinal as usize;
        self.contexts.insert(handle, Context { device, flags, peers: Vec::new() });
        Ok(handle)
    }

    pub(crate) fn retain_primary(&mut self, ordinal: i32) -> Answer<Handle> {
        let device = self.device(ordinal)?;
        device.primary_retained += 1;
        let (primary, flags) = (device.primary, device.primary_flags);
        // The context exists only while it is retained.
        self.contexts.entry(primary).or_insert(Context {
            device: ordinal as usize,
            flags,
            peers: Vec::new(),
        });
        Ok(primary)
    }

    pub(crate) fn release_primary(&mut self, ordinal: i32) -> Answer {
        let device = self.device(ordinal)?;
        device.primary_retained =
            device.primary_retained.checked_sub(1).ok_or(Code::INVALID_CONTEXT)?;
        let (primary, retained) = (device.primary, device.primary_retained);
        if retained == 0 { self.destroy_context(primary) } else { Ok(()) }
    }

    /// Destroys a context with everything in it. Memory from a pool stays, because it belongs to
    /// the device and not to the context.
    pub(crate) fn destroy_context(&mut self, context: Handle) -> Answer {
        let device = self.context(context)?.device;
        let blocks = self.devices[device]
            .memory
            .select(|block| block.context == context && block.pool.is_none());
        for address in blocks {
            self.release_block(device, address)?;
        }
        self.contexts.remove(&context);
        self.streams.retain(|_, stream| stream.context != context);
        self.events.destroy_all_of(context);
        self.modules.retain(|_, module| module.context != context);
        self.libraries.retain(|handle, library| {
            let is_kept = library.context != context;
            if !is_kept {
                // CUPTI must see the release of a library's own memory, which goes with its
                // context.
                self.activity.record_release(device, *handle, library.workspace);
            }
            is_kept
        });
        let modules = &self.modules;
        self.function_names.retain(|(module, _), _| modules.contains_key(module));
        self.functions.retain(|_, function| modules.contains_key(&function.module));
        Ok(())
    }

    /// Allocates a block in `context` without a pool.
    pub(crate) fn allocate(&mut self, context: Handle, bytes: usize) -> Answer<u64> {
        let device = self.context(context)?.device;
        self.graphs.forbid_unsafe()?;
        let block = Block { bytes: bytes as u64, pool: None, context, in_use: true };
        self.allocate_block(device, block)
    }

    /// Allocates a block for the memory of a graph.
    pub(crate) fn allocate_graph_block(
        &mut self,
        device: usize,
        bytes: u64,
        context: Handle,
    ) -> Answer<u64> {
        self.allocate_block(device, Block { bytes, pool: None, context, in_use: true })
    }

    /// Allocates from `pool`, or from the current pool of the stream's device.
    pub(crate) fn allocate_async(
        &mut self,
        stream: Handle,
        current: Handle,
        pool: Option<Handle>,
        bytes: usize,
    ) -> Answer<u64> {
        let context = self.stream_context(stream, current)?;
        let own = self.context(context)?.device;
        let pool = pool.unwrap_or(self.devices[own].current_pool);
        let device = self.pools.get(&pool).ok_or(Code::INVALID_VALUE)?.device;
        // An empty tensor is not an error and not a block of the pool: in candle's issue 2327,
        // candle allocates some on a GPU before it fails at a kernel. On an H200 their address is 0
        // too.
        if bytes == 0 {
            return self.touch().map(|()| 0);
        }
        if let Some(graph) = self.graphs.capture_of(stream) {
            return self.allocate_captured(stream, graph, context, bytes as u64);
        }
        let block = Block { bytes: bytes as u64, pool: Some(pool), context, in_use: true };
        self.allocate_block(device, block)
    }

    /// Returns CUPTI's records so far.
    pub(crate) fn activity(&mut self) -> Vec<Record> {
        for (ordinal, device) in self.devices.iter().enumerate() {
            for (address, block) in device.memory.blocks() {
                self.activity.record_live(ordinal, address, block.bytes, block.pool.is_some());
            }
        }
        self.activity.take()
    }

    fn allocate_block(&mut self, device: usize, block: Block) -> Answer<u64> {
        self.touch()?;
        self.schedule.allocation()?;
        let memory = &mut self.devices[device].memory;
        let address = memory.allocate(block)?;
        if let Some(pool) = block.pool.and_then(|pool| self.pools.get_mut(&pool))
            && let Err(code) = pool.allocated(address, block.bytes)
        {
            // The device had room, but the pool has a limit of its own.
            memory.release(address)?;
            return Err(code);
        }
        Ok(address)
    }

    pub(crate) fn allocate_managed(&mut self, context: Handle, bytes: usize) -> Answer<u64> {
        let device = self.context(context)?.device;
        self.touch()?;
        self.schedule.allocation()?;
        self.allocate_host(bytes as u64, Origin::Managed(device), 0)
    }

    /// Frees a device or managed block, and returns the time that the free should take.
    pub(crate) fn free(&mut self, address: u64) -> Answer<Duration> {
        if address == 0 {
            return Ok(Duration::ZERO);
        }
        self.touch()?;
        self.schedule.free()?;
        let managed = |origin| matches!(origin, Origin::Managed(_));
        match memory::region(address).filter(|&device| device < self.devices.len()) {
            Some(_) if self.free_in_graph(address).is_some() => {}
            // The graph keeps the address for its launches, but the program does not hold the
            // block.
            Some(_) if self.graphs.owns(address) => return Err(Code::INVALID_VALUE),
            Some(device) => self.release_block(device, address)?,
            None => drop(self.release_host(address, managed)?),
        }
        Ok(self.schedule.pause())
    }

    fn release_block(&mut self, device: usize, address: u64) -> Answer {
        let block = self.devices[device].memory.release(address)?;
        // The next block at this address begins with unknown values.
        self.values.forget_block(address);
        self.forget_copies(address..address + block.bytes);
        if let Some(pool) = block.pool.and_then(|pool| self.pools.get_mut(&pool)) {
            pool.freed(address, block.bytes);
        }
        Ok(())
    }

    /// Completes the work of `context`, so that frees in its pools take effect.
    pub(crate) fn synchronize(&mut self, context: Handle) -> Answer {
        let device = self.context(context)?.device;
        self.touch()?;
        let pools = self.pools.iter_mut().map(|(_, pool)| pool);
        pools.filter(|pool| pool.device == device).for_each(Pool::synchronized);
        Ok(())
    }
}

static MACHINE: OnceLock<Option<Mutex<Machine>>> = OnceLock::new();

/// The error of a machine that cannot be configured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigureError {
    /// A call was answered before, so addresses and capacities are already in use.
    #[error("the simulated machine is already in use: configure it before the first device call")]
    InUse,
}

/// Sets the machine that this process simulates, in place of the environment.
///
/// # Errors
///
/// If a device call or an earlier `configure` has already created the machine.
pub fn configure(spec: &Spec) -> Result<(), ConfigureError> {
    let _quiet = memcheck_limits::quiet::enter();
    MACHINE.set(Some(Mutex::new(Machine::new(spec)))).map_err(|_| ConfigureError::InUse)
}

/// Runs `work` on the machine of the process, which the first call creates.
///
/// If the environment does not describe a valid machine, the reason is printed on stderr once, and
/// every call fails with `CUDA_ERROR_SYSTEM_NOT_READY`.
pub(crate) fn with<T>(work: impl FnOnce(&mut Machine) -> Answer<T>) -> Answer<T> {
    work(&mut *lock()?)
}

impl<T> Out<T> {
    /// Makes an object of the machine and stores its handle or address.
    pub(crate) fn make(self, work: impl FnOnce(&mut Machine) -> Answer<T>) -> Answer {
        self.fill(|| with(work))
    }
}

/// Not a part of `with`, which is compiled once for each closure.
fn lock() -> Answer<MutexGuard<'static, Machine>> {
    let machine = MACHINE.get_or_init(|| match Spec::from_env() {
        Ok(spec) => Some(Mutex::new(Machine::new(&spec))),
        Err(error) => {
            eprintln!("memcheck-sim: cannot create the simulated device: {error}");
            None
        }
    });
    let machine = machine.as_ref().ok_or(Code::SYSTEM_NOT_READY)?;
    Ok(machine.lock().unwrap_or_else(PoisonError::into_inner))
}

pub use unified::copied_from;

/// Runs `work` on the machine of the process; `None` if no call has created it.
pub(crate) fn existing<T>(work: impl FnOnce(&mut Machine) -> T) -> Option<T> {
    let _quiet = memcheck_limits::quiet::enter();
    let machine = MACHINE.get()?.as_ref()?;
    Some(work(&mut machine.lock().unwrap_or_else(PoisonError::into_inner)))
}

/// Returns the first assert of a kernel that failed; `None` if there was none.
pub fn failed_assert() -> Option<FailedAssert> {
    existing(|machine| machine.failed_assert.clone())?
}

/// Returns the counts so far; all are zero before the first call.
pub fn statistics() -> Statistics {
    existing(|machine| machine.statistics()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
