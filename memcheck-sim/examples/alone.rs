//! The simulated device in a program of its own: a tensor of 4 MiB is allocated and freed on an
//! RTX 4090 that this machine need not have.

use std::ffi::{c_int, c_uint};
use std::ptr;

use memcheck_sim::hooked::{cuMemAlloc_v2, cuMemFree_v2};
use memcheck_sim::{Spec, configure, link, statistics};

// Those that no other crate puts a probe in front of have their C names.
unsafe extern "C" {
    fn cuInit(flags: c_uint) -> c_int;
    fn cuDevicePrimaryCtxRetain(context: *mut *mut std::ffi::c_void, device: c_int) -> c_int;
    fn cuCtxSetCurrent(context: *mut std::ffi::c_void) -> c_int;
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> c_int;
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    link();
    configure(&"rtx4090".parse::<Spec>()?)?;
    let (mut context, mut block) = (ptr::null_mut(), 0);
    let (mut free, mut total) = (0, 0);
    // SAFETY: as with the real driver: each pointer is to a value that lives during the call, and
    // the block is freed once.
    let results = unsafe {
        [
            cuInit(0),
            cuDevicePrimaryCtxRetain(&mut context, 0),
            cuCtxSetCurrent(context),
            cuMemAlloc_v2(&mut block, 4 << 20) as c_int,
            cuMemGetInfo_v2(&mut free, &mut total),
            cuMemFree_v2(block) as c_int,
        ]
    };
    assert_eq!(results, [0; 6], "CUDA_SUCCESS");
    println!("{} of {} bytes were free; {:?}", free, total, statistics());
    Ok(())
}
