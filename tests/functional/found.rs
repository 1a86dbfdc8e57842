//! `docs/found.md`: each row is the accepted figures of a pair of memory tests, and names the line
//! of the sources that they are built with.

use std::collections::BTreeSet;
use std::path::PathBuf;

use memcheck_sources::{folder, text};

use crate::documentation::rows;
use crate::fixture::workspace;

/// The tests of the workspace, and those of the package with another candle.
const TESTS: [&str; 2] = ["tests/tests/found", "tests/found_crates/tests/found"];

/// The most lines of the program of a pair.
const LINES: usize = 25;

struct Finding {
    test: String,
    file: String,
    line: usize,
    code: String,
    figure: String,
    device: String,
    bytes: [u64; 2],
    /// The cell with the link to the change.
    change: String,
}

/// Two tests of one program.
struct Pair {
    name: String,
    /// The lines of the program.
    lines: usize,
    /// The cell with the link to the change, which is a diff of a module, or a function next to the
    /// tests.
    change: String,
}

fn page() -> String {
    text(&workspace().join("docs/found.md"))
}

fn findings() -> Vec<Finding> {
    let page = page();
    let rows = rows(
        &page,
        "| test | file and line | code | figure | bytes before | bytes after | change |\n",
    );
    let finding = |row: &&str| {
        let quoted: Vec<&str> = row.split('`').skip(1).step_by(2).collect();
        let [test, place, code, figure, device, _] = quoted[..] else { panic!("{row}") };
        let (file, line) = place.rsplit_once(':').expect("a line");
        let cells: Vec<&str> = row.split('|').collect();
        let bytes = [cells[5], cells[6]]
            .map(|cell| cell.trim().replace(',', "").parse().expect("a number of bytes"));
        let line = line.parse().expect("a number");
        let [test, file, code, figure, device] =
            [test, file, code, figure, device].map(str::to_owned);
        Finding {
            test,
            file,
            line,
            code,
            figure,
            device,
            bytes,
            change: cells[7].trim().to_owned(),
        }
    };
    rows.iter().map(finding).collect()
}

/// The folder with the tests of a finding.
fn folder_of(finding: &Finding) -> PathBuf {
    let (file, _) = finding.test.split_once("::").expect("a module");
    let folders = TESTS.map(|folder| workspace().join(folder));
    let has_file = |folder: &PathBuf| folder.join(file).with_extension("rs").is_file();
    folders.into_iter().find(has_file).unwrap_or_else(|| panic!("{} has no file", finding.test))
}

/// The accepted figure of a test.
fn accepted(finding: &Finding, side: &str) -> u64 {
    let name = finding.test.replace("::", "__");
    let snapshot = format!("snapshots/found__{name}__{side}@{}.snap", finding.device);
    let snapshot = text(&folder_of(finding).join(snapshot));
    let figure = format!("  {}: ", finding.figure);
    let figures: Vec<_> =
        snapshot.lines().filter_map(|line| line.strip_prefix(&figure)?.parse().ok()).collect();
    assert_eq!(figures.len(), 1, "{}: {}", finding.test, finding.figure);
    figures[0]
}

/// The pairs in a folder of the workspace.
fn pairs(folder: &str) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for entry in std::fs::read_dir(workspace().join(folder)).expect("the tests").flatten() {
        let path = entry.path();
        if path.is_dir() || path.ends_with("main.rs") || path.ends_with("pair.rs") {
            continue;
        }
        let file = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let source = text(&path);
        for module in source.split("\nmod ").skip(1) {
            let (name, module) = module.split_once(" {").expect("a module");
            let (_, pair) = module.split_once("crate::pair! {").expect("a pair");
            let (pair, _) = pair.split_once("\n    }").expect("its end");
            let (_, after) = pair.split_once(" => ").expect("the path of `after`");
            let end = after.find([',', ';']).expect("the end of the path");
            let change = match after[..end].rsplit_once("::").expect("a path") {
                ("crate::changed", module) => {
                    format!("[`{module}.diff`](../{folder}/changes/{module}.diff)")
                }
                (_, function) => format!("[`{function}`](../{folder}/{file}.rs)"),
            };
            let name = format!("{file}::{name}");
            pairs.push(Pair { name, lines: pair.lines().count(), change });
        }
    }
    pairs
}

#[test]
fn every_finding_has_the_accepted_figures_of_its_tests() {
    let findings = findings();
    for finding in &findings {
        assert_eq!([accepted(finding, "before"), accepted(finding, "after")], finding.bytes);
        assert!(finding.bytes[1] < finding.bytes[0], "{} has no gain", finding.test);
    }
    let pairs: Vec<Pair> = TESTS.into_iter().flat_map(pairs).collect();
    let tested: BTreeSet<_> = pairs.iter().map(|pair| (&pair.name, &pair.change)).collect();
    let documented = findings.iter().map(|finding| (&finding.test, &finding.change));
    assert_eq!(documented.collect::<BTreeSet<_>>(), tested);
    for Pair { name, lines, .. } in &pairs {
        assert!(*lines <= LINES, "{name} has {lines} lines");
    }
    assert!(page().contains(&format!("measured {} defects and avoidable peaks:", findings.len())));
}

/// Asserts that the findings in one folder of tests name lines of the sources. A file begins with the
/// name and the version of its package, as the registry's folder of sources does.
fn assert_lines(tests: &str, folder: impl Fn(&str) -> PathBuf) {
    let tests = workspace().join(tests);
    let findings = findings().into_iter().filter(|finding| folder_of(finding) == tests);
    let findings: Vec<Finding> = findings.collect();
    assert!(findings.len() >= 3);
    for Finding { file, line, code, test, .. } in findings {
        let (versioned, path) = file.split_once('/').expect("a package");
        let (package, _) = versioned.rsplit_once('-').expect("a version");
        let sources = folder(package);
        assert!(sources.ends_with(versioned), "{test}: {versioned} is {}", sources.display());
        let source = text(&sources.join(path));
        let found = source.lines().nth(line - 1).expect("the line");
        assert!(found.contains(&code), "{test}: {file}:{line} is {found}");
    }
}

#[test]
fn every_finding_names_a_line() {
    assert_lines(TESTS[0], folder);
}

mod weekly {
    use std::path::{Path, PathBuf};

    use super::{TESTS, assert_lines};
    use crate::fixture::{cargo, memcheck_with, target, workspace};
    use crate::weekly::candle_versions::lock;

    /// The folder of a package, by the output of `cargo metadata`.
    fn folder(metadata: &serde_json::Value, package: &str) -> PathBuf {
        let packages = metadata["packages"].as_array().expect("packages");
        let package = packages.iter().find(|candidate| candidate["name"] == package);
        let manifest = package.and_then(|package| package["manifest_path"].as_str());
        Path::new(manifest.expect("a path")).parent().expect("a folder").to_owned()
    }

    /// The package has the figures of its baselines on both devices, and names lines of its sources.
    #[test]
    #[ignore = "weekly: just found"]
    fn crates_with_another_candle() {
        let package = workspace().join("tests/found_crates");
        lock(&package, "0.9.2");
        let own = target().join("functional/found-crates").display().to_string();
        let variables = [("CARGO_TARGET_DIR", own.as_str()), ("CARGO", env!("CARGO"))];
        for (device, passed) in [("sim", "10 passed, 0 failed"), ("cpu", "8 passed, 0 failed")] {
            let run = memcheck_with(&package, &["run", "--device", device, "--ci"], &variables);
            run.exits(0).prints(passed);
        }
        let mut metadata = cargo();
        metadata.args(["metadata", "--format-version", "1"]).current_dir(&package);
        let metadata = metadata.output().expect("cargo runs");
        let metadata = serde_json::from_slice(&metadata.stdout).expect("JSON");
        assert_lines(TESTS[1], |name| folder(&metadata, name));
    }
}
