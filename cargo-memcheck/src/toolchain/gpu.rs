//! Looking for a real GPU and for a compiler for it, by asking programs:
//! opening a driver is the test process's business.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::devices::{Found, Gpus};
use crate::launcher::{self, Launcher, TURN};
use crate::options::{Capture, environment};
use crate::process::{self, End, Interrupt, Watch};

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
    let status = match ended.end {
        Some(End::Exited(status)) => status,
        Some(End::TimedOut(_)) => return Err(none(" hangs")),
        None => return Err(none(" was interrupted")),
    };
    let text = ended.output.stdout;
    let cards = listed(&text);
    if !status.success() || cards.is_empty() {
        let said = text.lines().next().unwrap_or("it lists no GPU").trim();
        return Err(none(&format!(": {said}")));
    }
    match (launcher, std::env::var(VISIBLE)) {
        // Elsewhere a launcher decides what is visible.
        (Launcher::None, Ok(wanted)) => visible(&cards, &wanted),
        _ => Ok(cards.into_iter().map(|card| card.name).collect()),
    }
}

/// What CUDA hides all other GPUs by.
const VISIBLE: &str = "CUDA_VISIBLE_DEVICES";

/// A GPU of `nvidia-smi -L`, with its slices where it is in MIG mode.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Listed {
    name: String,
    uuid: String,
    /// Their names and UUIDs.
    slices: Vec<(String, String)>,
}

/// The GPUs that a program sees, as the driver reads the variable: numbers, the
/// start of a GPU's UUID, or a slice's, up to the first that is none.
fn visible(cards: &[Listed], wanted: &str) -> Result<Vec<String>, String> {
    let named = |word: &str| -> Option<String> {
        if let Ok(number) = word.parse::<usize>() {
            return cards.get(number).map(|card| card.name.clone());
        }
        let slices = || cards.iter().flat_map(|card| &card.slices);
        if let Some((name, _)) = slices().find(|(_, uuid)| uuid == word) {
            return Some(name.clone());
        }
        // As older drivers name a slice: MIG-GPU-…/instance/instance.
        let word =
            word.strip_prefix("MIG-").map_or(word, |rest| rest.split('/').next().unwrap_or(rest));
        let mut found = cards.iter().filter(|card| word.len() > 4 && card.uuid.starts_with(word));
        match (found.next(), found.next()) {
            (Some(card), None) => Some(card.name.clone()),
            _ => None,
        }
    };
    let gpus: Vec<String> = wanted.split(',').map(str::trim).map_while(named).collect();
    if gpus.is_empty() {
        return Err(format!(
            "{VISIBLE}={wanted} names none of the {} GPU(s) that there are",
            cards.len()
        ));
    }
    Ok(gpus)
}

/// What `nvidia-smi -L` lists: `GPU 0: NVIDIA H200 (UUID: …)`, and below one in
/// MIG mode `  MIG 1g.18gb     Device  0: (UUID: …)`.
fn listed(text: &str) -> Vec<Listed> {
    let mut cards: Vec<Listed> = Vec::new();
    for line in text.lines() {
        let (what, uuid) = line.split_once("(UUID:").unwrap_or((line, ""));
        let uuid = uuid.trim().trim_end_matches(')').to_owned();
        if let Some((_, name)) = what.strip_prefix("GPU ").and_then(|rest| rest.split_once(": ")) {
            cards.push(Listed { name: name.trim().to_owned(), uuid, slices: Vec::new() });
        } else if let Some(slice) = what.trim_start().strip_prefix("MIG ")
            && let Some(card) = cards.last_mut()
        {
            let profile = slice.split_whitespace().next().unwrap_or_default();
            card.slices.push((format!("{} MIG {profile}", card.name), uuid));
        }
    }
    cards
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
        let names: Vec<String> = listed(text).into_iter().map(|card| card.name).collect();
        assert_eq!(names, ["NVIDIA H200", "Tesla T4"]);
        assert!(listed("No devices found.").is_empty());
    }

    #[test]
    fn only_what_the_program_will_see_is_there() {
        let text = "GPU 0: NVIDIA H200 (UUID: GPU-1a2b)\n  MIG 1g.18gb     Device  0: (UUID: MIG-77)\n\
                    GPU 1: Tesla T4 (UUID: GPU-1a3c)\nGPU 2: Tesla T4 (UUID: GPU-99ff)\n";
        let cards = listed(text);
        let of = |wanted: &str| visible(&cards, wanted);
        let names = |names: &[&str]| Ok(names.iter().map(|&name| name.to_owned()).collect());
        assert_eq!(of("2,0"), names(&["Tesla T4", "NVIDIA H200"]));
        assert_eq!(of("GPU-1a3"), names(&["Tesla T4"]));
        assert_eq!(of("MIG-77"), names(&["NVIDIA H200 MIG 1g.18gb"]));
        assert_eq!(of("MIG-GPU-1a2b/1/0"), names(&["NVIDIA H200"]));
        // What stands behind one that is none is hidden, as by the driver.
        assert_eq!(of("1,7,0"), names(&["Tesla T4"]));
        // Neither of two that begin alike, nothing, and what is not there.
        for none in ["GPU-1a", "", "-1", "MIG-78", "GPU-", "NoDevFiles"] {
            let error = of(none).unwrap_err();
            assert!(error.contains(&format!("CUDA_VISIBLE_DEVICES={none} names none")), "{error}");
        }
    }
}
