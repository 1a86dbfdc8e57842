//! The UUIDs by which the driver, NVML and `CUDA_VISIBLE_DEVICES` identify a device or a slice.

/// Returns the UUID of a device, which is the same in every run: "memcheck-sim" and the number of
/// the device on the machine.
pub(crate) fn uuid_of(number: u32) -> [u8; 16] {
    let mut uuid = *b"memcheck-sim\0\0\0\0";
    uuid[12..].copy_from_slice(&number.to_be_bytes());
    uuid
}

/// Returns the UUID of the slice on a device with this number.
pub(crate) fn slice_uuid_of(number: u32) -> [u8; 16] {
    let mut uuid = *b"memcheck-mig\0\0\0\0";
    uuid[12..].copy_from_slice(&number.to_be_bytes());
    uuid
}

/// Returns the UUID in the notation of NVML and `CUDA_VISIBLE_DEVICES`, for the device with this
/// number or for its slice.
pub(crate) fn uuid_text(number: u32, slice: bool) -> String {
    let (kind, uuid) = match slice {
        true => ("MIG", slice_uuid_of(number)),
        false => ("GPU", uuid_of(number)),
    };
    let digits: String = uuid.iter().map(|b| format!("{b:02x}")).collect();
    let (a, b, c) = (&digits[..8], &digits[8..12], &digits[12..16]);
    format!("{kind}-{a}-{b}-{c}-{}-{}", &digits[16..20], &digits[20..])
}
