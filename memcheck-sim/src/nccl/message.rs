//! The messages between ranks and the hub of a communicator: numbers of 64 bits, then bytes.
//!
//! Both ends are this version of the simulator, so that the form needs no version.

use std::io::{self, Read, Write};

/// The longest message in bytes. A longer one is not from a simulator.
const MOST: u64 = 1 << 30;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RankWork {
    /// A rank joins: `peer` is its number, and `length` the number of ranks.
    Join,
    AllReduce,
    Broadcast,
    Reduce,
    AllGather,
    ReduceScatter,
    Send,
    Receive,
}

const WORKS: [RankWork; 8] = [
    RankWork::Join,
    RankWork::AllReduce,
    RankWork::Broadcast,
    RankWork::Reduce,
    RankWork::AllGather,
    RankWork::ReduceScatter,
    RankWork::Send,
    RankWork::Receive,
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    /// The number under which the reply comes.
    pub(super) ticket: u64,
    pub(super) work: RankWork,
    /// `ncclDataType_t` and `ncclRedOp_t`.
    pub(super) kind: u64,
    pub(super) operation: u64,
    /// The root, or the other rank of a pair.
    pub(super) peer: u64,
    /// The bytes of the contribution; of a receipt, those that are expected.
    pub(super) length: u64,
    /// `None` if the values are unknown.
    pub(super) data: Option<Vec<u8>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Done,
    /// The ranks do not call the same function with the same sizes.
    Mismatch,
    /// Another rank has left.
    Gone,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) ticket: u64,
    pub(super) status: Status,
    /// The bytes that the rank gets.
    pub(super) length: u64,
    /// `None` if their values are unknown.
    pub(super) data: Option<Vec<u8>>,
}

impl Request {
    pub(super) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let Self { ticket, work, kind, operation, peer, length, data } = self;
        let known = u64::from(data.is_some());
        write(to, [*ticket, *work as u64, *kind, *operation, *peer, *length, known], data)
    }

    pub(super) fn read(from: &mut impl Read) -> io::Result<Self> {
        let [ticket, work, kind, operation, peer, length, known] = numbers(from)?;
        let work = usize::try_from(work).ok().and_then(|work| WORKS.get(work));
        let work = *work.ok_or(io::ErrorKind::InvalidData)?;
        let data = data(from, length, known)?;
        Ok(Self { ticket, work, kind, operation, peer, length, data })
    }
}

impl Reply {
    pub(super) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let Self { ticket, status, length, data } = self;
        let known = u64::from(data.is_some());
        write(to, [*ticket, *status as u64, *length, known], data)
    }

    pub(super) fn read(from: &mut impl Read) -> io::Result<Self> {
        let [ticket, status, length, known] = numbers(from)?;
        let status = match status {
            0 => Status::Done,
            1 => Status::Mismatch,
            _ => Status::Gone,
        };
        Ok(Self { ticket, status, length, data: data(from, length, known)? })
    }
}

fn write<const COUNT: usize>(
    to: &mut impl Write,
    numbers: [u64; COUNT],
    data: &Option<Vec<u8>>,
) -> io::Result<()> {
    let mut bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    bytes.extend(data.iter().flatten());
    to.write_all(&bytes)
}

fn numbers<const COUNT: usize>(from: &mut impl Read) -> io::Result<[u64; COUNT]> {
    let mut all = [0; COUNT];
    for number in &mut all {
        let mut bytes = [0; 8];
        from.read_exact(&mut bytes)?;
        *number = u64::from_le_bytes(bytes);
    }
    Ok(all)
}

fn data(from: &mut impl Read, length: u64, known: u64) -> io::Result<Option<Vec<u8>>> {
    if known == 0 {
        return Ok(None);
    }
    if length > MOST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; length as usize];
    from.read_exact(&mut bytes)?;
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_they_were_written() {
        for data in [None, Some(vec![1, 2, 3])] {
            let request = Request {
                ticket: 7,
                work: RankWork::Receive,
                kind: 9,
                operation: 1,
                peer: 2,
                length: 3,
                data: data.clone(),
            };
            let mut bytes = Vec::new();
            request.write(&mut bytes).unwrap();
            assert_eq!(Request::read(&mut &bytes[..]).unwrap(), request);
            assert!(Request::read(&mut &bytes[..bytes.len() - 1]).is_err());
            let reply = Reply { ticket: 7, status: Status::Gone, length: 3, data };
            let mut bytes = Vec::new();
            reply.write(&mut bytes).unwrap();
            assert_eq!(Reply::read(&mut &bytes[..]).unwrap(), reply);
        }
    }
}
