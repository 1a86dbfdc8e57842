//! The table of limits: one row for each.
//!
//! `with_limits!` hands the rows to a macro of the caller, so that every crate makes its
//! part from them: the fields and the configuration keys in this crate, the variables in
//! `memcheck-core`, the flags in `cargo-memcheck`, the options of the attribute in
//! `memcheck-macros`. A new limit is one row here, and one rule in the verdict.

/// Calls a macro with the rows of limits, in the order in which users see them.
/// `with_limits!(all define)` calls `define!` with every row, and `with_limits!(everywhere define)`
/// with those of `everywhere`.
///
/// A row has the documentation (also the help of the flag), the name (with the spelling
/// in MiB, if it is a size), the kind of its value (one of [`crate::limits::kinds`]), the
/// variable of the environment, whether it also holds for a program that `profile` runs,
/// and its default for a family of devices. The rows of `everywhere` can be stated by
/// every source; those of `attribute_and_file` have neither a variable nor a flag.
#[macro_export]
macro_rules! with_limits {
    (@all $callback:ident
        everywhere { $($everywhere:tt)* }
        attribute_and_file { $($rest:tt)* }
    ) => {
        $callback! { $($everywhere)* $($rest)* }
    };
    (@everywhere $callback:ident
        everywhere { $($everywhere:tt)* }
        attribute_and_file { $($rest:tt)* }
    ) => {
        $callback! { $($everywhere)* }
    };
    ($rows:ident $callback:ident) => {
        $crate::with_limits! {
            @$rows $callback
            everywhere {
                /// Limit of the growth of live bytes per iteration, such as "64 KiB" (built-in
                /// default: 1 MiB)
                max_growth or max_growth_mb: Bytes,
                "MEMCHECK_MAX_GROWTH", programs: false, default: |_| DEFAULT_MAX_GROWTH;

                /// Limit of the bytes that the iterations may leave behind in all, such as the
                /// size of a bounded cache: up to it, growth is not judged
                max_kept or max_kept_mb: Optional<Bytes>,
                "MEMCHECK_MAX_KEPT", programs: false, default: |_| None;

                /// Limit of the live bytes at any moment, set-up included: a size ("1 GiB") or a
                /// share of another test's peak ("0.6 x other_test")
                max_peak or max_peak_mb: Optional<Share>,
                "MEMCHECK_MAX_PEAK", programs: true, default: |_| None;

                /// Limit of the bytes that are still live when the test body has returned (built-in
                /// default: 0 on a GPU, 64 KiB on the host)
                max_retained or max_retained_mb: Bytes,
                "MEMCHECK_MAX_RETAINED", programs: true, default: default_max_retained;

                /// Limit of the number of allocations in one measured iteration
                max_allocations: Optional<Count>,
                "MEMCHECK_MAX_ALLOCATIONS", programs: false, default: |_| None;

                /// Limit of the bytes that are allocated in one measured iteration, freed or not
                max_allocated or max_allocated_mb: Optional<Bytes>,
                "MEMCHECK_MAX_ALLOCATED", programs: false, default: |_| None;

                /// Limit of the growth per iteration of the driver's pool, and of NVML's figure, in
                /// bytes
                max_reserved_growth or max_reserved_growth_mb: Optional<Bytes>,
                "MEMCHECK_MAX_RESERVED_GROWTH", programs: false, default: |_| None;

                /// Limit of the growth of the C heap (malloc and its relatives) per iteration; the
                /// C heap is counted only if it is set
                max_c_growth or max_c_growth_mb: Optional<Bytes>,
                "MEMCHECK_MAX_C_GROWTH", programs: false, default: |_| None;

                /// Limit of the growth per iteration of the resident anonymous memory and the
                /// swap of the process
                max_rss_growth or max_rss_growth_mb: Optional<Bytes>,
                "MEMCHECK_MAX_RSS_GROWTH", programs: false, default: |_| None;

                /// Limit of the growth of host memory per iteration, on every device; on a GPU the
                /// host is judged only if a limit of the host is set
                max_host_growth or max_host_growth_mb: Optional<Bytes>,
                "MEMCHECK_MAX_HOST_GROWTH", programs: false, default: |_| None;

                /// Limit of the live bytes of the host at any moment, set-up included, on every
                /// device
                max_host_peak or max_host_peak_mb: Optional<Bytes>,
                "MEMCHECK_MAX_HOST_PEAK", programs: false, default: |_| None;

                /// Capacity that a test must run in on a GPU: a size ("24 GiB") or a card
                /// ("rtx4090")
                fits: Optional<Room>,
                "MEMCHECK_FITS", programs: true, default: |_| None;

                /// Number of measured iterations (built-in default: 10)
                iterations: AtLeastOne,
                "MEMCHECK_ITERATIONS", programs: false, default: |_| DEFAULT_ITERATIONS;

                /// Number of iterations before the measured ones (built-in default: 2)
                warmup: Number,
                "MEMCHECK_WARMUP", programs: false, default: |_| DEFAULT_WARMUP;

                /// Maximum of measured iterations of a test whose growth is undecided (built-in
                /// default: 1000)
                max_iterations: AtLeastOne,
                "MEMCHECK_MAX_ITERATIONS", programs: false, default: |_| DEFAULT_MAX_ITERATIONS;

                /// Maximum time for further iterations of a test whose growth is undecided
                /// (built-in default: 10s)
                evidence: Time,
                "MEMCHECK_EVIDENCE", programs: false, default: |_| DEFAULT_EVIDENCE;

                /// Minimum of real time for which further iterations run before growth is decided, such
                /// as "2s" for a cache with a time to live (built-in default: none)
                min_time: Optional<Time>,
                "MEMCHECK_MIN_TIME", programs: false, default: |_| None;

                /// Tolerance above the baseline: a share ("2%"), bytes ("64 KiB"), or the larger of
                /// both ("2% | 64 KiB")
                tolerance: Deviation,
                "MEMCHECK_TOLERANCE", programs: false, default: default_tolerance;

                /// Maximum duration of a test, such as "60s" (built-in default: 10m)
                timeout: Time,
                "MEMCHECK_TIMEOUT", programs: true, default: |_| DEFAULT_TIMEOUT;

                /// Threads of rayon's pool (built-in default: RAYON_NUM_THREADS, else 1)
                threads: Optional<AtLeastOne>,
                "MEMCHECK_THREADS", programs: true, default: |_| None;

                /// Contents of device memory on the simulated device: "auto", "never" or a limit
                /// such as "256 MiB" (built-in default: auto)
                values: Kept,
                "MEMCHECK_VALUES", programs: true, default: |_| Contents::Auto;

                /// A test that reads unknown values of the simulated device is not measured
                strict_values: Switch,
                "MEMCHECK_STRICT_VALUES", programs: false, default: |_| false;

                /// Refuse each device allocation of one iteration in turn, in a separate process;
                /// with N, at most N of them
                fault_sweep: Faults,
                "MEMCHECK_FAULT_SWEEP", programs: false, default: |_| FaultSweep::Off;
            }
            attribute_and_file {
                /// True if figures are compared with a snapshot
                baseline: Switch,
                programs: false, default: |_| true;
            }
        }
    };
}
