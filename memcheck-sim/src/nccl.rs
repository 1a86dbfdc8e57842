//! NCCL: communicators whose ranks are threads or processes, and their collectives.
//!
//! A call outside of a group returns when its result is there, so that a rank waits at the call
//! and not at the next synchronization of its stream. The memory that NCCL allocates for itself
//! (its channels) is not an allocation of the program and is not simulated.

mod hub;
mod message;
mod rank;
mod reduce;

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use message::{RankWork, Request, Status};
use rank::Rank;

use crate::code::{Answer, Code};
use crate::ffi::{self, Out, Symbol, exports};
use crate::handle::Objects;
use crate::machine::{Handle, Machine, with};
use memcheck_kernels::Memory as _;

/// NCCL 2.28.3.
const VERSION: c_int = 22_803;

/// `ncclUniqueId`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Id([u8; hub::ID]);

static RANKS: Mutex<Objects<Arc<Rank>>> = Mutex::new(Objects::new());

/// The result of a call that has been sent to the hub.
struct Pending {
    rank: Arc<Rank>,
    ticket: u64,
    /// The address and the size of the result; `None` if this rank gets none.
    result: Option<(u64, u64)>,
}

#[derive(Default)]
struct Group {
    depth: usize,
    pending: Vec<Pending>,
}

thread_local! {
    /// The calls of this thread since `ncclGroupStart`.
    static GROUP: RefCell<Group> = RefCell::default();
}

/// The buffers of a call.
struct Buffers {
    from: u64,
    to: u64,
    count: usize,
    kind: c_int,
}

exports! { ffi::nccl;
    fn ncclGetVersion(version: Out<c_int>) {
        version.put(VERSION)
    }

    fn ncclGetUniqueId(id: Out<Id>) {
        if id.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        id.put(Id(hub::start().map_err(|_| Code::OPERATING_SYSTEM)?))
    }

    fn ncclCommInitRank(comm: Out<Handle>, size: c_int, id: Id, number: c_int) {
        init(comm, [number, size], &id, None)
    }

    /// A communicator that does not block is simulated as one that does.
    fn ncclCommInitRankConfig(
        comm: Out<Handle>, size: c_int, id: Id, number: c_int, _config: *mut c_void,
    ) {
        init(comm, [number, size], &id, None)
    }

    fn ncclCommInitAll(comms: Out<Handle>, size: c_int, devices: *const c_int) {
        if comms.is_null() || size < 1 {
            return Err(Code::INVALID_VALUE);
        }
        let id = Id(hub::start().map_err(|_| Code::OPERATING_SYSTEM)?);
        let comms = comms.address();
        start_group();
        let joined = (0..size).try_for_each(|number| {
            let device = match devices.is_null() {
                true => number,
                // SAFETY: the caller passes an array of `size` devices.
                false => unsafe { *devices.add(number as usize) },
            };
            // SAFETY: the caller passes an array with room for `size` communicators.
            let comm = unsafe { Out::new(comms.add(number as usize)) };
            init(comm, [number, size], &id, Some(device))
        });
        joined.and(end_group())
    }

    fn ncclCommDestroy(comm: Handle) {
        remove(comm)
    }

    fn ncclCommAbort(comm: Handle) {
        remove(comm)
    }

    fn ncclCommFinalize(comm: Handle) {
        rank(comm).map(drop)
    }

    fn ncclCommGetAsyncError(comm: Handle, error: Out<c_int>) {
        rank(comm)?;
        error.put(0)
    }

    fn ncclCommCount(comm: Handle, count: Out<c_int>) {
        count.put(rank(comm)?.size as c_int)
    }

    fn ncclCommCuDevice(comm: Handle, device: Out<c_int>) {
        device.put(rank(comm)?.device as c_int)
    }

    fn ncclCommUserRank(comm: Handle, number: Out<c_int>) {
        number.put(rank(comm)?.number as c_int)
    }

    fn ncclGroupStart() {
        start_group();
        Ok(())
    }

    fn ncclGroupEnd() {
        end_group()
    }

    fn ncclAllReduce(
        from: u64, to: u64, count: usize, kind: c_int, operation: c_int, comm: Handle,
        stream: Handle,
    ) {
        let buffers = Buffers { from, to, count, kind };
        call(RankWork::AllReduce, &buffers, [operation, 0], comm, stream)
    }

    fn ncclBroadcast(
        from: u64, to: u64, count: usize, kind: c_int, root: c_int, comm: Handle, stream: Handle,
    ) {
        let buffers = Buffers { from, to, count, kind };
        call(RankWork::Broadcast, &buffers, [0, root], comm, stream)
    }

    fn ncclBcast(
        at: u64, count: usize, kind: c_int, root: c_int, comm: Handle, stream: Handle,
    ) {
        let buffers = Buffers { from: at, to: at, count, kind };
        call(RankWork::Broadcast, &buffers, [0, root], comm, stream)
    }

    fn ncclReduce(
        from: u64, to: u64, count: usize, kind: c_int, operation: c_int, root: c_int,
        comm: Handle, stream: Handle,
    ) {
        let buffers = Buffers { from, to, count, kind };
        call(RankWork::Reduce, &buffers, [operation, root], comm, stream)
    }

    fn ncclAllGather(
        from: u64, to: u64, count: usize, kind: c_int, comm: Handle, stream: Handle,
    ) {
        call(RankWork::AllGather, &Buffers { from, to, count, kind }, [0, 0], comm, stream)
    }

    fn ncclReduceScatter(
        from: u64, to: u64, count: usize, kind: c_int, operation: c_int, comm: Handle,
        stream: Handle,
    ) {
        let buffers = Buffers { from, to, count, kind };
        call(RankWork::ReduceScatter, &buffers, [operation, 0], comm, stream)
    }

    fn ncclSend(
        from: u64, count: usize, kind: c_int, peer: c_int, comm: Handle, stream: Handle,
    ) {
        call(RankWork::Send, &Buffers { from, to: 0, count, kind }, [0, peer], comm, stream)
    }

    fn ncclRecv(
        to: u64, count: usize, kind: c_int, peer: c_int, comm: Handle, stream: Handle,
    ) {
        call(RankWork::Receive, &Buffers { from: 0, to, count, kind }, [0, peer], comm, stream)
    }
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ncclGetErrorString(status: c_int) -> *const c_char {
    let text: &CStr = match status {
        0 => c"no error",
        1 => c"unhandled cuda error",
        2 => c"unhandled system error",
        4 => c"invalid argument",
        5 => c"invalid usage",
        6 => c"remote process exited or there was a network error",
        _ => c"internal error",
    };
    text.as_ptr()
}

/// The functions that do not return a status.
pub(crate) static OTHERS: &[Symbol] =
    &[Symbol { name: "ncclGetErrorString", address: ncclGetErrorString as *const () }];

/// Joins a communicator with a device, or with that of the thread's current context.
fn init(comm: Out<Handle>, numbers: [c_int; 2], id: &Id, device: Option<c_int>) -> Answer {
    if comm.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    let [number, size] = numbers.map(|number| u64::try_from(number).ok());
    let (Some(number), Some(size)) = (number, size) else { return Err(Code::INVALID_VALUE) };
    if number >= size {
        return Err(Code::INVALID_VALUE);
    }
    let context = match device {
        Some(device) => with(|machine| machine.retain_primary(device))?,
        None => crate::cudart::context()?,
    };
    let (device, handle) = with(|machine| {
        let device = machine.context(context)?.device;
        machine.schedule.library()?;
        Ok((device, machine.handle()))
    })?;
    let joined = Rank::join(&id.0, [number, size], (context, device));
    let (rank, ticket) = joined.map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => Code::INVALID_VALUE,
        _ => Code::OPERATING_SYSTEM,
    })?;
    let rank = Arc::new(rank);
    ranks().insert(handle, Arc::clone(&rank));
    comm.put(handle)?;
    finish_or_queue(Pending { rank, ticket, result: None })
}

fn ranks() -> std::sync::MutexGuard<'static, Objects<Arc<Rank>>> {
    RANKS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn rank(comm: Handle) -> Answer<Arc<Rank>> {
    ranks().get(&comm).cloned().ok_or(Code::INVALID_VALUE)
}

fn remove(comm: Handle) -> Answer {
    let removed = ranks().remove(&comm);
    removed.map(drop).ok_or(Code::INVALID_VALUE)
}

fn start_group() {
    GROUP.with_borrow_mut(|group| group.depth += 1);
}

/// Waits for the calls of the group if it is the outermost one.
fn end_group() -> Answer {
    let pending = GROUP.with_borrow_mut(|group| {
        group.depth = group.depth.checked_sub(1)?;
        Some(if group.depth == 0 { std::mem::take(&mut group.pending) } else { Vec::new() })
    });
    // All of them end, also after an error.
    let all = pending.ok_or(Code::INVALID_USAGE)?;
    all.into_iter().map(Pending::finish).fold(Ok(()), Answer::and)
}

/// Sends a call to the hub. `operation` and `peer` are the reduction, and the root or the other
/// rank.
fn call(
    work: RankWork,
    buffers: &Buffers,
    [operation, peer]: [c_int; 2],
    comm: Handle,
    stream: Handle,
) -> Answer {
    let rank = rank(comm)?;
    let number = |number: c_int| u64::try_from(number).map_err(|_| Code::INVALID_VALUE);
    let (kind, operation, peer) = (number(buffers.kind)?, number(operation)?, number(peer)?);
    let width = reduce::width(kind).ok_or(Code::INVALID_VALUE)?;
    if operation > 4 || peer >= rank.size {
        return Err(Code::INVALID_VALUE);
    }
    let bytes = |factor: u64| {
        let count = (buffers.count as u64).checked_mul(width);
        count.and_then(|bytes| bytes.checked_mul(factor)).ok_or(Code::INVALID_VALUE)
    };
    let one = bytes(1)?;
    let is_root = rank.number == peer;
    // The bytes that this rank contributes, and those that it gets.
    let (sent, received) = match work {
        RankWork::AllGather => (one, Some(bytes(rank.size)?)),
        RankWork::ReduceScatter => (bytes(rank.size)?, Some(one)),
        RankWork::Reduce => (one, is_root.then_some(one)),
        RankWork::Send => (one, None),
        _ => (one, Some(one)),
    };
    let reads = match work {
        RankWork::Broadcast => is_root,
        RankWork::Receive => false,
        _ => true,
    };
    let data = with(|machine| {
        machine.stream_context(stream, rank.context)?;
        if machine.graphs.capture_of(stream).is_some() {
            crate::refused::refuse("a collective operation of NCCL in a CUDA graph");
        }
        machine.graphs.forbid_wait(stream)?;
        machine.touch()?;
        machine.launched();
        Ok(if reads { known_bytes(machine, buffers.from, sent) } else { None })
    })?;
    let request = Request { ticket: 0, work, kind, operation, peer, length: sent, data };
    let ticket = rank.send(request).map_err(|_| Code::REMOTE)?;
    let result = received.map(|bytes| (buffers.to, bytes));
    finish_or_queue(Pending { rank, ticket, result })
}

/// Reads the contribution of a rank; `None` if it is unknown, or too large to be computed with.
fn known_bytes(machine: &Machine, address: u64, length: u64) -> Option<Vec<u8>> {
    if !machine.values.permits(length) {
        return None;
    }
    machine.known_bytes(address, length)
}

fn finish_or_queue(pending: Pending) -> Answer {
    let ungrouped = GROUP.with_borrow_mut(|group| {
        if group.depth == 0 {
            return Some(pending);
        }
        group.pending.push(pending);
        None
    });
    ungrouped.map_or(Ok(()), Pending::finish)
}

impl Pending {
    fn finish(self) -> Answer {
        let reply = self.rank.wait(self.ticket).map_err(|_| Code::REMOTE)?;
        match reply.status {
            Status::Done => {}
            Status::Mismatch => return Err(Code::INVALID_USAGE),
            Status::Gone => return Err(Code::REMOTE),
        }
        let Some((to, length)) = self.result else { return Ok(()) };
        with(|machine| {
            match reply.data {
                Some(data) if data.len() as u64 == length && machine.values.charge(length) => {
                    machine.write_bytes(to, &data);
                }
                _ => machine.overwritten(to, length),
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests;
