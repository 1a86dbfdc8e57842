//! What the driver, NVML and `CUDA_VISIBLE_DEVICES` call a device or a slice of one.

/// An identity that is the same in every run: "memcheck-sim", and the number of
/// the device on the machine.
pub(crate) fn uuid_of(number: u32) -> [u8; 16] {
    let mut uuid = *b"memcheck-sim\0\0\0\0";
    uuid[12..].copy_from_slice(&number.to_be_bytes());
    uuid
}

/// That of the slice, where the device is one.
pub(crate) fn slice_uuid_of(number: u32) -> [u8; 16] {
    let mut uuid = *b"memcheck-mig\0\0\0\0";
    uuid[12..].copy_from_slice(&number.to_be_bytes());
    uuid
}

/// What NVML and `CUDA_VISIBLE_DEVICES` call the device of this number, or the
/// slice that it is.
pub(crate) fn uuid_text(number: u32, slice: bool) -> String {
    let (kind, uuid) = match slice {
        true => ("MIG", slice_uuid_of(number)),
        false => ("GPU", uuid_of(number)),
    };
    let digits: String = uuid.iter().map(|b| format!("{b:02x}")).collect();
    let (a, b, c) = (&digits[..8], &digits[8..12], &digits[12..16]);
    format!("{kind}-{a}-{b}-{c}-{}-{}", &digits[16..20], &digits[20..])
}
