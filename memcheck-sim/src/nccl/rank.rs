//! A rank: its connection to the hub, and the calls that wait for a reply.

use std::io::{self, BufReader};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use litemap::LiteMap;

use super::hub;
use super::message::{RankWork, Reply, Request};
use crate::machine::Handle;

#[derive(Debug)]
pub(super) struct Rank {
    pub(super) number: u64,
    pub(super) size: u64,
    pub(super) context: Handle,
    pub(super) device: usize,
    write: Mutex<UnixStream>,
    read: Mutex<Replies>,
    tickets: AtomicU64,
}

#[derive(Debug)]
struct Replies {
    stream: BufReader<UnixStream>,
    /// Replies that came before they were waited for.
    early: LiteMap<u64, Reply>,
}

impl Rank {
    /// Connects to the hub of an id. The ticket is that of the reply that comes when all ranks have
    /// joined.
    pub(super) fn join(
        id: &[u8; hub::ID],
        [number, size]: [u64; 2],
        (context, device): (Handle, usize),
    ) -> io::Result<(Self, u64)> {
        let stream = hub::connect(id)?;
        let read = Replies { stream: BufReader::new(stream.try_clone()?), early: LiteMap::new() };
        let (write, read) = (Mutex::new(stream), Mutex::new(read));
        let rank = Self { number, size, context, device, write, read, tickets: AtomicU64::new(0) };
        let join = Request {
            ticket: 0,
            work: RankWork::Join,
            kind: 0,
            operation: 0,
            peer: number,
            length: size,
            data: None,
        };
        let ticket = rank.send(join)?;
        Ok((rank, ticket))
    }

    /// Sends a request under the ticket that this function returns.
    pub(super) fn send(&self, request: Request) -> io::Result<u64> {
        let ticket = self.tickets.fetch_add(1, Ordering::Relaxed);
        let mut stream = self.write.lock().unwrap_or_else(PoisonError::into_inner);
        Request { ticket, ..request }.write(&mut *stream)?;
        Ok(ticket)
    }

    /// Waits for the reply to a request.
    pub(super) fn wait(&self, ticket: u64) -> io::Result<Reply> {
        let mut replies = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(reply) = replies.early.remove(&ticket) {
                return Ok(reply);
            }
            let reply = Reply::read(&mut replies.stream)?;
            replies.early.insert(reply.ticket, reply);
        }
    }
}

impl Drop for Rank {
    fn drop(&mut self) {
        let stream = self.write.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = stream.shutdown(std::net::Shutdown::Both);
    }
}
