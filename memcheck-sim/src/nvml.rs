//! The simulated NVML, which programs reach through a separate library.
//!
//! nvml-wrapper opens NVML by path, so it does not find symbols in the binary.
//! `cargo-memcheck/toolkit/nvml.c` is therefore compiled to a shared object whose functions jump
//! through a table, and [`attach_nvml`] fills that table with the functions of this module. With
//! the feature `standalone` the functions are exported, because the crate then is that library.
//! Programs reach the functions of [CUPTI](crate::cupti) in the same way.

mod attach;
mod layout;
#[cfg(test)]
mod tests;

use std::ffi::{c_char, c_int, c_uint, c_ulonglong};

use memcheck_limits::quiet;

use crate::code::{Answer, Code};
use crate::driver::{pci_bus, pci_bus_id};
use crate::ffi::{Out, Symbol, Text};
use crate::machine::{Handle, Library, Machine, with};
use crate::uuid;

pub use attach::{NvmlError, attach_nvml, nvml_table};
use layout::{MemoryV1, MemoryV2, PciInfo, ProcessV1, ProcessV2};

/// ESTIMATE: the memory that a process holds on a device in addition to its allocations. It is what
/// NVML reported for a new context on an H200 with driver 580.159.04, 518 MiB, and is assumed on
/// every device with a context. Workspaces of libraries are added to it.
pub const CONTEXT_ESTIMATE: u64 = 518 << 20;

/// Added to the handle of a slice, this gives the handle of its card.
const CARD: Handle = 1 << 16;

/// The version of the simulated driver that NVML reports.
const DRIVER: &str = "580.0.memcheck-sim";

/// Converts to `nvmlReturn_t`.
fn nvml(answer: Answer) -> c_int {
    match answer {
        Ok(()) => 0,
        Err(Code::SYSTEM_NOT_READY) => 9,
        Err(Code::INVALID_VALUE | Code::INVALID_DEVICE | Code::INVALID_HANDLE) => 2,
        Err(Code::NOT_SUPPORTED) => 3,
        Err(Code::NOT_FOUND) => 6,
        Err(Code::INSUFFICIENT_SIZE) => 7,
        Err(Code::DEVICE_UNAVAILABLE) => 15,
        Err(_) => 999,
    }
}

macro_rules! table {
    ($(fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => {
        $(
            // Must not be exported, because the separate library defines the symbols of these
            // names, unless this crate is that library.
            #[cfg_attr(feature = "standalone", unsafe(no_mangle))]
            unsafe extern "C" fn $name($($arg: $ty),*) -> c_int {
                let _quiet = quiet::enter();
                let body = move || -> Answer { $body };
                nvml(body())
            }
        )*
        static TABLE: &[Symbol] = &[
            $(Symbol { name: stringify!($name), address: $name as *const () },)*
            Symbol { name: "nvmlErrorString", address: nvmlErrorString as *const () },
        ];
    };
}

table! {
    fn nvmlInit_v2() {
        with(|_| Ok(()))
    }

    fn nvmlInitWithFlags(_flags: c_uint) {
        with(|_| Ok(()))
    }

    fn nvmlShutdown() {
        Ok(())
    }

    fn nvmlSystemGetDriverVersion(text: Out<c_char>, length: c_uint) {
        put_whole_text(text, DRIVER, length)
    }

    fn nvmlSystemGetNVMLVersion(text: Out<c_char>, length: c_uint) {
        put_whole_text(text, "13.580.0.memcheck-sim", length)
    }

    fn nvmlSystemGetCudaDriverVersion(version: Out<c_int>) {
        version.put(with(|machine| Ok(machine.schedule.driver()))?)
    }

    fn nvmlSystemGetCudaDriverVersion_v2(version: Out<c_int>) {
        version.put(with(|machine| Ok(machine.schedule.driver()))?)
    }

    fn nvmlDeviceGetCount_v2(count: Out<c_uint>) {
        count.put(with(|machine| Ok(machine.devices.len() as c_uint))?)
    }

    fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, device: Out<Handle>) {
        let count = with(|machine| Ok(machine.devices.len() as c_uint))?;
        let ordinal = reverse_index(index, count).ok_or(Code::INVALID_VALUE)?;
        let card = if is_slice(ordinal as c_int)? { CARD } else { 0 };
        device.put(Handle::from(ordinal) + 1 + card)
    }

    fn nvmlDeviceGetHandleByUUID(uuid: Text, device: Out<Handle>) {
        let uuid = uuid.get()?;
        let count = with(|machine| Ok(machine.devices.len() as c_int))?;
        let mut handles = (0..count as Handle).flat_map(|ordinal| {
            let known = [ordinal + 1, ordinal + 1 + CARD];
            known.into_iter().filter_map(|handle| Some((handle, uuid_text(handle).ok()??)))
        });
        let found = handles.find_map(|(handle, known)| (known == uuid).then_some(handle));
        device.put(found.ok_or(Code::NOT_FOUND)?)
    }

    fn nvmlDeviceGetIndex(device: Handle, index: Out<c_uint>) {
        let ordinal = ordinal(device)? as c_uint;
        let count = with(|machine| Ok(machine.devices.len() as c_uint))?;
        index.put(reverse_index(ordinal, count).ok_or(Code::INVALID_HANDLE)?)
    }

    fn nvmlDeviceGetName(device: Handle, text: Out<c_char>, length: c_uint) {
        let ordinal = ordinal(device)?;
        let card = with(|machine| Ok(machine.device(ordinal)?.spec.card))?;
        put_whole_text(text, card.name, length)
    }

    fn nvmlDeviceGetUUID(device: Handle, text: Out<c_char>, length: c_uint) {
        ordinal(device)?;
        put_whole_text(text, &uuid_text(device)?.ok_or(Code::INVALID_HANDLE)?, length)
    }

    fn nvmlDeviceGetPciInfo_v3(device: Handle, info: Out<PciInfo>) {
        let ordinal = ordinal(device)?;
        let id = pci_bus_id(ordinal);
        let (mut legacy, mut bus_id) = ([0; 16], [0; 32]);
        legacy[..id.len()].copy_from_slice(id.as_bytes());
        bus_id[..4].copy_from_slice(b"0000");
        bus_id[4..4 + id.len()].copy_from_slice(id.as_bytes());
        info.put(PciInfo {
            legacy,
            domain: 0,
            bus: pci_bus(ordinal) as c_uint,
            device: 0,
            device_id: 0x10de,
            subsystem: 0,
            bus_id,
        })
    }

    fn nvmlDeviceGetCudaComputeCapability(device: Handle, major: Out<c_int>, minor: Out<c_int>) {
        let ordinal = ordinal(device)?;
        let (high, low) = with(|machine| Ok(machine.device(ordinal)?.spec.card.compute))?;
        major.put(high.into())?;
        minor.put(low.into())
    }

    fn nvmlDeviceGetMemoryInfo(device: Handle, memory: Out<MemoryV1>) {
        let (total, used) = memory_of(device)?;
        memory.put(MemoryV1 { total, free: total - used, used })
    }

    fn nvmlDeviceGetMemoryInfo_v2(device: Handle, memory: Out<MemoryV2>) {
        let (total, used) = memory_of(device)?;
        let version = size_of::<MemoryV2>() as c_uint | (2 << 24);
        memory.put(MemoryV2 { version, total, reserved: 0, free: total - used, used })
    }

    fn nvmlDeviceGetMigMode(device: Handle, current: Out<c_uint>, pending: Out<c_uint>) {
        ordinal(device)?;
        if device <= CARD {
            return Err(Code::NOT_SUPPORTED);
        }
        current.put(1)?;
        pending.put(1)
    }

    fn nvmlDeviceIsMigDeviceHandle(device: Handle, slice: Out<c_uint>) {
        slice.put(c_uint::from(is_slice(ordinal(device)?)? && device <= CARD))
    }

    fn nvmlDeviceGetMaxMigDeviceCount(device: Handle, count: Out<c_uint>) {
        ordinal(device)?;
        // A card can have seven slices.
        count.put(if device > CARD { 7 } else { 0 })
    }

    fn nvmlDeviceGetMigDeviceHandleByIndex(device: Handle, index: c_uint, slice: Out<Handle>) {
        ordinal(device)?;
        if device <= CARD || index > 0 {
            return Err(Code::NOT_FOUND);
        }
        slice.put(device - CARD)
    }

    fn nvmlSystemGetProcessName(pid: c_uint, text: Out<c_char>, length: c_uint) {
        let name = with(|machine| {
            let known = machine.processes.iter().find(|process| process.pid == pid);
            known.map(|process| process.name.clone()).ok_or(Code::NOT_FOUND)
        })?;
        put_whole_text(text, &name, length)
    }

    fn nvmlDeviceGetComputeRunningProcesses(device: Handle, count: *mut c_uint, infos: Out<ProcessV1>) {
        running(device, count, infos, |pid, used| ProcessV1 { pid, used })
    }

    fn nvmlDeviceGetComputeRunningProcesses_v2(device: Handle, count: *mut c_uint, infos: Out<ProcessV2>) {
        running(device, count, infos, ProcessV2::whole)
    }

    fn nvmlDeviceGetComputeRunningProcesses_v3(device: Handle, count: *mut c_uint, infos: Out<ProcessV2>) {
        running(device, count, infos, ProcessV2::whole)
    }

    fn nvmlDeviceGetGraphicsRunningProcesses_v3(device: Handle, count: Out<c_uint>, _infos: Out<ProcessV2>) {
        ordinal(device)?;
        count.put(0)
    }
}

#[cfg_attr(feature = "standalone", unsafe(no_mangle))]
unsafe extern "C" fn nvmlErrorString(code: c_int) -> *const c_char {
    match code {
        0 => c"Success",
        2 => c"Invalid Argument",
        3 => c"Not Supported",
        6 => c"Not Found",
        7 => c"Insufficient Size",
        9 => c"Driver Not Loaded",
        15 => c"GPU is lost",
        _ => c"Unknown Error",
    }
    .as_ptr()
}

/// Converts between the driver's ordinal and NVML's index, in both directions. NVML counts by bus,
/// and a higher ordinal has a lower bus.
fn reverse_index(number: c_uint, count: c_uint) -> Option<c_uint> {
    count.checked_sub(1)?.checked_sub(number)
}

/// Returns NVML's UUID for this handle; `None` for the card of a device that is not a slice,
/// because there is no such handle.
fn uuid_text(device: Handle) -> Answer<Option<String>> {
    let ordinal = ordinal(device)?;
    let slice = match (is_slice(ordinal)?, device > CARD) {
        (false, true) => return Ok(None),
        (mig, card) => mig && !card,
    };
    let number = with(|machine| Ok(machine.device(ordinal)?.number))?;
    Ok(Some(uuid::uuid_text(number, slice)))
}

fn is_slice(ordinal: c_int) -> Answer<bool> {
    with(|machine| Ok(machine.device(ordinal)?.spec.mig))
}

fn ordinal(device: Handle) -> Answer<c_int> {
    let device = if device > CARD { device - CARD } else { device };
    let ordinal = device.checked_sub(1).and_then(|index| c_int::try_from(index).ok());
    let ordinal = ordinal.ok_or(Code::INVALID_HANDLE)?;
    with(|machine| machine.device(ordinal).map(drop))?;
    Ok(ordinal)
}

/// Stores a text. A buffer that is too small is an error, because NVML never cuts a text.
fn put_whole_text(out: Out<c_char>, text: &str, capacity: c_uint) -> Answer {
    if text.len() >= capacity as usize {
        return Err(Code::INSUFFICIENT_SIZE);
    }
    out.put_text(text, capacity as usize)
}

/// Returns the bytes that this process holds on a device; 0 without a context.
fn held(machine: &Machine, ordinal: usize) -> u64 {
    let device = &machine.devices[ordinal];
    if !machine.contexts.values().any(|context| context.device == ordinal) {
        return 0;
    }
    let pools = machine.pools.values().filter(|pool| pool.device == ordinal);
    let unused: u64 = pools.map(|pool| pool.reserved() - pool.used()).sum();
    let of_device = |library: &&Library| {
        machine.contexts.get(&library.context).is_some_and(|context| context.device == ordinal)
    };
    let workspaces: u64 =
        machine.libraries.values().filter(of_device).map(|library| library.workspace).sum();
    let memory = &device.memory;
    (memory.used() + unused + CONTEXT_ESTIMATE + workspaces).min(memory.capacity())
}

/// Returns the capacity of a device and its used bytes.
fn memory_of(device: Handle) -> Answer<(u64, u64)> {
    let ordinal = ordinal(device)? as usize;
    with(|machine| {
        let memory = &machine.devices[ordinal].memory;
        let used = held(machine, ordinal).saturating_add(memory.others());
        Ok((memory.capacity(), used.min(memory.capacity())))
    })
}

/// Lists the processes that hold memory of a device: this process and the simulated ones.
fn running<T>(
    device: Handle,
    count: *mut c_uint,
    infos: Out<T>,
    info: impl Fn(c_uint, c_ulonglong) -> T,
) -> Answer {
    if count.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    let ordinal = ordinal(device)? as usize;
    let running: Vec<(c_uint, u64)> = with(|machine| {
        machine.schedule.nvml()?;
        let others = machine.processes.iter().filter(|process| process.device == ordinal);
        let others = others.map(|process| (process.pid, process.bytes));
        let own = (std::process::id(), held(machine, ordinal));
        Ok(others.chain((own.1 > 0).then_some(own)).collect())
    })?;
    // SAFETY: the pointer is not null, and NVML requires that it is readable and writable.
    let room = unsafe { count.replace(running.len() as c_uint) };
    if running.len() > room as usize {
        return Err(Code::INSUFFICIENT_SIZE);
    }
    let infos = infos.address();
    if infos.is_null() && !running.is_empty() {
        return Err(Code::INVALID_VALUE);
    }
    for (index, (pid, used)) in running.into_iter().enumerate() {
        // SAFETY: the pointer is not null, so it has room for the number of elements in `count`.
        unsafe { infos.add(index).write(info(pid, used)) };
    }
    Ok(())
}
