//! The memory of the host.

/// Returns the bytes that new allocations can take; `None` if the kernel does not report them.
pub(crate) fn available() -> Option<u64> {
    std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| parse(&text))
}

fn parse(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_available_memory_of_the_host_is_parsed_in_bytes() {
        assert_eq!(parse("MemTotal: 9 kB\nMemAvailable:    1024 kB\n"), Some(1 << 20));
        assert_eq!(parse("nothing"), None);
    }
}
