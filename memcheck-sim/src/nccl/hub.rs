//! The hub of a communicator: a thread that all ranks connect to, in the process that made the id.
//!
//! Ranks are threads of one process or processes, and both connect by a socket. A collective is
//! complete when each rank has called it.

use std::collections::VecDeque;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use litemap::LiteMap;

use super::message::{RankWork, Reply, Request, Status};
use super::reduce::reduce;

/// Bytes of `ncclUniqueId`.
pub(super) const ID: usize = 128;

/// The beginning of every id. It is also that of the socket's name, which belongs to no file.
const PREFIX: &str = "memcheck-sim-nccl-";

/// Starts a hub, and returns the id of its communicator.
pub(super) fn start() -> io::Result<[u8; ID]> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    // A name that other processes cannot guess.
    let random = RandomState::new().hash_one(number);
    let name = format!("{PREFIX}{}-{number}-{random:016x}", std::process::id());
    let listener = UnixListener::bind_addr(&address(name.as_bytes())?)?;
    let hub = Arc::new(Mutex::new(Hub::default()));
    thread::Builder::new().name("nccl".to_owned()).spawn(move || {
        let _quiet = memcheck_limits::quiet::enter();
        while let Ok((stream, _)) = listener.accept() {
            serve(stream, &hub);
            // No other rank can join then.
            if locked(&hub).is_complete() {
                break;
            }
        }
    })?;
    let mut id = [0; ID];
    id[..name.len()].copy_from_slice(name.as_bytes());
    Ok(id)
}

/// The address of this name, which belongs to no file.
#[cfg(target_os = "linux")]
fn address(name: &[u8]) -> io::Result<SocketAddr> {
    <SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(name)
}

#[cfg(not(target_os = "linux"))]
fn address(_: &[u8]) -> io::Result<SocketAddr> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "NCCL is simulated on Linux only"))
}

/// Connects to the hub of an id.
pub(super) fn connect(id: &[u8; ID]) -> io::Result<UnixStream> {
    let length = id.iter().position(|&byte| byte == 0).unwrap_or(ID);
    let name = &id[..length];
    if !name.starts_with(PREFIX.as_bytes()) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    UnixStream::connect_addr(&address(name)?)
}

/// Waits for the rank that has connected to join, and starts its threads. One of them writes, so
/// that the other one never has to wait for the rank to read.
fn serve(mut stream: UnixStream, hub: &Arc<Mutex<Hub>>) {
    let Ok(join) = Request::read(&mut stream) else { return };
    let Ok(mut write) = stream.try_clone() else { return };
    let (replies, queue) = mpsc::channel::<Reply>();
    let rank = join.peer as usize;
    let has_joined = locked(hub).join(&join, replies);
    let _writer = thread::spawn(move || {
        let _quiet = memcheck_limits::quiet::enter();
        while let Ok(reply) = queue.recv() {
            if reply.write(&mut write).is_err() {
                break;
            }
        }
    });
    if !has_joined {
        return;
    }
    let hub = Arc::clone(hub);
    let _reader = thread::spawn(move || {
        let _quiet = memcheck_limits::quiet::enter();
        while let Ok(request) = Request::read(&mut stream) {
            locked(&hub).take(rank, request);
        }
        locked(&hub).leave(rank);
    });
}

fn locked(hub: &Mutex<Hub>) -> std::sync::MutexGuard<'_, Hub> {
    hub.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The ranks of a communicator.
#[derive(Default)]
struct Hub {
    size: usize,
    ranks: LiteMap<usize, JoinedRank>,
    /// Messages from a rank (the first number) to another one that has not received them yet.
    sent: LiteMap<(usize, usize), VecDeque<Request>>,
    /// Receipts that wait, by sender and receiver.
    awaited: LiteMap<(usize, usize), VecDeque<Request>>,
}

struct JoinedRank {
    replies: Sender<Reply>,
    /// The ticket of its `Join`.
    joined: u64,
    collectives: VecDeque<Request>,
    has_left: bool,
}

impl Hub {
    fn is_complete(&self) -> bool {
        self.size > 0 && self.ranks.len() == self.size
    }

    /// Adds a rank. Returns false if it does not belong to this communicator.
    fn join(&mut self, join: &Request, replies: Sender<Reply>) -> bool {
        let (rank, size) = (join.peer as usize, join.length as usize);
        let is_first = self.ranks.is_empty();
        let fits = join.work == RankWork::Join && rank < size && (is_first || size == self.size);
        if !fits || self.ranks.contains_key(&rank) {
            let _ = replies.send(failed(join.ticket, Status::Mismatch));
            return false;
        }
        self.size = size;
        let joined = join.ticket;
        let new = JoinedRank { replies, joined, collectives: VecDeque::new(), has_left: false };
        self.ranks.insert(rank, new);
        if self.is_complete() {
            for rank in self.ranks.values() {
                let done =
                    Reply { ticket: rank.joined, status: Status::Done, length: 0, data: None };
                let _ = rank.replies.send(done);
            }
        }
        true
    }

    fn reply(&self, rank: usize, reply: Reply) {
        if let Some(rank) = self.ranks.get(&rank) {
            let _ = rank.replies.send(reply);
        }
    }

    fn has_left(&self, rank: usize) -> bool {
        self.ranks.get(&rank).is_none_or(|rank| rank.has_left)
    }

    fn take(&mut self, rank: usize, request: Request) {
        let peer = request.peer as usize;
        match request.work {
            RankWork::Join => self.reply(rank, failed(request.ticket, Status::Mismatch)),
            RankWork::Send | RankWork::Receive if peer >= self.size => {
                self.reply(rank, failed(request.ticket, Status::Mismatch));
            }
            RankWork::Send => {
                // A sender does not wait.
                let done =
                    Reply { ticket: request.ticket, status: Status::Done, length: 0, data: None };
                self.reply(rank, done);
                self.sent.entry((rank, peer)).or_default().push_back(request);
                self.deliver(rank, peer);
            }
            RankWork::Receive => {
                self.awaited.entry((peer, rank)).or_default().push_back(request);
                self.deliver(peer, rank);
            }
            _ => {
                if let Some(rank) = self.ranks.get_mut(&rank) {
                    rank.collectives.push_back(request);
                }
                self.advance();
            }
        }
    }

    /// Completes the receipts of `to` from `from`.
    fn deliver(&mut self, from: usize, to: usize) {
        let pair = (from, to);
        let has_left = self.has_left(from);
        loop {
            let Some(receipts) = self.awaited.get_mut(&pair).filter(|all| !all.is_empty()) else {
                return;
            };
            let reply = match self.sent.get_mut(&pair).and_then(VecDeque::pop_front) {
                Some(sent) => {
                    let Some(receipt) = receipts.pop_front() else { return };
                    match (sent.length, sent.kind) == (receipt.length, receipt.kind) {
                        true => Reply {
                            ticket: receipt.ticket,
                            status: Status::Done,
                            length: sent.length,
                            data: sent.data,
                        },
                        false => failed(receipt.ticket, Status::Mismatch),
                    }
                }
                None if has_left => {
                    let Some(receipt) = receipts.pop_front() else { return };
                    failed(receipt.ticket, Status::Gone)
                }
                None => return,
            };
            self.reply(to, reply);
        }
    }

    /// Completes the collectives that each rank has called, and fails those that a rank can no
    /// longer call.
    fn advance(&mut self) {
        if !self.is_complete() {
            return;
        }
        while self.ranks.values().all(|rank| !rank.collectives.is_empty()) {
            let ranks = self.ranks.iter_mut();
            let requests: Vec<Request> =
                ranks.filter_map(|(_, rank)| rank.collectives.pop_front()).collect();
            for (rank, reply) in complete(requests).into_iter().enumerate() {
                self.reply(rank, reply);
            }
        }
        if self.ranks.values().any(|rank| rank.has_left && rank.collectives.is_empty()) {
            for (_, rank) in self.ranks.iter_mut() {
                for request in std::mem::take(&mut rank.collectives) {
                    let _ = rank.replies.send(failed(request.ticket, Status::Gone));
                }
            }
        }
    }

    fn leave(&mut self, rank: usize) {
        if let Some(rank) = self.ranks.get_mut(&rank) {
            rank.has_left = true;
        }
        self.advance();
        for to in 0..self.size {
            self.deliver(rank, to);
        }
    }
}

fn failed(ticket: u64, status: Status) -> Reply {
    Reply { ticket, status, length: 0, data: None }
}

/// Computes the replies to one collective, in the order of the ranks.
fn complete(requests: Vec<Request>) -> Vec<Reply> {
    let key = |request: &Request| {
        let Request { work, kind, operation, peer, length, .. } = *request;
        (work, kind, operation, peer, length)
    };
    let tickets: Vec<u64> = requests.iter().map(|request| request.ticket).collect();
    let size = tickets.len() as u64;
    let Some(first) = requests.first().map(key) else { return Vec::new() };
    let (work, kind, operation, root, length) = first;
    let is_valid = match work {
        RankWork::Broadcast | RankWork::Reduce => root < size,
        RankWork::ReduceScatter => length.is_multiple_of(size),
        _ => true,
    };
    if !is_valid || requests.iter().any(|request| key(request) != first) {
        return tickets.into_iter().map(|ticket| failed(ticket, Status::Mismatch)).collect();
    }
    let mut parts: Vec<Option<Vec<u8>>> = requests.into_iter().map(|it| it.data).collect();
    let all = || -> Option<Vec<Vec<u8>>> { parts.iter().cloned().collect() };
    let reduced = || reduce(kind, operation, &all()?);
    // The bytes that each rank gets, and their values.
    let results: Vec<(u64, Option<Vec<u8>>)> = match work {
        RankWork::AllReduce => {
            let sum = reduced();
            (0..size).map(|_| (length, sum.clone())).collect()
        }
        RankWork::Reduce => {
            let mut sum = Some(reduced());
            let mut of_rank = |rank| match rank == root {
                true => (length, sum.take().flatten()),
                false => (0, None),
            };
            (0..size).map(&mut of_rank).collect()
        }
        RankWork::AllGather => {
            let whole = all().map(|all| all.concat());
            (0..size).map(|_| (length * size, whole.clone())).collect()
        }
        RankWork::ReduceScatter => {
            let (sum, part) = (reduced(), length / size);
            let of_rank = |rank: u64| {
                let first = (rank * part) as usize;
                (part, sum.as_ref().map(|sum| sum[first..][..part as usize].to_vec()))
            };
            (0..size).map(of_rank).collect()
        }
        _ => {
            let data = parts[root as usize].take();
            (0..size).map(|_| (length, data.clone())).collect()
        }
    };
    let replies = tickets.into_iter().zip(results);
    replies
        .map(|(ticket, (length, data))| Reply { ticket, status: Status::Done, length, data })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(work: RankWork, peer: u64, data: Option<Vec<u8>>) -> Request {
        let length = data.as_ref().map_or(2, |data| data.len() as u64);
        Request { ticket: peer, work, kind: 1, operation: 0, peer, length, data }
    }

    fn values(
        work: RankWork,
        root: u64,
        parts: [Option<Vec<u8>>; 2],
    ) -> Vec<(u64, Option<Vec<u8>>)> {
        let replies = complete(parts.map(|part| request(work, root, part)).into());
        assert!(replies.iter().all(|reply| reply.status == Status::Done), "{replies:?}");
        replies.into_iter().map(|reply| (reply.length, reply.data)).collect()
    }

    #[test]
    fn each_collective_gives_each_rank_its_part() {
        let parts = || [Some(vec![1, 2]), Some(vec![10, 20])];
        let both = |data: &[u8]| vec![(data.len() as u64, Some(data.to_vec())); 2];
        assert_eq!(values(RankWork::AllReduce, 0, parts()), both(&[11, 22]));
        assert_eq!(values(RankWork::Broadcast, 1, parts()), both(&[10, 20]));
        assert_eq!(values(RankWork::AllGather, 0, parts()), both(&[1, 2, 10, 20]));
        let scattered = [(1, Some(vec![11])), (1, Some(vec![22]))];
        assert_eq!(values(RankWork::ReduceScatter, 0, parts()), scattered);
        let reduced = [(0, None), (2, Some(vec![11, 22]))];
        assert_eq!(values(RankWork::Reduce, 1, parts()), reduced);
    }

    #[test]
    fn a_result_is_unknown_if_a_contribution_that_it_needs_is_unknown() {
        let parts = || [Some(vec![1, 2]), None];
        assert_eq!(values(RankWork::AllReduce, 0, parts()), [(2, None), (2, None)]);
        assert_eq!(values(RankWork::AllGather, 0, parts()), [(4, None), (4, None)]);
        let of_first = (2, Some(vec![1, 2]));
        assert_eq!(values(RankWork::Broadcast, 0, parts()), [of_first.clone(), of_first]);
    }

    #[test]
    fn ranks_that_call_different_functions_all_fail() {
        let one = request(RankWork::AllReduce, 0, Some(vec![1, 2]));
        for other in [
            request(RankWork::AllGather, 0, Some(vec![1, 2])),
            request(RankWork::AllReduce, 0, Some(vec![1])),
        ] {
            let replies = complete(vec![one.clone(), other]);
            assert!(replies.iter().all(|reply| reply.status == Status::Mismatch));
        }
        let replies = complete(vec![request(RankWork::Broadcast, 2, None); 2]);
        assert!(replies.iter().all(|reply| reply.status == Status::Mismatch));
    }
}
