//! The signals that this process ignores since its start, for example because of `nohup`.

pub(super) fn is_ignored(signal: i32) -> bool {
    ignored() >> (signal - 1) & 1 == 1
}

/// The signals that were ignored when this process started. Empty if the system does not provide
/// the mask.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
