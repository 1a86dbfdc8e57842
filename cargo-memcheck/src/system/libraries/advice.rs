//! Advice about missing libraries: which packages provide them, and how to make the command find
//! them.

use std::fmt;

use memcheck_core::wire::exit;

const DRIVER: &str = "libcuda.so";

/// With the names of the Python wheels that contain them, without a version.
const WHEELS: &[(&str, &str)] = &[
    ("libcublas", "nvidia-cublas"),
    ("libcublasLt", "nvidia-cublas"),
    ("libcudart", "nvidia-cuda-runtime"),
    ("libcudnn", "nvidia-cudnn"),
    ("libcufft", "nvidia-cufft"),
    ("libcurand", "nvidia-curand"),
    ("libcusolver", "nvidia-cusolver"),
    ("libcusparse", "nvidia-cusparse"),
    ("libnccl", "nvidia-nccl"),
    ("libnvJitLink", "nvidia-nvjitlink"),
    ("libnvrtc", "nvidia-cuda-nvrtc"),
];

/// Their version number is that of CUDA.
const VERSIONED: [&str; 4] = ["libcublas", "libcublasLt", "libcudart", "libnvrtc"];

/// An executable cannot start without these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Missing {
    pub(crate) libraries: Vec<String>,
    /// The loader's messages about libraries that are too old.
    pub(crate) outdated: Vec<String>,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.libraries.as_slice() {
            [] => write!(f, "{}", self.outdated.join("\n")),
            [one] => write!(f, "{one} was not found"),
            several => write!(f, "{} were not found", several.join(", ")),
        }
    }
}

impl Missing {
    /// That of a missing device if the driver's library is missing.
    pub(crate) fn exit_code(&self) -> u8 {
        let is_driver = |name: &String| name.starts_with(DRIVER);
        if self.libraries.iter().any(is_driver) { exit::NO_DEVICE } else { exit::NOT_MEASURED }
    }
}

pub(crate) fn advice(missing: &Missing) -> String {
    if missing.libraries.is_empty() {
        return "it was built on a newer system: build it on the oldest system that must run it"
            .to_owned();
    }
    let mut advice = Vec::new();
    let (driver, others): (Vec<&String>, Vec<&String>) =
        missing.libraries.iter().partition(|name| name.starts_with(DRIVER));
    if let Some(name) = driver.first() {
        advice.push(format!("{name} comes with the NVIDIA driver; `--device sim` needs none"));
    }
    let wheels = wheels(&others);
    if !wheels.is_empty() {
        let wheels = wheels.join(" ");
        advice.push(format!("install the CUDA toolkit, or `pip install {wheels}`"));
    }
    if !others.is_empty() {
        advice.push("--library-path DIR names a folder that has them".to_owned());
    }
    advice.join("; ")
}

/// Splits `libcublas.so.13` into the name and the first number of the version.
fn parts(library: &str) -> Option<(&str, &str)> {
    let (name, version) = library.split_once(".so.")?;
    Some((name, version.split('.').next().unwrap_or(version)))
}

fn wheels(libraries: &[&String]) -> Vec<String> {
    let parted = || libraries.iter().filter_map(|library| parts(library));
    let cuda = parted().find(|(name, _)| VERSIONED.contains(name)).map(|(_, version)| version);
    let mut wheels: Vec<String> = parted()
        .filter_map(|(name, version)| {
            let (_, wheel) = WHEELS.iter().find(|(library, _)| *library == name)?;
            // From CUDA 13 on most wheels do not have the version of CUDA in their names.
            let of_cuda = match (*wheel, cuda) {
                ("nvidia-cudnn" | "nvidia-nccl", cuda) => format!("-cu{}", cuda.unwrap_or("13")),
                (_, Some(old @ ("11" | "12"))) => format!("-cu{old}"),
                _ => String::new(),
            };
            Some(format!("{wheel}{of_cuda}=={version}.*"))
        })
        .collect();
    wheels.sort();
    wheels.dedup();
    wheels
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(names: &[&str]) -> Missing {
        let libraries = names.iter().map(|&name| name.to_owned()).collect();
        Missing { libraries, outdated: Vec::new() }
    }

    #[test]
    fn the_wheels_that_bring_a_library_are_named() {
        let of_13 = missing(&["libcublas.so.13", "libcublasLt.so.13", "libcurand.so.10"]);
        assert_eq!(of_13.exit_code(), exit::NOT_MEASURED);
        let text = advice(&of_13);
        assert!(text.contains("`pip install nvidia-cublas==13.* nvidia-curand==10.*`"), "{text}");
        assert!(text.contains("--library-path"), "{text}");
        let text = advice(&missing(&["libnvrtc.so.12", "libcurand.so.10"]));
        assert!(text.contains("nvidia-cuda-nvrtc-cu12==12.* nvidia-curand-cu12==10.*"), "{text}");
        let text = advice(&missing(&["libfoo.so.3"]));
        assert!(!text.contains("pip"), "{text}");
    }

    #[test]
    fn a_missing_driver_library_means_a_missing_device() {
        let driver = missing(&["libcuda.so.1"]);
        assert_eq!(driver.exit_code(), exit::NO_DEVICE);
        assert_eq!(driver.to_string(), "libcuda.so.1 was not found");
        let text = advice(&driver);
        assert!(text.contains("NVIDIA driver") && !text.contains("--library-path"), "{text}");
    }

    #[test]
    fn a_system_that_is_too_old_is_reported() {
        let text = "/lib/libc.so.6: version `GLIBC_2.99' not found (required by mem)".to_owned();
        let outdated = Missing { libraries: Vec::new(), outdated: vec![text.clone()] };
        assert_eq!(outdated.to_string(), text);
        assert!(advice(&outdated).contains("newer system"));
    }
}
