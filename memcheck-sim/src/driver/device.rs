//! The devices and their properties.

use std::ffi::{CStr, c_char, c_int, c_uint};

use memcheck_limits::cards::{Card, CardMemory};

use crate::code::{Answer, Code, describe};
use crate::ffi::{self, Out, Text, exports};
use crate::machine::with;
use crate::spec::MAX_DEVICES;
use crate::uuid::{slice_uuid_of, uuid_of};

/// CUDA 13.0, the version of the driver and of the libraries.
pub(crate) use crate::version::VERSION;

exports! { ffi::driver;
    fn cuInit(flags: c_uint) {
        if flags == 0 { with(|machine| machine.schedule.init()) } else { Err(Code::INVALID_VALUE) }
    }

    fn cuDriverGetVersion(version: Out<c_int>) {
        version.put(with(|machine| Ok(machine.schedule.driver()))?)
    }

    fn cuDeviceGetCount(count: Out<c_int>) {
        count.put(with(|machine| Ok(machine.devices.len() as c_int))?)
    }

    fn cuDeviceGet(device: Out<c_int>, ordinal: c_int) {
        with(|machine| machine.device(ordinal).map(drop))?;
        device.put(ordinal)
    }

    fn cuDeviceGetName(name: Out<c_char>, length: c_int, device: c_int) {
        let card = card(device)?;
        name.put_text(card.name, usize::try_from(length).map_err(|_| Code::INVALID_VALUE)?)
    }

    fn cuDeviceGetUuid(uuid: Out<[u8; 16]>, device: c_int) {
        // For a slice, this function returns the UUID of its card.
        uuid.put(uuid_of(with(|machine| Ok(machine.device(device)?.number))?))
    }

    fn cuDeviceGetUuid_v2(uuid: Out<[u8; 16]>, device: c_int) {
        let (number, mig) = with(|machine| {
            let device = machine.device(device)?;
            Ok((device.number, device.spec.mig))
        })?;
        uuid.put(if mig { slice_uuid_of(number) } else { uuid_of(number) })
    }

    fn cuDeviceTotalMem_v2(bytes: Out<usize>, device: c_int) {
        bytes.put(with(|machine| Ok(machine.device(device)?.memory.capacity() as usize))?)
    }

    fn cuDeviceComputeCapability(major: Out<c_int>, minor: Out<c_int>, device: c_int) {
        let (high, low) = card(device)?.compute;
        major.put(high.into())?;
        minor.put(low.into())
    }

    fn cuDeviceGetAttribute(value: Out<c_int>, attribute: c_int, device: c_int) {
        value.put(self::attribute(card(device)?, attribute, device)?)
    }

    fn cuDeviceGetPCIBusId(id: Out<c_char>, length: c_int, device: c_int) {
        card(device)?;
        id.put_text(&pci_bus_id(device), usize::try_from(length).map_err(|_| Code::INVALID_VALUE)?)
    }

    fn cuDeviceGetByPCIBusId(device: Out<c_int>, id: Text) {
        let id = id.get()?.to_lowercase();
        let count = with(|machine| Ok(machine.devices.len() as c_int))?;
        device.put((0..count).find(|&ordinal| pci_bus_id(ordinal) == id).ok_or(Code::INVALID_DEVICE)?)
    }

    fn cuDeviceCanAccessPeer(possible: Out<c_int>, device: c_int, peer: c_int) {
        card(device)?;
        card(peer)?;
        possible.put((device != peer).into())
    }

    fn cuDeviceGetP2PAttribute(value: Out<c_int>, attribute: c_int, device: c_int, peer: c_int) {
        card(device)?;
        card(peer)?;
        if device == peer {
            return Err(Code::INVALID_DEVICE);
        }
        // Performance rank, access, atomics, arrays.
        value.put(match attribute {
            1 => 0,
            2 | 3 => 1,
            4 => 0,
            _ => return Err(Code::INVALID_VALUE),
        })
    }

    fn cuGetErrorName(code: c_int, text: Out<*const c_char>) {
        error_text(code, text, |(name, _)| name)
    }

    fn cuGetErrorString(code: c_int, text: Out<*const c_char>) {
        error_text(code, text, |(_, text)| text)
    }

    fn cuProfilerStart() {
        Ok(())
    }

    fn cuProfilerStop() {
        Ok(())
    }
}

fn error_text(
    code: c_int,
    text: Out<*const c_char>,
    choose: impl Fn((&'static CStr, &'static CStr)) -> &'static CStr,
) -> Answer {
    match describe(code) {
        Some(both) => text.put(choose(both).as_ptr()),
        None => {
            text.offer(std::ptr::null());
            Err(Code::INVALID_VALUE)
        }
    }
}

fn card(device: c_int) -> Answer<&'static Card> {
    with(|machine| Ok(machine.device(device)?.spec.card))
}

/// Returns the bus of a device. The first device has the highest bus, because NVML counts devices
/// by their bus and the driver counts them by their speed (unless `CUDA_DEVICE_ORDER` selects the
/// bus). A program that confuses the two numbers therefore fails here too.
pub(crate) fn pci_bus(device: c_int) -> c_int {
    MAX_DEVICES as c_int - device
}

pub(crate) fn pci_bus_id(device: c_int) -> String {
    format!("0000:{:02x}:00.0", pci_bus(device))
}

/// Returns the limits that depend on the compute capability: shared memory per multiprocessor in
/// KiB, its maximum per block in KiB, threads per multiprocessor, blocks per multiprocessor.
fn limits(compute: (u8, u8)) -> (c_int, c_int, c_int, c_int) {
    match compute {
        (6, _) => (64, 48, 2048, 32),
        (7, 0) => (96, 96, 2048, 32),
        (7, _) => (64, 64, 1024, 16),
        (8, 0) => (164, 163, 2048, 32),
        (8, 6) => (100, 99, 1536, 16),
        (8, 7) => (164, 163, 1536, 16),
        (8, _) => (100, 99, 1536, 24),
        (9 | 10, _) => (228, 227, 2048, 32),
        (11, _) => (228, 227, 1536, 24),
        _ => (100, 99, 1536, 24),
    }
}

/// Returns a value of `cuDeviceGetAttribute`. Attributes of speed have the values of an H100 for
/// every card. Attributes of capability have the values of the card.
#[rustfmt::skip]
pub(crate) fn attribute(card: &Card, attribute: c_int, device: c_int) -> Answer<c_int> {
    let (shared, shared_block, threads, blocks) = limits(card.compute);
    let since = |major| c_int::from(card.compute.0 >= major);
    let coherent = c_int::from(card.memory.is_coherent());
    // Only a Jetson without coherence lacks it: CUDA for Tegra, "Effective Usage of Unified Memory".
    let concurrent = c_int::from(card.memory != CardMemory::Shared);
    Ok(match attribute {
        1 => 1024,                              // threads per block
        2 | 3 => 1024,                          // block dimensions x, y
        4 => 64,                                // block dimension z
        5 => c_int::MAX,                        // grid dimension x
        6 | 7 => 65_535,                        // grid dimensions y, z
        8 => 48 << 10,                          // shared memory per block
        9 => 64 << 10,                          // constant memory
        10 => 32,                               // warp size
        11 => c_int::MAX,                       // pitch of a copy
        12 | 82 => 65_536,                      // registers per block, per multiprocessor
        13 => 1_980_000,                        // clock, kHz
        14 => 512,                              // texture alignment
        15 => 1,                                // copies overlap
        16 => card.multiprocessors as c_int,
        17 => 0,                                // kernel timeout
        18 => card.memory.is_shared().into(),   // integrated
        19 => 1,                                // maps host memory
        20 => 0,                                // compute mode: default
        21..=29 | 42..=49 | 52..=74 | 77 => 16_384, // sizes of textures and surfaces
        30 => 512,                              // surface alignment
        31 => 1,                                // concurrent kernels
        32 => 1,                                // ECC
        33 => pci_bus(device),                  // PCI bus
        34 | 50 => 0,                           // PCI device and domain
        35 => 0,                                // TCC driver
        36 => 2_619_000,                        // memory clock, kHz
        37 => 5120,                             // bus width, bits
        38 => 50 << 20,                         // L2
        39 => threads,
        40 => 3,                                // copy engines
        41 => 1,                                // unified addressing
        51 => 32,                               // texture pitch alignment
        75 => card.compute.0.into(),
        76 => card.compute.1.into(),
        78..=80 => 1,                           // stream priorities, L1 caches
        81 => shared << 10,
        83 => 1,                                // managed memory
        84 | 85 => 0,                           // multi-GPU board
        86 => coherent,                         // native host atomics
        87 => 2,                                // single to double ratio
        88 => coherent,                         // pageable access
        89 => concurrent,                       // concurrent managed access
        90 => 1,                                // preemption
        91 => 1,                                // registered memory keeps its address
        92..=94 => 0,                           // stream memory operations
        95 => 1,                                // cooperative launch
        96 => 0,                                // over several devices
        97 => shared_block << 10,               // shared memory per block, opt-in
        98 => 0,
        99 => 1,                                // host register
        100 => coherent,                        // pageable access by the host's page table
        101 => 0,                               // direct access to managed memory by the host
        102..=105 => 0,                         // virtual memory management, shareable handles
        106 => blocks,
        107 => 0,
        108 => 32 << 20,                        // persisting L2
        109 => 128 << 20,                       // access policy window
        110 => 0,
        111 => 1 << 10,                         // shared memory that the driver keeps
        112..=114 => 0,
        115 => 1,                               // memory pools
        116..=119 => 0,                         // RDMA, pools that can be exported
        120 => since(9),                        // clusters
        121..=124 => 0,
        125 => 0,                               // IPC events
        126 => 1,                               // memory synchronization domains
        127 => since(9),                        // tensor maps
        128..=160 => 0,                         // fabric, NUMA, multicast, MPS and later
        _ => return Err(Code::INVALID_VALUE),
    })
}
