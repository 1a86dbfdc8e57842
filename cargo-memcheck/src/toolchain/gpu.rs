//! Looking for a real GPU and for a compiler for it, by asking programs:
//! opening a driver is the test process's business.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::devices::{Found, Gpus};
use crate::launcher::{self, Launcher, TURN};
use crate::options::{Capture, environment};
use crate::run::Interrupt;
use crate::run::process::{self, End, Watch};

/// How long the driver may take to answer: one that is gone can make nvidia-smi hang.
const ANSWER: Duration = Duration::from_secs(20);

/// What there is: the GPUs where `launcher` starts tests, the compiler here.
pub(crate) fn probe(launcher: &Launcher) -> Found {
    Found { gpus: Gpus::Here(gpus(launcher)), nvcc: nvcc() }
}

/// The same where tests run on another machine.
pub(crate) fn probe_compiler() -> Found {
    Found { gpus: Gpus::Elsewhere, nvcc: nvcc() }
}

/// The GPUs that the driver lists.
pub(crate) fn gpus(launcher: &Launcher) -> Result<Vec<String>, String> {
    let mut command = launcher.command(Path::new("nvidia-smi"));
    command.arg("-L");
    let (program, kind, timeout) = match launcher {
        Launcher::None => ("nvidia-smi".to_owned(), process::Kind::Own, ANSWER),
        Launcher::Command(_) => {
            (launcher::shown(&command), process::Kind::SilentLauncher(None), TURN)
        }
    };
    let none = |why: &str| format!("no NVIDIA driver answers ({program}{why})");
    let interrupt = Interrupt::listen().map_err(|error| error.to_string())?;
    let watch = Watch { kind, timeout, capture: Capture::Kept, interrupt: &interrupt };
    let Ok(ended) = process::run(command, watch, |_| {}) else {
        return Err(none(" is not there"));
    };
    let Some(End::Exited(status)) = ended.end else { return Err(none(" hangs")) };
    let text = ended.output.stdout;
    let gpus = listed(&text);
    if !status.success() || gpus.is_empty() {
        let said = text.lines().next().unwrap_or("it lists no GPU").trim();
        return Err(none(&format!(": {said}")));
    }
    Ok(gpus)
}

/// The names in `nvidia-smi -L`: `GPU 0: NVIDIA H200 (UUID: …)`.
fn listed(text: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| line.strip_prefix("GPU ")?.split_once(": "))
        .map(|(_, rest)| rest.split(" (UUID").next().unwrap_or(rest).trim().to_owned())
        .collect()
}

/// The version of the CUDA compiler that candle's build would find.
pub(crate) fn nvcc() -> Result<String, String> {
    let mut candidates: Vec<PathBuf> = environment("NVCC").map(PathBuf::from).into_iter().collect();
    candidates.push("nvcc".into());
    for root in ["CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "CUDA_TOOLKIT_ROOT_DIR"] {
        candidates.extend(environment(root).map(|root| PathBuf::from(root).join("bin/nvcc")));
    }
    candidates.extend(["/usr/local/cuda/bin/nvcc", "/opt/cuda/bin/nvcc"].map(PathBuf::from));
    candidates
        .iter()
        .find_map(|path| {
            let output = std::process::Command::new(path)
                .arg("--version")
                .stdin(Stdio::null())
                .output()
                .ok()?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let release = text.split("release ").nth(1)?.split(',').next()?.trim().to_owned();
            Some(format!("{release} ({})", path.display()))
        })
        .ok_or_else(|| "there is no CUDA compiler (nvcc)".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_driver_is_asked_where_tests_are_started() {
        let launched = |line: &str| gpus(&Launcher::read(line, Path::new("/")).unwrap());
        let there = launched("sh -c 'test \"$1\" = -L && echo \"GPU 0: T4 (UUID: x)\"'");
        assert_eq!(there, Ok(vec!["T4".to_owned()]));
        let error = launched("sh -c 'echo no node; exit 1'").unwrap_err();
        assert!(error.contains("nvidia-smi -L: no node"), "{error}");
        let error = launched("/no/such/srun --x").unwrap_err();
        assert!(error.contains("/no/such/srun --x nvidia-smi -L is not there"), "{error}");
    }

    #[test]
    fn names_are_read_from_the_list() {
        let text = "GPU 0: NVIDIA H200 (UUID: GPU-1)\n  MIG 1g.18gb Device 0: (UUID: MIG-2)\nGPU 1: Tesla T4 (UUID: GPU-3)\n";
        assert_eq!(listed(text), ["NVIDIA H200", "Tesla T4"]);
        assert!(listed("No devices found.").is_empty());
    }
}
