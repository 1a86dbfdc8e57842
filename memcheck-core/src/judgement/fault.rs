//! Faults of a GPU and of its driver. Each is recognised by the names of its errors and has a title
//! and a remedy.

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
        title: "the driver has no such GPU",
        remedy: "`nvidia-smi -L` lists the GPUs; CUDA_VISIBLE_DEVICES may hide them, and a \
                 container wants `--gpus`; `--device sim` needs none",
    },
    Fault {
        errors: &["CUDA_ERROR_STUB_LIBRARY"],
        title: "libcuda.so is the toolkit's stub, and no driver",
        remedy: "take the toolkit's `stubs` folder out of LD_LIBRARY_PATH; where no driver is \
                 installed, `--device sim` needs none",
    },
    Fault {
        errors: &["CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"],
        title: "libcuda.so and the driver in the kernel are of two versions",
        remedy: "restart the machine, or load the driver's kernel module again: it was updated; \
                 in a container, the image's libcuda.so must not hide the host's",
    },
    Fault {
        errors: &["CUDA_ERROR_SYSTEM_NOT_READY"],
        title: "the system is not ready for CUDA",
        remedy: "a machine with NVSwitch wants `nvidia-fabricmanager` to run, in the version of \
                 the driver",
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
        title: "the driver is older than the CUDA that this was built with, or has no room left",
        remedy: "`nvidia-smi` shows the CUDA version of the driver and who holds the memory: \
                 update the driver, or build with an older toolkit",
    },
    Fault {
        errors: &[
            "CUDA_ERROR_NO_BINARY_FOR_GPU",
            "CUDA_ERROR_INVALID_PTX",
            "CUBLAS_STATUS_ARCH_MISMATCH",
        ],
        title: "the kernels were built for another architecture than this GPU's",
        remedy: "build with CUDA_COMPUTE_CAP as `nvidia-smi --query-gpu=compute_cap \
                 --format=csv` shows it, without the point (8.9: 89)",
    },
    Fault {
        errors: &["CUDA_ERROR_ECC_UNCORRECTABLE"],
        title: "the GPU's memory has an error that ECC cannot correct",
        remedy: "`nvidia-smi -q -d ECC,ROW_REMAPPER` shows it: reset the GPU (`nvidia-smi \
                 --gpu-reset`), and replace it if it comes back",
    },
    Fault {
        errors: &["CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA_ERROR_DEVICE_NOT_LICENSED"],
        title: "the GPU is lost, or others have it for themselves",
        remedy: "`dmesg | grep Xid` and `nvidia-smi` show whether it fell off the bus, \
                 `nvidia-smi -q -d COMPUTE` whether its compute mode is exclusive",
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
        title: "a kernel failed, and the context with it",
        remedy: "the call that says so may stand behind the one that failed: \
                 CUDA_LAUNCH_BLOCKING=1, or `compute-sanitizer`; `dmesg | grep Xid` tells of \
                 hardware",
    },
];

/// The fault that a text names, and the name of the error in the text.
pub fn of(text: &str) -> Option<(&'static Fault, &'static str)> {
    FAULTS.iter().find_map(|fault| {
        let error = fault.errors.iter().find(|error| names(text, error))?;
        Some((fault, *error))
    })
}

/// True if a text has `error` as a whole word.
fn names(text: &str, error: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(error).any(|(start, _)| {
        !text[..start].ends_with(is_part) && !text[start + error.len()..].starts_with(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_told_by_its_whole_name() {
        let found = of("DriverError(CUDA_ERROR_ECC_UNCORRECTABLE, \"uncorrectable\")");
        assert_eq!(found.map(|(_, error)| error), Some("CUDA_ERROR_ECC_UNCORRECTABLE"));
        assert_eq!(of("CUDA_ERROR_NO_DEVICE_AT_ALL"), None);
        assert_eq!(of("CUDA_ERROR_INVALID_VALUE"), None);
        assert_eq!(of("CUDA_ERROR_OUT_OF_MEMORY"), None);
    }

    #[test]
    fn every_fault_says_what_to_do_and_no_error_is_two() {
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
