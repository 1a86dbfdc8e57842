//! The package `tests/candle_versions` with each version of candle: bytes, growth and values.
//! Ignored: `just candle-versions` runs it, or one version of it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::fixture::{Run, cargo, memcheck_with, target, workspace};
use crate::lock_files;

/// The oldest version that memcheck accepts, and the last one of each later series.
const VERSIONS: [&str; 4] = ["0.9.2", "0.10.2", "0.11.0", "0.11.1"];
/// Selects one of them.
const VARIABLE: &str = "CANDLE_VERSION";
/// With the value `write`, the figures are written instead of compared.
const WRITE: &str = "CANDLE_FIGURES";
const HEADER: &str = "# Test, space or device, figure, value. A figure that differs has the versions of candle.\n\
                      # CANDLE_FIGURES=write just candle-versions measures and writes them.\n";

/// A crate comes after those that require its version.
const CRATES: [&str; 4] = ["candle-transformers", "candle-nn", "candle-core", "candle-kernels"];

pub(super) fn package() -> PathBuf {
    workspace().join("tests/candle_versions")
}

/// Changes the lock file of a package.
fn update(folder: &Path, arguments: &[&str]) {
    let done = cargo().args(["update", "--quiet"]).args(arguments).current_dir(folder).status();
    assert!(done.is_ok_and(|status| status.success()), "cargo update {arguments:?}");
}

/// Locks every crate of candle at one version, as a user does.
pub(crate) fn lock(folder: &Path, version: &str) {
    let lock = folder.join("Cargo.lock");
    std::fs::copy(workspace().join("Cargo.lock"), &lock).expect("a lock file");
    // Adds what the package needs, and removes the rest.
    update(folder, &["--workspace"]);
    let read = || std::fs::read_to_string(&lock).expect("a lock file");
    for krate in CRATES {
        for other in lock_files::versions(&read(), krate).iter().filter(|other| *other != version) {
            update(folder, &["--package", &format!("{krate}@{other}"), "--precise", version]);
        }
        let locked = lock_files::versions(&read(), krate);
        assert_eq!(locked, BTreeSet::from([version.to_owned()]), "{krate}");
    }
}

fn run(folder: &Path, device: &str) -> Run {
    let own = target().join("functional/candle-versions").display().to_string();
    let arguments = ["run", "--device", device, "--message-format", "json", "--no-ci"];
    // The lock file changes between two runs, so that cargo must be asked each time.
    let variables = [("CARGO_TARGET_DIR", own.as_str()), ("CARGO", env!("CARGO"))];
    memcheck_with(folder, &arguments, &variables)
}

/// The lines of `expected.tsv` for a version: test, space, figure and value.
fn expected(version: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(package().join("expected.tsv")).expect("a table");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let of_version = lines.filter_map(|line| match line.rsplit_once("\tonly ") {
        Some((line, versions)) => versions.split(' ').any(|one| one == version).then_some(line),
        None => Some(line),
    });
    of_version.map(str::to_owned).collect()
}

/// The same lines of a run.
fn measured(run: &Run) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for line in run.json().iter().filter(|line| line["type"] == "test-finished") {
        let test = line["test"].as_str().expect("a name");
        let findings = line["findings"].as_array().map_or(&[][..], Vec::as_slice);
        let codes = findings.iter().map(|finding| finding["code"].as_str().expect("a code"));
        let codes: Vec<&str> = codes.collect();
        let device = line["device"].as_str().expect("a device");
        lines.insert(format!("{test}\t{device}\tfindings\t{}", codes.join(" ")));
        // Peaks of the host are those of this machine's processor.
        let figures: &[&str] = match device {
            "cpu" => &["setup", "growth"],
            _ => &["setup", "growth", "peak_allocated", "allocated_total", "allocations"],
        };
        let space = if device == "cpu" { "host" } else { "cuda:0" };
        for figure in figures {
            let value = line["metrics"][space][figure].as_u64().expect("a figure");
            lines.insert(format!("{test}\t{space}\t{figure}\t{value}"));
        }
        let reads = line["values"]["unknown_reads"].as_u64().unwrap_or(0);
        lines.insert(format!("{test}\t{space}\tunknown_reads\t{reads}"));
    }
    lines
}

/// The figures of a version on both devices.
fn figures(version: &str) -> BTreeSet<String> {
    let folder = package();
    lock(&folder, version);
    let mut all = BTreeSet::new();
    for device in ["sim:h100", "cpu"] {
        let run = run(&folder, device);
        // The test that keeps its cache fails.
        assert_eq!(run.code, 100, "candle {version} on {device}:\n{}\n{}", run.stdout, run.stderr);
        all.append(&mut measured(&run));
    }
    all
}

fn assert_figures(version: &str) {
    let (all, expected) = (figures(version), expected(version));
    let lines = |one: &BTreeSet<String>, other: &BTreeSet<String>| {
        one.difference(other).cloned().collect::<Vec<_>>().join("\n")
    };
    assert!(
        all == expected,
        "candle {version}, measured and not expected:\n{}\nexpected and not measured:\n{}",
        lines(&all, &expected),
        lines(&expected, &all)
    );
    println!("candle {version}: {} figures are as expected", all.len());
}

/// Measures all versions, and writes their figures to `expected.tsv`. A line that not every version
/// has names those that have it.
fn write_figures() {
    let measured = VERSIONS.map(|version| (version, figures(version)));
    let all: BTreeSet<&String> = measured.iter().flat_map(|(_, lines)| lines).collect();
    let mut table = String::from(HEADER);
    for line in all {
        let having = measured.iter().filter(|(_, lines)| lines.contains(line));
        let versions: Vec<&str> = having.map(|(version, _)| *version).collect();
        let only = if versions.len() == VERSIONS.len() {
            String::new()
        } else {
            format!("\tonly {}", versions.join(" "))
        };
        table.push_str(&format!("{line}{only}\n"));
    }
    std::fs::write(package().join("expected.tsv"), table).expect("the table is written");
}

#[test]
#[ignore = "weekly: just candle-versions"]
fn every_version_of_candle_measures_the_expected_figures() {
    if std::env::var(WRITE).is_ok_and(|value| value == "write") {
        return write_figures();
    }
    match std::env::var(VARIABLE) {
        Ok(version) => {
            assert!(VERSIONS.contains(&version.as_str()), "{version} is none of {VERSIONS:?}");
            assert_figures(&version);
        }
        Err(_) => VERSIONS.into_iter().for_each(assert_figures),
    }
}
