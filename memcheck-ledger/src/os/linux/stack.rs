//! Finds the memory of a thread's stack without the C library, and without an allocation. The
//! library can call `malloc` while it holds a lock that `pthread_getattr_np` would wait for.

use std::fs::File;
use std::io::Read;
use std::ops::Range;

/// The mapping that contains the stack of the calling thread. It can have neighbors of the stack
/// too, which are mapped and readable as well.
pub(crate) fn in_maps() -> Option<Range<u64>> {
    let place = 0u8;
    mapping_at(std::ptr::from_ref(std::hint::black_box(&place)) as u64, 0)
}

/// The readable mapping that contains `address`, or the first one that begins at most `above` bytes
/// above it. Takes no lock of the process.
pub(crate) fn mapping_at(address: u64, above: u64) -> Option<Range<u64>> {
    let mut file = File::open("/proc/self/maps").ok()?;
    let mut maps = Maps::default();
    let mut piece = [0; 1024];
    loop {
        let length = file.read(&mut piece).ok().filter(|&length| length > 0)?;
        let found = piece[..length].iter().find_map(|&byte| maps.next(byte, (address, above)));
        if found.is_some() {
            return found;
        }
    }
}

/// Parses lines such as `7f00-7f80 rw-p …`, byte by byte.
#[derive(Default)]
struct Maps {
    field: Field,
    start: u64,
    end: u64,
    number: u64,
}

#[derive(Default, Clone, Copy)]
enum Field {
    #[default]
    Start,
    End,
    /// `r` or `-`, the first letter of the rights.
    Readable,
    Rest,
}

impl Maps {
    /// Takes the next byte. Returns the range of a readable mapping that ends above `address` and
    /// begins at most `above` bytes above it.
    fn next(&mut self, byte: u8, (address, above): (u64, u64)) -> Option<Range<u64>> {
        match (self.field, byte) {
            (_, b'\n') => *self = Self::default(),
            (Field::Start, b'-') => {
                *self = Self { field: Field::End, start: self.number, end: 0, number: 0 };
            }
            (Field::End, b' ') => {
                self.field = Field::Readable;
                self.end = self.number;
            }
            (Field::Readable, right) => {
                self.field = Field::Rest;
                let is_it = self.start <= address.saturating_add(above) && address < self.end;
                return (is_it && right == b'r').then_some(self.start..self.end);
            }
            (Field::Start | Field::End, digit) => {
                let digit = char::from(digit).to_digit(16).unwrap_or(0);
                self.number = self.number << 4 | u64::from(digit);
            }
            (Field::Rest, _) => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mapping_of_an_address_is_found() {
        let text = "1000-2000 r-xp 0-1 fe:01 7 /a b-c\n7f009000-7f00a000 ---p 00000000 00:00 0\n\
                    7f00a000-7f00c000 rw-p 00000000 00:00 0\n";
        let above = |address, above| {
            let mut maps = Maps::default();
            text.bytes().find_map(|byte| maps.next(byte, (address, above)))
        };
        let find = |address| above(address, 0);
        let stack = Some(0x7f00_a000..0x7f00_c000);
        assert_eq!(find(0x7f00_b123), stack);
        assert_eq!((find(0x1fff), find(0x2000)), (Some(0x1000..0x2000), None));
        // The stack is above its guard page, and above a gap that it can grow into.
        assert_eq!((find(0x7f00_9ff0), above(0x7f00_9ff0, 0x1000)), (None, stack.clone()));
        assert_eq!((above(0x7f00_8ff0, 0x1000), above(0x7f00_8ff0, 0x2000)), (None, stack));
    }

    #[test]
    fn every_thread_finds_its_stack() {
        let find = || {
            let local = 0u8;
            let address = std::ptr::from_ref(std::hint::black_box(&local)) as u64;
            in_maps().is_some_and(|stack| stack.contains(&address))
        };
        assert!(find() && std::thread::spawn(find).join().unwrap());
    }
}
