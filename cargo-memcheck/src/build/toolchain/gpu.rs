//! Looks for real GPUs and a CUDA compiler by running programs, because only test processes open a
//! driver.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use memcheck_core::runs::capture;
use memcheck_core::runs::process_end::End;
use memcheck_core::size::counted;

use crate::build::leg::{Found, Gpus};
use crate::invocation::devices::Probe;
use crate::invocation::options::environment;
use crate::system::gpus::{RealGpu, VISIBLE};
use crate::system::launcher::{self, Launcher, TURN};
use crate::system::process::{self, Capture, Interrupt, ShortRun, Watch};

/// nvidia-smi can hang if the driver does not respond.
const ANSWER: Duration = Duration::from_secs(20);

/// The GPUs of the machine on which `launcher` starts tests, and the compiler of this machine.
pub(crate) fn probe(probe: Probe, launcher: &Launcher) -> Found {
    let (gpus, launched) = match probe {
        Probe::All => (Gpus::Here(gpus(launcher)), launcher.is_some()),
        Probe::Compiler => (Gpus::Elsewhere, false),
    };
    Found { gpus, launched, nvcc: nvcc() }
}

pub(crate) fn gpus(launcher: &Launcher) -> Result<Vec<RealGpu>, String> {
    let mut command = launcher.command(Path::new("nvidia-smi"));
    command.arg("-L");
    let (program, kind, timeout) = match launcher {
        Launcher::None => ("nvidia-smi".to_owned(), process::ProcessKind::Own, ANSWER),
        Launcher::Command(_) => {
            (launcher::shown(&command), process::ProcessKind::SilentLauncher(None), TURN)
        }
    };
    let none = |why: &str| format!("no NVIDIA driver answers ({program}{why})");
    let interrupt = Interrupt::listen().map_err(|error| error.to_string())?;
    let watch = Watch {
        kind,
        timeout,
        capture: Capture::Kept,
        most: capture::STREAM,
        interrupt: &interrupt,
        report: None,
    };
    let Ok(ended) = process::run(command, watch, |_| {}) else {
        return Err(none(" was not found"));
    };
    let status = match ended.end {
        Some(End::Exited(status)) => status,
        Some(End::TimedOut(_)) => return Err(none(" hangs")),
        None => return Err(none(" was interrupted")),
    };
    let text = ended.output.stdout;
    let cards = listed(&text);
    if !status.success() || cards.is_empty() {
        let first_line = text.lines().next().unwrap_or("it lists no GPU").trim();
        return Err(none(&format!(": {first_line}")));
    }
    let wanted = std::env::var(VISIBLE).ok();
    match (launcher, wanted) {
        (Launcher::None, Some(wanted)) => visible(&cards, &wanted),
        (Launcher::None, None) => Ok(expand_slices(&cards)),
        (Launcher::Command(_), wanted) => gpus_behind_launcher(&cards, wanted.as_deref()),
    }
}

/// With its slices if it is in MIG mode.
#[derive(Debug, Clone, PartialEq, Eq)]
struct DriverGpu {
    name: String,
    uuid: String,
    slices: Vec<(String, String)>,
}

impl DriverGpu {
    /// `word` is the name by which a program can see the GPU.
    fn to_gpu(&self, index: usize, word: &str, uuid: Option<String>) -> RealGpu {
        let slice = !self.slices.is_empty();
        RealGpu {
            index: number(index),
            name: self.name.clone(),
            uuid,
            word: word.to_owned(),
            slice,
        }
    }
}

fn number(index: usize) -> u16 {
    u16::try_from(index).unwrap_or(u16::MAX)
}

fn expand_slices(cards: &[DriverGpu]) -> Vec<RealGpu> {
    let mut gpus: Vec<RealGpu> = Vec::new();
    for (place, card) in cards.iter().enumerate() {
        if card.slices.is_empty() {
            let uuid = Some(card.uuid.clone()).filter(|uuid| !uuid.is_empty());
            // The UUID, because the driver can number the GPUs in another order than nvidia-smi.
            let word = uuid.clone().unwrap_or_else(|| place.to_string());
            gpus.push(card.to_gpu(gpus.len(), &word, uuid));
        }
        for (name, uuid) in &card.slices {
            gpus.push(slice(gpus.len(), name, uuid));
        }
    }
    gpus
}

fn slice(index: usize, name: &str, uuid: &str) -> RealGpu {
    let (index, name, word) = (number(index), name.to_owned(), uuid.to_owned());
    RealGpu { index, name, uuid: Some(word.clone()), word, slice: true }
}

/// As in the driver, the first invalid word and all words after it are ignored.
fn visible(cards: &[DriverGpu], wanted: &str) -> Result<Vec<RealGpu>, String> {
    let named = |(index, word): (usize, &str)| -> Option<RealGpu> {
        if let Ok(number) = word.parse::<usize>() {
            // The driver can number the GPUs in an order other than that of the list, so that the
            // UUID is not known.
            return cards.get(number).map(|card| card.to_gpu(index, word, None));
        }
        let slices = || cards.iter().flat_map(|card| &card.slices);
        if let Some((name, uuid)) = slices().find(|(_, uuid)| uuid == word) {
            return Some(slice(index, name, uuid));
        }
        // Older drivers have this name for a slice: MIG-GPU-…/instance/instance.
        let of_card = word.strip_prefix("MIG-").and_then(|rest| rest.split('/').next());
        let start = of_card.unwrap_or(word);
        // `GPU-` alone begins every UUID.
        let mut found = cards.iter().filter(|card| start.len() > 4 && card.uuid.starts_with(start));
        match (found.next(), found.next(), of_card) {
            (Some(card), None, Some(_)) => {
                Some(RealGpu { slice: true, ..card.to_gpu(index, word, Some(word.to_owned())) })
            }
            (Some(card), None, None) => Some(card.to_gpu(index, word, Some(card.uuid.clone()))),
            _ => None,
        }
    };
    let gpus: Vec<RealGpu> = words(wanted).enumerate().map_while(named).collect();
    if gpus.is_empty() {
        return Err(format!(
            "{VISIBLE}={wanted} names none of the {} of this machine",
            counted(cards.len() as u64, "GPU", "GPUs")
        ));
    }
    Ok(gpus)
}

fn words(wanted: &str) -> impl Iterator<Item = &str> {
    wanted.split(',').map(str::trim)
}

/// By number or word, not by UUID, because the next test can run on a machine with other GPUs.
fn gpus_behind_launcher(cards: &[DriverGpu], wanted: Option<&str>) -> Result<Vec<RealGpu>, String> {
    let words: Vec<&str> = wanted.into_iter().flat_map(words).filter(|w| !w.is_empty()).collect();
    if words.is_empty() {
        let gpu = |(index, card): (usize, &DriverGpu)| card.to_gpu(index, &index.to_string(), None);
        return Ok(cards.iter().enumerate().map(gpu).collect());
    }
    let gpu = |(index, word): (usize, &&str)| {
        let card = word.parse::<usize>().ok().and_then(|number| cards.get(number));
        let card = card.or_else(|| cards.get(index)).or_else(|| cards.last())?;
        let slice = word.starts_with("MIG-") || !card.slices.is_empty();
        Some(RealGpu { slice, ..card.to_gpu(index, word, None) })
    };
    Ok(words.iter().enumerate().filter_map(gpu).collect())
}

/// Lines are `GPU 0: NVIDIA H200 (UUID: …)`, and below it for each slice
/// `  MIG 1g.18gb     Device  0: (UUID: …)`.
fn listed(text: &str) -> Vec<DriverGpu> {
    let mut cards: Vec<DriverGpu> = Vec::new();
    for line in text.lines() {
        let (what, uuid) = line.split_once("(UUID:").unwrap_or((line, ""));
        let uuid = uuid.trim().trim_end_matches(')').to_owned();
        if let Some((_, name)) = what.strip_prefix("GPU ").and_then(|rest| rest.split_once(": ")) {
            cards.push(DriverGpu { name: name.trim().to_owned(), uuid, slices: Vec::new() });
        } else if let Some(slice) = what.trim_start().strip_prefix("MIG ")
            && let Some(card) = cards.last_mut()
        {
            let profile = slice.split_whitespace().next().unwrap_or_default();
            card.slices.push((format!("{} MIG {profile}", card.name), uuid));
        }
    }
    cards
}

/// All that is derived from the text of `nvidia-smi -L` and of the variable for visible GPUs.
#[cfg(any(test, fuzzing))]
pub(crate) fn read_gpus(text: &str, wanted: &str) {
    let cards = listed(text);
    let _ = (expand_slices(&cards), visible(&cards, wanted));
    let _ = gpus_behind_launcher(&cards, Some(wanted));
}

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
            let mut command = Command::new(path);
            command.arg("--version");
            let output = process::short(&command, ShortRun::within(ANSWER)).ok()?;
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
    fn the_launcher_runs_nvidia_smi_on_the_machine_of_the_tests() {
        let launched = |line: &str| gpus(&Launcher::read(line, Path::new("/")).unwrap());
        let there = launched("sh -c 'test \"$1\" = -L && echo \"GPU 0: T4 (UUID: x)\"'").unwrap();
        assert_eq!(names(&there), ["T4"]);
        let error = launched("sh -c 'echo no node; exit 1'").unwrap_err();
        assert!(error.contains("nvidia-smi -L: no node"), "{error}");
        let error = launched("/no/such/srun --x").unwrap_err();
        assert!(error.contains("/no/such/srun --x nvidia-smi -L was not found"), "{error}");
    }

    fn names(gpus: &[RealGpu]) -> Vec<&str> {
        gpus.iter().map(|gpu| gpu.name.as_str()).collect()
    }

    fn words(gpus: &[RealGpu]) -> Vec<&str> {
        gpus.iter().map(|gpu| gpu.word.as_str()).collect()
    }

    const LIST: &str = "GPU 0: NVIDIA H200 (UUID: GPU-1a2b)\n  MIG 1g.18gb     Device  0: (UUID: MIG-77)\n  \
        MIG 2g.35gb     Device  1: (UUID: MIG-78)\nGPU 1: Tesla T4 (UUID: GPU-1a3c)\nGPU 2: Tesla T4 (UUID: GPU-99ff)\n";

    #[test]
    fn every_gpu_and_every_slice_can_be_assigned_to_a_test() {
        let gpus = expand_slices(&listed(LIST));
        assert_eq!(words(&gpus), ["MIG-77", "MIG-78", "GPU-1a3c", "GPU-99ff"]);
        assert_eq!(
            names(&gpus),
            ["NVIDIA H200 MIG 1g.18gb", "NVIDIA H200 MIG 2g.35gb", "Tesla T4", "Tesla T4"]
        );
        assert_eq!(gpus.iter().map(|gpu| gpu.index).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!(
            gpus.iter().map(|gpu| gpu.slice).collect::<Vec<_>>(),
            [true, true, false, false]
        );
        assert!(gpus.iter().all(|gpu| gpu.uuid.as_deref() == Some(gpu.word.as_str())));
        assert_eq!(
            words(&expand_slices(&listed("GPU 0: Tesla T4\nGPU 1: Tesla T4\n"))),
            ["0", "1"]
        );
        assert!(listed("No devices found.").is_empty());
    }

    #[test]
    fn only_gpus_that_the_program_can_see_are_available() {
        let cards = listed(LIST);
        let of = |wanted: &str| visible(&cards, wanted);
        let both = of("2,0").unwrap();
        assert_eq!(names(&both), ["Tesla T4", "NVIDIA H200"]);
        // A number stays a number, because only the driver knows which GPU it denotes.
        assert_eq!(words(&both), ["2", "0"]);
        assert_eq!((both[0].index, &both[0].uuid, both[1].index), (0, &None, 1));
        assert!(!both[0].slice && both[1].slice, "a GPU in MIG mode is its first slice");
        let by_start = of("GPU-1a3").unwrap();
        assert_eq!((words(&by_start), names(&by_start)), (vec!["GPU-1a3"], vec!["Tesla T4"]));
        assert_eq!(by_start[0].uuid.as_deref(), Some("GPU-1a3c"));
        let slices = of("MIG-78,MIG-77").unwrap();
        assert_eq!(names(&slices), ["NVIDIA H200 MIG 2g.35gb", "NVIDIA H200 MIG 1g.18gb"]);
        assert!(slices.iter().all(|gpu| gpu.slice));
        let older = of("MIG-GPU-1a2b/1/0").unwrap();
        assert_eq!(words(&older), ["MIG-GPU-1a2b/1/0"]);
        assert!(older[0].slice);
        // The words after an invalid one are hidden, as they are by the driver.
        assert_eq!(words(&of("1,7,0").unwrap()), ["1"]);
        // An ambiguous UUID prefix, an empty value, and entries that match no GPU.
        for none in ["GPU-1a", "", "-1", "MIG-79", "GPU-", "NoDevFiles"] {
            let error = of(none).unwrap_err();
            assert!(error.contains(&format!("CUDA_VISIBLE_DEVICES={none} names none")), "{error}");
        }
    }

    #[test]
    fn gpus_behind_a_launcher_are_numbers_unless_the_variable_names_them() {
        let cards = listed("GPU 0: H200 (UUID: GPU-1)\nGPU 1: T4 (UUID: GPU-2)\n");
        let numbers = gpus_behind_launcher(&cards, None).unwrap();
        assert_eq!((words(&numbers), names(&numbers)), (vec!["0", "1"], vec!["H200", "T4"]));
        assert!(numbers.iter().all(|gpu| gpu.uuid.is_none()), "the next node has others");
        let named = gpus_behind_launcher(&cards, Some("1")).unwrap();
        assert_eq!((words(&named), names(&named)), (vec!["1"], vec!["T4"]));
    }
}
