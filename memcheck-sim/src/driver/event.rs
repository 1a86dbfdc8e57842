//! Events: work takes no time, so every event has happened, and the time between two is 0 ms.

use std::ffi::c_uint;

use super::{current, stream};
use crate::code::Answer;
use crate::ffi::{self, Out, exports};
use crate::machine::{Handle, with};

exports! { ffi::driver;
    fn cuEventCreate(event: Out<Handle>, _flags: c_uint) {
        event.make(|machine| {
            let context = current::get();
            machine.context(context)?;
            machine.events.create(context)
        })
    }

    fn cuEventDestroy_v2(event: Handle) {
        with(|machine| machine.events.destroy(event))
    }

    fn cuEventRecord(event: Handle, stream: Handle) {
        record(event, stream)
    }

    fn cuEventRecordWithFlags(event: Handle, stream: Handle, _flags: c_uint) {
        record(event, stream)
    }

    fn cuEventQuery(event: Handle) {
        context_of(event)?;
        with(|machine| machine.graphs.forbid_captured_event(event))
    }

    fn cuEventSynchronize(event: Handle) {
        let context = context_of(event)?;
        with(|machine| {
            machine.graphs.forbid_captured_event(event)?;
            machine.synchronize(context)
        })
    }

    fn cuEventElapsedTime(milliseconds: Out<f32>, start: Handle, end: Handle) {
        context_of(start)?;
        context_of(end)?;
        milliseconds.put(0.0)
    }

    fn cuEventElapsedTime_v2(milliseconds: Out<f32>, start: Handle, end: Handle) {
        context_of(start)?;
        context_of(end)?;
        milliseconds.put(0.0)
    }
}

fn record(event: Handle, stream: Handle) -> Answer {
    context_of(event)?;
    stream::touch(stream)?;
    with(|machine| {
        machine.graphs.record_event(event, stream);
        Ok(())
    })
}

fn context_of(event: Handle) -> Answer<Handle> {
    with(|machine| machine.events.context(event))
}
