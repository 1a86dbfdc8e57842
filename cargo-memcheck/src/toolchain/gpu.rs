//! Looking for a real GPU and for a compiler for it, by asking programs:
//! opening a driver is the test process's business.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use wait_timeout::ChildExt;

use crate::devices::Found;
use crate::options::environment;

/// What this machine has.
pub(crate) fn probe() -> Found {
    Found { gpus: gpus(), nvcc: nvcc() }
}

/// The GPUs that the driver lists.
fn gpus() -> Result<Vec<String>, String> {
    // A driver that is gone can make nvidia-smi hang.
    let child = Command::new("nvidia-smi")
        .arg("-L")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else {
        return Err("no NVIDIA driver answers (nvidia-smi is not there)".to_owned());
    };
    match child.wait_timeout(Duration::from_secs(20)) {
        Ok(Some(_)) => {}
        _ => {
            let _ = child.kill();
            let _ = child.wait();
            return Err("no NVIDIA driver answers (nvidia-smi hangs)".to_owned());
        }
    }
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let gpus = listed(&text);
    if !output.status.success() || gpus.is_empty() {
        let said = text.lines().next().unwrap_or("it lists no GPU").trim();
        return Err(format!("no NVIDIA driver answers (nvidia-smi: {said})"));
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
fn nvcc() -> Result<String, String> {
    let mut candidates: Vec<PathBuf> = environment("NVCC").map(PathBuf::from).into_iter().collect();
    candidates.push("nvcc".into());
    for root in ["CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "CUDA_TOOLKIT_ROOT_DIR"] {
        candidates.extend(environment(root).map(|root| PathBuf::from(root).join("bin/nvcc")));
    }
    candidates.extend(["/usr/local/cuda/bin/nvcc", "/opt/cuda/bin/nvcc"].map(PathBuf::from));
    candidates
        .iter()
        .find_map(|path| {
            let output = Command::new(path).arg("--version").stdin(Stdio::null()).output().ok()?;
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
    fn names_are_read_from_the_list() {
        let text = "GPU 0: NVIDIA H200 (UUID: GPU-1)\n  MIG 1g.18gb Device 0: (UUID: MIG-2)\nGPU 1: Tesla T4 (UUID: GPU-3)\n";
        assert_eq!(listed(text), ["NVIDIA H200", "Tesla T4"]);
        assert!(listed("No devices found.").is_empty());
    }
}
