//! Contexts: primary contexts, which are counted, and others.

use std::ffi::{c_int, c_uint, c_ulonglong, c_void};

use super::current;
use super::device::VERSION;
use crate::code::{Answer, Code};
use crate::ffi::{self, Out, exports};
use crate::machine::{Context, Handle, with};

exports! { ffi::driver;
    fn cuDevicePrimaryCtxRetain(context: Out<Handle>, device: c_int) {
        context.make(|machine| machine.retain_primary(device))
    }

    fn cuDevicePrimaryCtxRelease_v2(device: c_int) {
        with(|machine| machine.release_primary(device))
    }

    fn cuDevicePrimaryCtxReset_v2(device: c_int) {
        with(|machine| {
            let target = machine.device(device)?;
            // A reset destroys the context, however often it is retained.
            target.primary_retained = 0;
            let primary = target.primary;
            match machine.contexts.contains_key(&primary) {
                true => machine.destroy_context(primary),
                false => Ok(()),
            }
        })
    }

    fn cuDevicePrimaryCtxGetState(device: c_int, flags: Out<c_uint>, active: Out<c_int>) {
        let (set, retained) = with(|machine| {
            machine.device(device).map(|device| (device.primary_flags, device.primary_retained))
        })?;
        flags.put(set)?;
        active.put((retained > 0).into())
    }

    fn cuDevicePrimaryCtxSetFlags_v2(device: c_int, flags: c_uint) {
        with(|machine| {
            machine.device(device)?.primary_flags = flags;
            Ok(())
        })
    }

    fn cuCtxCreate_v2(context: Out<Handle>, flags: c_uint, device: c_int) {
        create(context, flags, device)
    }

    fn cuCtxCreate_v3(context: Out<Handle>, affinity: *mut c_void, count: c_int, flags: c_uint, device: c_int) {
        reject_parameters(affinity, count)?;
        create(context, flags, device)
    }

    fn cuCtxCreate_v4(context: Out<Handle>, parameters: *mut c_void, flags: c_uint, device: c_int) {
        reject_parameters(parameters, 1)?;
        create(context, flags, device)
    }

    fn cuCtxDestroy_v2(context: Handle) {
        with(|machine| {
            // A primary context ends with its last release.
            if machine.devices.iter().any(|device| device.primary == context) {
                return Err(Code::INVALID_CONTEXT);
            }
            machine.destroy_context(context)
        })?;
        // CUDA documents that a context that is destroyed is popped from the thread's stack.
        if current::get() == context { current::pop().map(drop) } else { Ok(()) }
    }

    fn cuCtxGetCurrent(context: Out<Handle>) {
        context.put(current::get())
    }

    fn cuCtxSetCurrent(context: Handle) {
        if context != 0 {
            with(|machine| machine.context(context).map(drop))?;
        }
        current::set(context)
    }

    fn cuCtxPushCurrent_v2(context: Handle) {
        with(|machine| machine.context(context).map(drop))?;
        current::push(context)
    }

    fn cuCtxPopCurrent_v2(context: Out<Handle>) {
        let popped = current::pop()?;
        context.offer(popped);
        Ok(())
    }

    fn cuCtxGetDevice(device: Out<c_int>) {
        device.put(with_current(|context| context.device as c_int)?)
    }

    fn cuCtxGetDevice_v2(device: Out<c_int>, context: Handle) {
        let context = if context == 0 { current::get() } else { context };
        device.put(with(|machine| Ok(machine.context(context)?.device as c_int))?)
    }

    fn cuCtxGetFlags(flags: Out<c_uint>) {
        flags.put(with_current(|context| context.flags)?)
    }

    fn cuCtxSetFlags(flags: c_uint) {
        with_current(|context| context.flags = flags)
    }

    fn cuCtxGetId(context: Handle, id: Out<c_ulonglong>) {
        let context = if context == 0 { current::get() } else { context };
        with(|machine| machine.context(context).map(drop))?;
        id.put(context)
    }

    fn cuCtxGetApiVersion(context: Handle, version: Out<c_uint>) {
        let context = if context == 0 { current::get() } else { context };
        with(|machine| machine.context(context).map(drop))?;
        version.put(VERSION as c_uint)
    }

    fn cuCtxSynchronize() {
        synchronize(current::get())
    }

    fn cuCtxSynchronize_v2(context: Handle) {
        synchronize(context)
    }

    fn cuCtxGetStreamPriorityRange(least: Out<c_int>, greatest: Out<c_int>) {
        with_current(|_| ())?;
        // The smaller number is the higher priority.
        least.offer(0);
        greatest.offer(-5);
        Ok(())
    }

    fn cuCtxGetCacheConfig(config: Out<c_int>) {
        with_current(|_| ())?;
        config.put(0)
    }

    fn cuCtxSetCacheConfig(_config: c_int) {
        with_current(|_| ())
    }

    fn cuCtxGetLimit(value: Out<usize>, limit: c_int) {
        with_current(|_| ())?;
        // The driver's defaults: stack, printf, heap, and others.
        value.put(match limit {
            0 => 1024,
            1 => 1 << 20,
            2 => 8 << 20,
            3 => 2,
            4 => 2048,
            5 => 128,
            6 => 0,
            // CUDA_ERROR_UNSUPPORTED_LIMIT
            _ => return Err(Code(215)),
        })
    }

    fn cuCtxSetLimit(limit: c_int, _value: usize) {
        with_current(|_| ())?;
        // CUDA_ERROR_UNSUPPORTED_LIMIT
        if (0..=6).contains(&limit) { Ok(()) } else { Err(Code(215)) }
    }

    fn cuCtxEnablePeerAccess(peer: Handle, flags: c_uint) {
        with(|machine| {
            let other = machine.context(peer)?.device;
            let own = machine.context(current::get())?;
            if own.device == other || flags != 0 {
                return Err(Code::INVALID_VALUE);
            }
            if own.peers.contains(&peer) {
                return Err(Code::PEER_ACCESS_ALREADY_ENABLED);
            }
            own.peers.push(peer);
            Ok(())
        })
    }

    fn cuCtxDisablePeerAccess(peer: Handle) {
        with(|machine| {
            machine.context(peer)?;
            let peers = &mut machine.context(current::get())?.peers;
            let index = peers.iter().position(|&known| known == peer);
            peers.swap_remove(index.ok_or(Code::PEER_ACCESS_NOT_ENABLED)?);
            Ok(())
        })
    }
}

/// Waits for all streams of a context. A capture can forbid that.
fn synchronize(context: Handle) -> Answer {
    with(|machine| {
        machine.graphs.forbid_unsafe()?;
        machine.synchronize(context)
    })
}

fn create(context: Out<Handle>, flags: c_uint, device: c_int) -> Answer {
    context.fill(|| {
        let handle = with(|machine| machine.create_context(device, flags))?;
        // CUDA documents that a new context is the current one.
        current::push(handle)?;
        Ok(handle)
    })
}

/// Refuses execution affinity and graphics interoperability, which are not simulated.
fn reject_parameters(parameters: *mut c_void, count: c_int) -> Answer {
    if parameters.is_null() || count == 0 { Ok(()) } else { Err(Code::NOT_SUPPORTED) }
}

fn with_current<T>(work: impl FnOnce(&mut Context) -> T) -> Answer<T> {
    with(|machine| machine.context(current::get()).map(work))
}
