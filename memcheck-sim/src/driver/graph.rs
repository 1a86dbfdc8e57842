//! CUDA graphs: the calls that neither take nor release memory. The others are in `hooked`.

use std::ffi::{c_int, c_ulonglong};

use crate::code::Code;
use crate::ffi::{self, In, Out, exports};
use crate::machine::{Handle, with};

/// `CU_GRAPH_MEM_ATTR_*`.
mod attribute {
    pub(super) const USED_CURRENT: i32 = 0;
    pub(super) const USED_HIGH: i32 = 1;
    pub(super) const RESERVED_CURRENT: i32 = 2;
    pub(super) const RESERVED_HIGH: i32 = 3;
}

exports! { ffi::driver;
    fn cuGraphGetNodes(graph: Handle, nodes: Out<Handle>, count: Out<usize>) {
        if !nodes.is_null() {
            crate::refused::refuse("cuGraphGetNodes with an array");
            return Err(Code::NOT_SUPPORTED);
        }
        count.put(with(|machine| machine.count_nodes(graph))?)
    }

    fn cuGraphExecGetFlags(executable: Handle, flags: Out<c_ulonglong>) {
        flags.put(with(|machine| machine.graphs.flags(executable))?)
    }

    fn cuThreadExchangeStreamCaptureMode(mode: Out<c_int>) {
        // Calls that a capture forbids are judged by the mode of the capture alone.
        mode.put(0)
    }

    fn cuDeviceGetGraphMemAttribute(device: c_int, number: c_int, value: Out<u64>) {
        value.put(with(|machine| {
            machine.device(device)?;
            let device = device as usize;
            match number {
                // The simulator caches no memory of graphs, so both pairs are equal.
                attribute::USED_CURRENT | attribute::RESERVED_CURRENT => {
                    Ok(machine.graphs.used(device))
                }
                attribute::USED_HIGH | attribute::RESERVED_HIGH => {
                    Ok(machine.graphs.highest(device))
                }
                _ => Err(Code::INVALID_VALUE),
            }
        })?)
    }

    fn cuDeviceSetGraphMemAttribute(device: c_int, number: c_int, value: In<u64>) {
        let value = value.get()?;
        with(|machine| {
            machine.device(device)?;
            match (number, value) {
                (attribute::USED_HIGH | attribute::RESERVED_HIGH, 0) => {
                    machine.graphs.reset_highest(device as usize);
                    Ok(())
                }
                _ => Err(Code::INVALID_VALUE),
            }
        })
    }

    fn cuGraphInstantiateWithFlags(executable: Out<Handle>, graph: Handle, flags: c_ulonglong) {
        if executable.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        executable.put(with(|machine| machine.instantiate(graph, flags))?)
    }
}
