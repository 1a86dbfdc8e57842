//! Tests that NVML and the driver identify the same device on the same machine.

use std::ffi::{CStr, CString};

use super::*;
use crate::driver::tests::{context, machine, out};
use crate::hooked::{cuMemAlloc_v2, cuMemFree_v2};
use crate::spec::FAULTS_VARIABLE;

unsafe extern "C" {
    fn cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: c_int) -> c_int;
    fn cuDeviceGetPCIBusId(id: *mut c_char, length: c_int, device: c_int) -> c_int;
    fn cuDriverGetVersion(version: *mut c_int) -> c_int;
}

/// The UUID that the driver returns for a device, in NVML's notation.
fn uuid(device: c_int) -> CString {
    let mut uuid = [0; 16];
    // SAFETY: the result pointer points to a local.
    assert_eq!(unsafe { cuDeviceGetUuid_v2(&mut uuid, device) }, 0);
    let mut digits: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    for group in [20, 16, 12, 8] {
        digits.insert(group, '-');
    }
    CString::new(format!("GPU-{digits}")).unwrap()
}

fn handle(uuid: &CStr) -> Result<Handle, c_int> {
    let mut handle = 0;
    // SAFETY: the text is zero-terminated, and the result pointer points to a local.
    let code = unsafe {
        let text = std::mem::transmute::<*const c_char, Text>(uuid.as_ptr());
        nvmlDeviceGetHandleByUUID(text, out(&mut handle))
    };
    if code == 0 { Ok(handle) } else { Err(code) }
}

#[test]
fn nvml_and_the_driver_report_the_same_uuid_and_bus() {
    machine();
    for device in 0..4 {
        let found = handle(&uuid(device)).unwrap();
        let mut text = [0; 96];
        // SAFETY: the result pointers point to locals of the given lengths.
        unsafe {
            assert_eq!(nvmlDeviceGetUUID(found, out(&mut text[0]), 96), 0);
            assert_eq!(CStr::from_ptr(text.as_ptr()), uuid(device).as_c_str());
            assert_eq!(cuDeviceGetPCIBusId(text.as_mut_ptr(), 96, device), 0);
            let mut info = std::mem::zeroed();
            assert_eq!(nvmlDeviceGetPciInfo_v3(found, out(&mut info)), 0);
            assert_eq!(CStr::from_ptr(info.legacy.as_ptr().cast()), CStr::from_ptr(text.as_ptr()));
        }
    }
    assert_eq!(handle(c"GPU-00000000-0000-0000-0000-000000000000"), Err(6));
}

#[test]
fn nvml_orders_devices_by_bus_and_the_driver_does_not() {
    machine();
    let mut last_bus = 0;
    for index in 0..4 {
        let (mut found, mut back) = (0, 9);
        // SAFETY: the result pointers point to locals.
        unsafe {
            assert_eq!(nvmlDeviceGetHandleByIndex_v2(index, out(&mut found)), 0);
            assert_eq!(nvmlDeviceGetIndex(found, out(&mut back)), 0);
            assert_eq!(back, index);
            let mut info = std::mem::zeroed();
            assert_eq!(nvmlDeviceGetPciInfo_v3(found, out(&mut info)), 0);
            assert!(info.bus > last_bus);
            last_bus = info.bus;
        }
        assert_eq!(Ok(found), handle(&uuid(3 - index as c_int)));
    }
    // SAFETY: the result pointer points to a local.
    assert_eq!(unsafe { nvmlDeviceGetHandleByIndex_v2(4, out(&mut 0)) }, 2);
}

#[test]
fn used_memory_grows_on_the_device_of_an_allocation() {
    const BYTES: u64 = 64 << 20;
    // Other tests allocate on the devices at the same time, but always less than this.
    let used = |device| {
        let mut memory = MemoryV1 { total: 0, free: 0, used: 0 };
        // SAFETY: the result pointer points to a local.
        let code =
            unsafe { nvmlDeviceGetMemoryInfo(handle(&uuid(device)).unwrap(), out(&mut memory)) };
        assert_eq!(code, 0);
        memory.used
    };
    let mut address = 0;
    context(0);
    context(1);
    let before = (used(0), used(1));
    // SAFETY: the result pointer points to a local.
    unsafe {
        assert_eq!(cuMemAlloc_v2(&mut address, BYTES as usize), 0);
        assert!(used(1) >= before.1 + BYTES / 2 && used(0) < before.0 + BYTES / 2);
        assert_eq!(cuMemFree_v2(address), 0);
    }
    assert!(used(1) < before.1 + BYTES / 2);
}

#[test]
fn a_slice_has_another_uuid_than_its_card() {
    machine();
    // None of these devices is a slice, so the MIG UUID of the first matches no device.
    let text = crate::uuid::uuid_text(0, true);
    assert_eq!(text, "MIG-6d656d63-6865-636b-2d6d-696700000000");
    assert_eq!(handle(&CString::new(text).unwrap()), Err(6));
    let whole = handle(&uuid(0)).unwrap();
    let (mut current, mut pending, mut slice) = (9, 9, 9);
    // SAFETY: the result pointers point to locals.
    unsafe {
        assert_eq!(nvmlDeviceGetMigMode(whole, out(&mut current), out(&mut pending)), 3);
        assert_eq!(nvmlDeviceIsMigDeviceHandle(whole, out(&mut slice)), 0);
        assert_eq!(slice, 0);
        assert_eq!(nvmlDeviceGetMigDeviceHandleByIndex(whole, 0, out(&mut 0)), 6);
    }
}

#[test]
fn every_api_reports_the_driver_version_of_the_fault() {
    const NAME: &str = "nvml::tests::every_api_reports_the_driver_version_of_the_fault";
    // The machine is that of the process, so this test runs again in a process of its own.
    if std::env::var_os(FAULTS_VARIABLE).is_none() {
        let mut test = std::process::Command::new(std::env::current_exe().unwrap());
        let ran = test.args([NAME, "--exact"]).env(FAULTS_VARIABLE, "driver=12080").output();
        let text = String::from_utf8(ran.unwrap().stdout).unwrap();
        assert!(text.contains("1 passed"), "{text}");
        return;
    }
    let mut versions = [0; 4];
    let [driver, runtime, nvml, nvml_v2] = &mut versions;
    // SAFETY: the result pointers point to locals.
    let codes = unsafe {
        [
            cuDriverGetVersion(driver),
            crate::cudart::cudaDriverGetVersion(out(runtime)),
            nvmlSystemGetCudaDriverVersion(out(nvml)),
            nvmlSystemGetCudaDriverVersion_v2(out(nvml_v2)),
        ]
    };
    assert_eq!((codes, versions), ([0; 4], [12_080; 4]));
}
