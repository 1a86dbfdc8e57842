//! The lines that give a package and memcheck-runtime the same candle.

use std::path::Path;

use cargo_metadata::Package;
use cargo_metadata::semver::{Op, Version, VersionReq};
use memcheck_core::input;
use memcheck_core::measurement::cargo_lock::{CANDLE, RUNTIME};
use toml_edit::DocumentMut;

use super::super::Workspace;
use super::source::CandleSource;

/// Cargo accepts a version of candle-core only if the crates above it accept it, too.
const FROM_ABOVE: [&str; 4] = ["candle-transformers", "candle-nn", CANDLE, "candle-kernels"];

/// `own` is the runtime's candle-core, and `other` that of the program.
pub(super) fn steps(
    workspace: &Workspace,
    runtime: &Package,
    (own, other): (&Package, &Package),
    program: &[&Package],
) -> Vec<String> {
    let required = runtime.dependencies.iter().find(|dependency| dependency.name == CANDLE);
    if let Some(required) = required.filter(|required| !required.req.matches(&other.version)) {
        if let Some(lowest) = lowest(&required.req).filter(|it| accept(program, other, it)) {
            let mut steps = vec![format!(
                "{RUNTIME} needs {CANDLE} {}; the requirements of the program accept {lowest}, so use \
                 it for both, in this order:",
                required.req
            )];
            steps.extend(raised(program, &lowest));
            steps.extend(precise(workspace, program, |name| {
                of_program(program, name, &lowest).max(&lowest)
            }));
            return steps;
        }
        return vec![format!(
            "{RUNTIME} needs {CANDLE} {}, so that it cannot use {}: use such a version, or the \
             runtime without candle (`default-features = false, features = [\"global-allocator\"]`)",
            required.req, other.version
        )];
    }
    match (CandleSource::of(own), CandleSource::of(other)) {
        (CandleSource::Registry, CandleSource::Registry) => {
            let mut steps = vec!["use one version for both, in this order:".to_owned()];
            steps.extend(precise(workspace, program, |name| {
                of_program(program, name, &other.version)
            }));
            steps
        }
        (CandleSource::Registry, source) => {
            let used: Vec<&str> = program.iter().map(|package| package.name.as_str()).collect();
            let above = other.manifest_path.parent().and_then(|folder| folder.parent());
            let crates = source.crates(&used, above.map(|folder| folder.as_std_path()));
            let mut steps = Vec::new();
            let manifest = workspace.root().join("Cargo.toml");
            match is_patched(&manifest) {
                true => steps.push(format!(
                    "{} has a patch, but Cargo.lock keeps the version of the registry:",
                    manifest.display()
                )),
                false => {
                    let entry =
                        |name: &&str| format!("{name} = {}", source.entry(name, workspace.root()));
                    steps.push(format!("add to {}:", manifest.display()));
                    steps.push("[patch.crates-io]".to_owned());
                    steps.extend(crates.iter().map(entry));
                    steps.push("then make Cargo.lock follow it:".to_owned());
                }
            }
            steps.push(update(workspace, &crates));
            steps
        }
        (of_runtime, _) => vec![format!(
            "`[patch.crates-io]` gives {RUNTIME} the {CANDLE} of {of_runtime}: give {} the same \
             source, with the same revision",
            CandleSource::of(other)
        )],
    }
}

/// True if the manifest replaces candle-core.
fn is_patched(manifest: &Path) -> bool {
    let text = input::read_text(manifest, input::SOURCE).unwrap_or_default();
    let manifest: DocumentMut = text.parse().unwrap_or_default();
    let patch = manifest.get("patch").and_then(|patch| patch.get("crates-io"));
    patch.is_some_and(|patch| patch.get(CANDLE).is_some())
}

/// The lowest version that a requirement such as `>=0.9.2, <0.12` accepts.
fn lowest(requirement: &VersionReq) -> Option<Version> {
    let from = requirement.comparators.iter().find(|it| it.op == Op::GreaterEq)?;
    Some(Version::new(from.major, from.minor?, from.patch?))
}

/// True if each package of the program that depends on `candle` accepts that version of it.
fn accept(program: &[&Package], candle: &Package, version: &Version) -> bool {
    let declared = program.iter().flat_map(|package| &package.dependencies);
    let mut of_candle = declared.filter(|it| {
        // A dependency with a path has the version that is in the folder.
        it.name == *candle.name && it.req.matches(&candle.version) && it.path.is_none()
    });
    CandleSource::of(candle) == CandleSource::Registry
        && *version > candle.version
        && of_candle.all(|dependency| dependency.req.matches(version))
}

/// The command that moves the program's crates of candle to a later version: a crate takes those below
/// it along.
fn raised(program: &[&Package], version: &Version) -> Option<String> {
    let of = |name: &str| program.iter().find(|package| package.name.as_str() == name);
    let highest = FROM_ABOVE.into_iter().find_map(of)?;
    let Package { name, version: before, .. } = highest;
    Some(format!("cargo update -p {name}@{before} --precise {version}"))
}

/// The version of a crate of candle in the program, or else `core`.
fn of_program<'a>(program: &[&'a Package], name: &str, core: &'a Version) -> &'a Version {
    let same = program.iter().find(|package| package.name.as_str() == name);
    same.map_or(core, |package| &package.version)
}

/// The commands that move the crates of the runtime to the versions that `wanted` returns.
fn precise<'a>(
    workspace: &Workspace,
    program: &[&Package],
    wanted: impl Fn(&str) -> &'a Version,
) -> Vec<String> {
    let is_program = |package: &Package| program.iter().any(|known| known.id == package.id);
    let mut commands = Vec::new();
    for name in FROM_ABOVE {
        for package in workspace.metadata().packages.iter().filter(|it| it.name.as_str() == name) {
            let wanted = wanted(name);
            if !is_program(package) && package.version != *wanted {
                let version = &package.version;
                commands.push(format!("cargo update -p {name}@{version} --precise {wanted}"));
            }
        }
    }
    commands
}

/// The command that removes the registry's versions of these crates from the lock file.
fn update(workspace: &Workspace, crates: &[&str]) -> String {
    let packages = &workspace.metadata().packages;
    let of_registry = packages.iter().filter(|package| {
        crates.contains(&package.name.as_str())
            && package.source.as_ref().is_some_and(|source| source.repr.starts_with("registry+"))
    });
    let specs = of_registry.map(|package| {
        let same =
            |other: &&Package| other.name == package.name && other.version == package.version;
        match packages.iter().filter(same).count() {
            1 => format!(" -p {}@{}", package.name, package.version),
            // A crate of a git repository with the same version makes the short form ambiguous.
            _ => format!(" -p '{}'", package.id.repr),
        }
    });
    format!("cargo update{}", specs.collect::<String>())
}
