//! The table of limits: one row for each.
//!
//! `with_limits!` hands the rows to a macro of the caller, so that every crate makes its
//! part from them: the fields and the configuration keys in this crate, the variables in
//! `memcheck-core`, the flags in `cargo-memcheck`, the options of the attribute in
//! `memcheck-macros`. A new limit is one row here, and one rule in the verdict.

/// Calls `$callback!` with every limit, in the order in which users see them.
///
/// A row has the documentation (also the help of the flag), the name (with the spelling
/// in MiB, if it is a size), the kind of its value (one of [`crate::limits::kinds`]), the
/// variable of the environment, whether it also holds for a program that `profile` runs,
/// and its default for a family of devices. The rows of `everywhere` can be stated by
/// every source; those of `attribute_and_file` have neither a variable nor a flag.
#[macro_export]
macro_rules! with_limits {
    ($callback:ident) => {
        $callback! {
            everywhere {
                /// Greatest growth of live memory per iteration ("64 KiB")
                max_growth or max_growth_mb: Bytes,
                "MEMCHECK_MAX_GROWTH", programs: false, default: |_| DEFAULT_MAX_GROWTH;

                /// Most bytes live at once, set-up included ("1 GiB"), or a share of the peak of another test ("0.6 x other_test")
                max_peak or max_peak_mb: Optional<Share>,
                "MEMCHECK_MAX_PEAK", programs: true, default: |_| None;

                /// Most bytes that are still live when the test body has returned ("64 KiB")
                max_retained or max_retained_mb: Bytes,
                "MEMCHECK_MAX_RETAINED", programs: true, default: default_max_retained;

                /// Most allocations in one measured iteration
                max_allocations: Optional<Count>,
                "MEMCHECK_MAX_ALLOCATIONS", programs: false, default: |_| None;

                /// Greatest growth per iteration of the driver's pool, and of the process's memory as NVML reports it ("64 KiB")
                max_reserved_growth or max_reserved_growth_mb: Optional<Bytes>,
                "MEMCHECK_MAX_RESERVED_GROWTH", programs: false, default: |_| None;

                /// Memory that must be enough for a test on a GPU: a size ("24 GiB") or a card ("rtx4090")
                fits: Optional<Room>,
                "MEMCHECK_FITS", programs: true, default: |_| None;

                /// Measured iterations
                iterations: AtLeastOne,
                "MEMCHECK_ITERATIONS", programs: false, default: |_| DEFAULT_ITERATIONS;

                /// Iterations before the measured ones
                warmup: Number,
                "MEMCHECK_WARMUP", programs: false, default: |_| DEFAULT_WARMUP;

                /// Most measured iterations, if the first ones leave the test undecided; as many as `iterations` switches this off
                max_iterations: AtLeastOne,
                "MEMCHECK_MAX_ITERATIONS", programs: false, default: |_| DEFAULT_MAX_ITERATIONS;

                /// Longest time for which an undecided test is iterated further ("10s")
                evidence: Time,
                "MEMCHECK_EVIDENCE", programs: false, default: |_| DEFAULT_EVIDENCE;

                /// Allowed distance of a figure above its baseline ("2%", "64 KiB" or "2% | 64 KiB")
                tolerance: Deviation,
                "MEMCHECK_TOLERANCE", programs: false, default: default_tolerance;

                /// Longest time that a test may take ("60s", "10m")
                timeout: Time,
                "MEMCHECK_TIMEOUT", programs: true, default: |_| DEFAULT_TIMEOUT;
            }
            attribute_and_file {
                /// Whether a snapshot is kept and compared
                baseline: Switch,
                programs: false, default: |_| true;
            }
        }
    };
}
