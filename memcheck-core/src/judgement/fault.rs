//! Faults of a GPU and of its driver, recognized by the names of their errors. Errors that programs
//! cause as often, such as an invalid value, are not among them, because they can be the finding.

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// The names of errors of the driver and of its libraries.
    pub errors: &'static [&'static str],
    /// The meaning, in a few words.
    pub title: &'static str,
    /// The next step for the user.
    pub remedy: &'static str,
}

/// All kinds of faults. The first one with an error in a text counts.
pub const FAULTS: &[Fault] = &[
    Fault {
        errors: &["CUDA_ERROR_NO_DEVICE", "CUDA_ERROR_INVALID_DEVICE", "cudaErrorNoDevice"],
        title: "the driver does not have the requested GPU",
        remedy: "list the GPUs with `nvidia-smi -L`; CUDA_VISIBLE_DEVICES may hide them, and a \
                 container needs `--gpus`; `--device sim` runs without a GPU",
    },
    Fault {
        errors: &["CUDA_ERROR_STUB_LIBRARY"],
        title: "libcuda.so is the stub of the CUDA toolkit, not the driver",
        remedy: "remove the toolkit's `stubs` folder from LD_LIBRARY_PATH; if no driver is \
                 installed, use `--device sim`",
    },
    Fault {
        errors: &["CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"],
        title: "libcuda.so and the kernel driver have different versions",
        remedy: "after an update of the driver, restart the machine or reload the kernel module; \
                 in a container, the image's libcuda.so must not hide the host's",
    },
    Fault {
        errors: &["CUDA_ERROR_SYSTEM_NOT_READY"],
        title: "the system is not ready for CUDA",
        remedy: "on a machine with NVSwitch, start `nvidia-fabricmanager` in the version of the \
                 driver",
    },
    Fault {
        errors: &[
            "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
            "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
            "CUBLAS_STATUS_NOT_INITIALIZED",
            "CURAND_STATUS_INITIALIZATION_FAILED",
            "CURAND_STATUS_VERSION_MISMATCH",
            "cudaErrorInsufficientDriver",
        ],
        title: "the driver is older than the CUDA toolkit of this build, or has no memory left",
        remedy: "`nvidia-smi` shows the CUDA version of the driver and the processes that hold \
                 memory: update the driver, build with an older toolkit, or free memory",
    },
    Fault {
        errors: &[
            "CUDA_ERROR_NO_BINARY_FOR_GPU",
            "CUDA_ERROR_INVALID_PTX",
            "CUBLAS_STATUS_ARCH_MISMATCH",
        ],
        title: "the kernels were built for another GPU architecture",
        remedy: "set CUDA_COMPUTE_CAP to the figure of `nvidia-smi --query-gpu=compute_cap \
                 --format=csv`, without the point (8.9 becomes 89), and build again",
    },
    Fault {
        errors: &["CUDA_ERROR_NOT_FOUND"],
        title: "a CUDA module does not contain the requested kernel",
        remedy: "candle's kernels for bf16 and f8 exist from compute capability 8.0 and 8.9 on: use \
                 f16 or f32 on older cards; for a kernel of your own, check its name",
    },
    Fault {
        errors: &["CUDA_ERROR_ECC_UNCORRECTABLE"],
        title: "the GPU's memory has an error that ECC cannot correct",
        remedy: "`nvidia-smi -q -d ECC,ROW_REMAPPER` shows the error: reset the GPU \
                 (`nvidia-smi --gpu-reset`), and replace it if the error returns",
    },
    Fault {
        errors: &["CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA_ERROR_DEVICE_NOT_LICENSED"],
        title: "the GPU is lost, or another process uses it exclusively",
        remedy: "`dmesg | grep Xid` and `nvidia-smi` show whether the GPU fell off the bus; \
                 `nvidia-smi -q -d COMPUTE` shows whether its compute mode is exclusive",
    },
    Fault {
        errors: &[
            "CUDA_ERROR_LAUNCH_FAILED",
            "CUDA_ERROR_ILLEGAL_ADDRESS",
            "CUDA_ERROR_MISALIGNED_ADDRESS",
            "CUDA_ERROR_ILLEGAL_INSTRUCTION",
            "CUDA_ERROR_HARDWARE_STACK_ERROR",
            "CUDA_ERROR_LAUNCH_TIMEOUT",
            "CUBLAS_STATUS_EXECUTION_FAILED",
        ],
        title: "a kernel failed, and its CUDA context cannot be used any more",
        remedy: "an earlier call may have caused the error: find it with CUDA_LAUNCH_BLOCKING=1 \
                 or `compute-sanitizer`; `dmesg | grep Xid` shows faults of the hardware",
    },
];

/// The fault that a text names, and the name of the error in the text.
pub fn of(text: &str) -> Option<(&'static Fault, &'static str)> {
    FAULTS.iter().find_map(|fault| {
        let error = fault.errors.iter().find(|error| contains_name(text, error))?;
        Some((fault, *error))
    })
}

fn contains_name(text: &str, error: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(error).any(|(start, _)| {
        !text[..start].ends_with(is_part) && !text[start + error.len()..].starts_with(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_recognized_by_its_whole_name() {
        let found = of("DriverError(CUDA_ERROR_ECC_UNCORRECTABLE, \"uncorrectable\")");
        assert_eq!(found.map(|(_, error)| error), Some("CUDA_ERROR_ECC_UNCORRECTABLE"));
        assert_eq!(of("CUDA_ERROR_NO_DEVICE_AT_ALL"), None);
        assert_eq!(of("CUDA_ERROR_INVALID_VALUE"), None);
        assert_eq!(of("CUDA_ERROR_OUT_OF_MEMORY"), None);
    }

    #[test]
    fn an_error_has_the_next_step_for_its_user() {
        for (error, step) in [
            ("CUDA_ERROR_NO_DEVICE", "CUDA_VISIBLE_DEVICES"),
            ("CUDA_ERROR_STUB_LIBRARY", "`stubs` folder"),
            ("CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "restart the machine"),
            ("CUDA_ERROR_SYSTEM_NOT_READY", "nvidia-fabricmanager"),
            ("CUBLAS_STATUS_NOT_INITIALIZED", "update the driver"),
            ("CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "update the driver"),
            ("CUDA_ERROR_NO_BINARY_FOR_GPU", "CUDA_COMPUTE_CAP"),
            ("CUDA_ERROR_INVALID_PTX", "CUDA_COMPUTE_CAP"),
            ("CUDA_ERROR_ECC_UNCORRECTABLE", "--gpu-reset"),
            ("CUDA_ERROR_DEVICE_UNAVAILABLE", "dmesg"),
            ("CUDA_ERROR_LAUNCH_FAILED", "compute-sanitizer"),
        ] {
            let (fault, _) = of(&format!("DriverError({error}, \"words\")")).unwrap();
            assert!(fault.remedy.contains(step), "{error}: {}", fault.remedy);
        }
    }

    #[test]
    fn every_fault_has_a_remedy_and_every_error_has_one_fault() {
        let mut seen: Vec<&str> = Vec::new();
        for fault in FAULTS {
            assert!(fault.remedy.len() > 40 && !fault.title.is_empty(), "{}", fault.title);
            seen.extend(fault.errors);
        }
        let count = seen.len();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), count);
    }
}
