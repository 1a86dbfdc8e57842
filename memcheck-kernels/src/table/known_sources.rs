//! Compares the table of known sources of memcheck-limits with the versions of candle's packages in
//! cargo's registry. `CUDA_SOURCES=write` writes it, and keeps the rows of versions that the
//! registry does not have.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use memcheck_limits::cuda_source::{self, Identity};
use memcheck_sources::{folder, text, workspace};

use super::editions::{EDITIONS, Edition};

/// The packages, each with the files whose kernels or launchers the simulated device has.
const PACKAGES: [(&str, &str); 3] = [
    ("candle-flash-attn", "kernels/flash_api.cu"),
    ("candle-flash-attn-v3", "hkernel/flash_api.cu"),
    ("candle-kernels", "src"),
];

/// The versions of the flash-attention packages whose launchers are those of memcheck-sim.
const FLASH_ATTENTION: [&str; 1] = ["0.11.1"];

/// True if the kernels and launchers of a version were compared with those of the device.
fn is_compared(package: &str, version: &str) -> bool {
    match package {
        "candle-kernels" => Edition::of(version).is_some(),
        _ => FLASH_ATTENTION.contains(&version),
    }
}

/// The versions that contain a source, by package, file and identity.
type Sources = BTreeMap<(String, String, Identity), BTreeSet<(Vec<u32>, String)>>;

fn is_writing() -> bool {
    std::env::var_os("CUDA_SOURCES").is_some_and(|value| value == "write")
}

/// The folders of the versions of a package next to that of candle-kernels in Cargo.lock.
pub(super) fn versions(package: &str) -> BTreeMap<Vec<u32>, (String, PathBuf)> {
    let registry = folder("candle-kernels");
    let registry = registry.parent().expect("the folder of the registry");
    let entries = std::fs::read_dir(registry).expect("the registry").filter_map(Result::ok);
    let version = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let version = name.strip_prefix(package)?.strip_prefix('-')?.to_owned();
        Some((order(&version)?, (version, entry.path())))
    };
    entries.filter_map(version).collect()
}

/// The numbers of a version, by which it is sorted; `None` for a prerelease.
fn order(version: &str) -> Option<Vec<u32>> {
    version.split('.').map(|number| number.parse().ok()).collect()
}

/// The CUDA sources below a path.
fn files(path: &Path) -> Vec<PathBuf> {
    if !path.is_dir() {
        return if path.exists() { vec![path.to_owned()] } else { Vec::new() };
    }
    let entries = std::fs::read_dir(path).expect("a folder").map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let mut sources: Vec<PathBuf> = folders.iter().flat_map(|folder| self::files(folder)).collect();
    sources.extend(files.into_iter().filter(|path| path.extension().is_some_and(|it| it == "cu")));
    sources
}

fn in_registry() -> Sources {
    let mut sources = Sources::new();
    for (package, path) in PACKAGES {
        for (order, (version, folder)) in versions(package) {
            // The registry of another machine can have versions that were never compared.
            if !is_compared(package, &version) {
                continue;
            }
            for file in files(&folder.join(path)) {
                let identity = Identity::of(&file, &[], |path| std::fs::read(path).ok());
                let name = file.strip_prefix(&folder).unwrap().to_str().unwrap().to_owned();
                let key = (package.to_owned(), name, identity.expect("a source"));
                sources.entry(key).or_default().insert((order.clone(), version.clone()));
            }
        }
    }
    sources
}

fn committed() -> Sources {
    let row = |source: &cuda_source::KnownSource| {
        let key = (source.package.to_owned(), source.file.to_owned(), source.identity);
        let versions = source.versions.iter().map(|it| (order(it).unwrap(), (*it).to_owned()));
        (key, versions.collect())
    };
    cuda_source::all().iter().map(row).collect()
}

fn rows(sources: &Sources) -> String {
    let row =
        |((package, file, identity), versions): (&(String, String, Identity), &BTreeSet<_>)| {
            let versions: Vec<&String> =
                versions.iter().map(|(_, version): &(_, _)| version).collect();
            format!("    source(0x{identity}, {package:?}, {file:?}, &{versions:?}),\n")
        };
    let mut sorted: Vec<_> = sources.iter().collect();
    sorted.sort_by_key(|((package, file, _), versions)| (package, file, *versions));
    sorted.into_iter().map(row).collect()
}

#[test]
fn the_known_sources_are_those_of_the_registry() {
    let mut expected = in_registry();
    let present: BTreeSet<(String, String)> = PACKAGES
        .iter()
        .flat_map(|(package, _)| {
            versions(package).into_values().map(|it| ((*package).into(), it.0))
        })
        .collect();
    for ((package, file, identity), versions) in committed() {
        let kept =
            versions.into_iter().filter(|it| !present.contains(&(package.clone(), it.1.clone())));
        for version in kept {
            let key = (package.clone(), file.clone(), identity);
            expected.entry(key).or_default().insert(version);
        }
    }
    let path = workspace().join("memcheck-limits/src/cuda_source/table.rs");
    let source = text(&path);
    let (head, _) = source.split_once("= &[\n").expect("the table");
    let expected = format!("{head}= &[\n{}];\n", rows(&expected));
    if is_writing() {
        std::fs::write(&path, &expected).expect("the table is written");
        return;
    }
    let lines = |text: &str| -> BTreeSet<String> { text.lines().map(str::to_owned).collect() };
    let (old, new) = (lines(&source), lines(&expected));
    assert!(
        source == expected,
        "{} is not current; missing: {:#?}; superfluous: {:#?}. `just cuda-sources` writes it",
        path.display(),
        new.difference(&old).collect::<Vec<_>>(),
        old.difference(&new).collect::<Vec<_>>()
    );
}

/// A version whose identities are in the table must be compared with the rows of kernels too.
#[test]
fn every_known_version_of_candle_kernels_has_an_edition() {
    let known = cuda_source::all().iter().filter(|source| source.package == "candle-kernels");
    let known: BTreeSet<&str> = known.flat_map(|source| source.versions).copied().collect();
    let compared: BTreeSet<&str> = EDITIONS.iter().flat_map(|it| it.versions).copied().collect();
    assert_eq!(known, compared);
    let in_lock = folder("candle-kernels");
    let in_lock = in_lock.file_name().unwrap().to_str().unwrap();
    assert!(known.contains(in_lock.trim_start_matches("candle-kernels-")), "{in_lock}");
}
