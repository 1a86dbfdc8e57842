//! Stream-ordered memory pools.

use std::ffi::c_int;

use super::memory::Location;
use crate::code::{Answer, Code};
use crate::ffi::{self, In, Out, exports};
use crate::machine::{Handle, with};
use crate::pools::Pool;

/// The head of `CUmemPoolProps`. The simulator reads only these fields.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Properties {
    allocation: c_int,
    handles: c_int,
    location: Location,
    security: *const std::ffi::c_void,
    /// The most bytes of the pool; 0 is no limit.
    most: usize,
}

/// `CU_MEM_ALLOCATION_TYPE_PINNED`: memory that is not migrated.
const PINNED: c_int = 1;
/// `CU_MEM_LOCATION_TYPE_DEVICE`.
const DEVICE: c_int = 1;

exports! { ffi::driver;
    fn cuDeviceGetDefaultMemPool(pool: Out<Handle>, device: c_int) {
        pool.put(with(|machine| Ok(machine.device(device)?.default_pool))?)
    }

    fn cuDeviceGetMemPool(pool: Out<Handle>, device: c_int) {
        pool.put(with(|machine| Ok(machine.device(device)?.current_pool))?)
    }

    fn cuDeviceSetMemPool(device: c_int, pool: Handle) {
        with(|machine| {
            machine.device(device)?;
            match machine.pools.get(&pool) {
                Some(known) if known.device as c_int == device => {
                    machine.device(device)?.current_pool = pool;
                    Ok(())
                }
                _ => Err(Code::INVALID_VALUE),
            }
        })
    }

    fn cuMemPoolCreate(pool: Out<Handle>, properties: In<Properties>) {
        let properties = properties.get()?;
        if properties.allocation != PINNED {
            return Err(Code::INVALID_VALUE);
        }
        if properties.location.kind != DEVICE || properties.handles != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        pool.make(|machine| {
            machine.device(properties.location.id)?;
            let handle = machine.handle();
            let device = properties.location.id as usize;
            machine.pools.insert(handle, Pool::created(device, properties.most as u64));
            Ok(handle)
        })
    }

    fn cuMemPoolDestroy(pool: Handle) {
        with(|machine| {
            let destroyed = machine.pools.get(&pool).filter(|pool| pool.created);
            let device = destroyed.ok_or(Code::INVALID_VALUE)?.device;
            machine.pools.remove(&pool);
            let device = &mut machine.devices[device];
            if device.current_pool == pool {
                // CUDA documents that the device has its default pool again.
                device.current_pool = device.default_pool;
            }
            Ok(())
        })
    }

    fn cuMemPoolGetAttribute(pool: Handle, attribute: c_int, value: Out<u64>) {
        // The flags are `int`s, and the counters are `cuuint64_t`.
        let flag = with_pool(pool, |pool| Ok(pool.reuse(attribute).copied()))?;
        match flag {
            Some(flag) => value.cast::<c_int>().put(flag),
            None => value.put(with_pool(pool, |pool| pool.counter(attribute))?),
        }
    }

    fn cuMemPoolSetAttribute(pool: Handle, attribute: c_int, value: In<u64>) {
        let is_flag = with_pool(pool, |pool| Ok(pool.reuse(attribute).is_some()))?;
        if is_flag {
            let flag = value.cast::<c_int>().get()?;
            return with_pool(pool, |pool| {
                pool.reuse(attribute).map(|slot| *slot = flag).ok_or(Code::INVALID_VALUE)
            });
        }
        let value = value.get()?;
        with_pool(pool, |pool| pool.set_counter(attribute, value))
    }

    fn cuMemPoolTrimTo(pool: Handle, keep: usize) {
        with_pool(pool, |pool| {
            pool.trim(keep as u64);
            Ok(())
        })
    }

    fn cuMemPoolSetAccess(pool: Handle, _access: *const std::ffi::c_void, _count: usize) {
        with_pool(pool, |_| Ok(()))
    }

    fn cuMemPoolGetAccess(access: Out<c_int>, pool: Handle, location: In<Location>) {
        let location = location.get()?;
        with_pool(pool, |_| Ok(()))?;
        // Every device can read and write every pool.
        access.put(if location.kind == DEVICE { 3 } else { 0 })
    }
}

fn with_pool<T>(pool: Handle, work: impl FnOnce(&mut Pool) -> Answer<T>) -> Answer<T> {
    with(|machine| work(machine.pools.get_mut(&pool).ok_or(Code::INVALID_VALUE)?))
}
