//! The exit codes of `cargo memcheck`, which are part of its public interface.

/// Every selected test was measured and is within its limits.
pub const OK: u8 = 0;
/// An internal error: a bug, or a file of the tool itself that could not be used.
pub const INTERNAL: u8 = 1;
/// The command line is not valid.
pub const USAGE: u8 = 2;
/// No test was selected.
pub const NO_TESTS: u8 = 4;
/// Nothing failed, but a denied bookkeeping finding needs a person.
pub const DENIED: u8 = 5;
/// The command panicked, which is a bug. The number is `EX_SOFTWARE` of sysexits.h.
pub const PANIC: u8 = 70;
/// The configuration is not valid.
pub const CONFIG: u8 = 96;
/// A measured failure.
pub const FAILED: u8 = 100;
/// The build failed.
pub const BUILD: u8 = 101;
/// `cargo metadata` failed.
pub const METADATA: u8 = 102;
/// A listed test ended without a complete record. It must never count as a pass.
pub const NOT_MEASURED: u8 = 104;
/// The requested device does not exist. The command must not fall back to another one.
pub const NO_DEVICE: u8 = 105;
/// A report, the stored results, or the output on stdout or stderr could not be written.
pub const REPORT: u8 = 110;
/// A signal ended the run. The number is the one that shells use for Ctrl-C.
pub const INTERRUPTED: u8 = 130;

/// Every exit code with its meaning, for help texts and the test of the documentation.
pub const ALL: &[(u8, &str)] = &[
    (OK, "every selected test was measured and is within its limits"),
    (INTERNAL, "internal error"),
    (USAGE, "usage error"),
    (NO_TESTS, "no test was selected"),
    (DENIED, "no test failed, but a denied bookkeeping finding needs a decision"),
    (PANIC, "the command panicked, which is a bug"),
    (CONFIG, "the configuration is invalid"),
    (FAILED, "a test failed"),
    (BUILD, "the build failed"),
    (METADATA, "`cargo metadata` failed"),
    (NOT_MEASURED, "a listed test ended without a complete record"),
    (NO_DEVICE, "the requested device is not available"),
    (REPORT, "a report, the results or the output could not be written"),
    (INTERRUPTED, "a signal ended the run"),
];
