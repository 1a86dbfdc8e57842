//! The free memory of the host.

use crate::os;

/// Bytes that can be allocated without swapping and within the limit of the process's container.
/// `None` if the system does not report them.
pub(crate) fn available() -> Option<u64> {
    let of_host = os::memory_of_host().and_then(|text| of_meminfo(&text));
    let of_container = os::memory_of_container();
    let of_container = of_container.map(|(limit, used)| limit.saturating_sub(used));
    of_host.into_iter().chain(of_container).min()
}

/// Parses the line `MemAvailable:   16331188 kB`.
fn of_meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_memory_is_parsed_and_read() {
        let text = "MemTotal:       32 kB\nMemAvailable:   16 kB\nBuffers: 1 kB\n";
        assert_eq!(of_meminfo(text), Some(16_384));
        assert_eq!(of_meminfo("MemTotal: 32 kB\n"), None);
        let is_known = os::INSTRUMENT == os::Instrument::Complete;
        assert_eq!(available().is_some_and(|bytes| bytes > 0), is_known);
    }
}
