//! Finds the memory of a thread's stack without the C library, and without an allocation. The
//! library can call `malloc` while it holds a lock that `pthread_getattr_np` would wait for.

use std::fs::File;
use std::io::Read;
use std::ops::Range;

/// The mapping that contains the stack of the calling thread. It can have neighbors of the stack
/// too, which are mapped and readable as well.
pub(crate) fn in_maps() -> Option<Range<u64>> {
    let place = 0u8;
    let on_stack = std::ptr::from_ref(std::hint::black_box(&place)) as u64;
    let mut file = File::open("/proc/self/maps").ok()?;
    let mut maps = Maps::default();
    let mut piece = [0; 1024];
    loop {
        let length = file.read(&mut piece).ok().filter(|&length| length > 0)?;
        let found = piece[..length].iter().find_map(|&byte| maps.next(byte, on_stack));
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
    number: u64,
}

#[derive(Default, Clone, Copy)]
enum Field {
    #[default]
    Start,
    End,
    Rest,
}

impl Maps {
    /// Takes the next byte. Returns the range of a mapping that contains `address`.
    fn next(&mut self, byte: u8, address: u64) -> Option<Range<u64>> {
        match (self.field, byte) {
            (_, b'\n') => *self = Self::default(),
            (Field::Start, b'-') => {
                *self = Self { field: Field::End, start: self.number, number: 0 };
            }
            (Field::End, b' ') => {
                self.field = Field::Rest;
                let range = self.start..self.number;
                return range.contains(&address).then_some(range);
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
        let text = "1000-2000 r-xp 0-1 fe:01 7 /a b-c\n7f00a000-7f00c000 rw-p 00000000 00:00 0\n";
        let find = |address| {
            let mut maps = Maps::default();
            text.bytes().find_map(|byte| maps.next(byte, address))
        };
        assert_eq!(find(0x7f00_b123), Some(0x7f00_a000..0x7f00_c000));
        assert_eq!((find(0x1fff), find(0x2000)), (Some(0x1000..0x2000), None));
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
