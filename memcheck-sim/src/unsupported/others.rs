//! The functions that return a text or a number.
//!
//! Generated from the bindings of cudarc: `just bindings` writes it, and a test compares it.

texts! {
    ncclGetLastError
}

sizes! {
    cudnnGetMaxDeviceVersion
}
