//! Building the test executables of one leg, with cargo.
//!
//! Each kind of leg has a target directory of its own where its features
//! differ from what the user builds by hand: neither a `cargo test` in another
//! window nor a real CUDA build is disturbed.

use std::collections::HashMap;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cargo_metadata::{Artifact, Message, Target, TargetKind};
use memcheck_core::exit;

use crate::cli::CargoFlags;
use crate::devices::Kind;
use crate::error::{Expected, Failure};
use crate::options::{Options, Verbosity};
use crate::toolchain::Toolkit;
use crate::workspace::{TestPackage, Workspace, cargo};

/// Why there are no executables.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BuildError {
    /// Cargo said why, on stderr.
    #[error("the build for {0} failed")]
    Failed(&'static str),
    /// Cargo could not be started, or what it said not be read.
    #[error("cargo: {0}")]
    Cargo(std::io::Error),
}

impl Expected for BuildError {
    fn exit_code(&self) -> u8 {
        exit::BUILD
    }
}

/// One test executable.
#[derive(Debug, Clone)]
pub(crate) struct Binary {
    /// As nextest names it: `app` (unit tests), `app::mem`, `app::bin/tool`.
    pub(crate) id: String,
    /// The index of its package in what was built.
    pub(crate) package: usize,
    /// The file.
    pub(crate) path: PathBuf,
    /// Variables that cargo would set for it.
    pub(crate) environment: Vec<(String, String)>,
}

/// A test target that cargo left out because its features are off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotBuilt {
    /// The package.
    pub(crate) package: String,
    /// The target.
    pub(crate) target: String,
    /// The features that it wants.
    pub(crate) required: Vec<String>,
}

/// What a build made.
#[derive(Debug, Clone, Default)]
pub(crate) struct Built {
    /// The executables, sorted by id.
    pub(crate) binaries: Vec<Binary>,
    /// Targets that were left out.
    pub(crate) not_built: Vec<NotBuilt>,
}

/// The directory that a leg of this kind is built in.
fn target_directory(workspace: &Workspace, kind: Kind) -> PathBuf {
    match kind {
        Kind::Cpu => workspace.target_directory().to_owned(),
        Kind::Sim => workspace.own_directory().join("sim"),
        Kind::Cuda => workspace.own_directory().join("cuda"),
    }
}

/// The features that a leg of this kind adds to those of the command line.
fn features(packages: &[TestPackage], kind: Kind) -> Vec<String> {
    let first = match kind {
        Kind::Cpu => return Vec::new(),
        Kind::Sim => "sim",
        Kind::Cuda => "cuda",
    };
    let mut features: Vec<String> =
        packages.iter().flat_map(|package| package.cuda_features(first)).collect();
    features.sort();
    features.dedup();
    features
}

/// The cargo command that builds for a leg of this kind.
fn command(
    workspace: &Workspace,
    packages: &[TestPackage],
    options: &Options,
    kind: Kind,
    toolkit: Option<&Toolkit>,
) -> Command {
    let mut command = Command::new(cargo());
    command.args(["test", "--no-run", "--message-format", "json-render-diagnostics"]);
    command.args(["--color", options.telling.color.name()]);
    if options.telling.verbosity == Verbosity::Quiet {
        command.arg("--quiet");
    }
    for package in packages {
        command.arg("--package").arg(workspace.spec(&package.package));
    }
    command.args(options.cargo.for_test());
    let features = features(packages, kind);
    if !features.is_empty() {
        command.arg("--features").arg(features.join(","));
    }
    command.arg("--target-dir").arg(target_directory(workspace, kind));
    if let Some(toolkit) = toolkit {
        toolkit.apply(&mut command);
    }
    command
}

/// Builds the test executables of `packages` for a leg of this kind.
pub(crate) fn build(
    workspace: &Workspace,
    packages: &[TestPackage],
    options: &Options,
    kind: Kind,
    toolkit: Option<&Toolkit>,
) -> Result<Built, Failure> {
    let what = match kind {
        Kind::Cpu => "the CPU",
        Kind::Sim => "the simulated CUDA device",
        Kind::Cuda => "the CUDA device",
    };
    let mut child = command(workspace, packages, options, kind, toolkit)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(BuildError::Cargo)?;
    let stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
    let mut artifacts: Vec<Artifact> = Vec::new();
    let mut scripts: HashMap<String, cargo_metadata::BuildScript> = HashMap::new();
    for message in Message::parse_stream(stdout) {
        match message.map_err(BuildError::Cargo)? {
            Message::CompilerArtifact(artifact)
                if artifact.profile.test && artifact.executable.is_some() =>
            {
                artifacts.push(artifact);
            }
            Message::BuildScriptExecuted(script) => {
                scripts.insert(script.package_id.repr.clone(), script);
            }
            _ => {}
        }
    }
    if !child.wait().map_err(BuildError::Cargo)?.success() {
        return Err(BuildError::Failed(what).into());
    }
    let mut built = Built::default();
    let linked: Vec<PathBuf> = scripts
        .values()
        .flat_map(|script| &script.linked_paths)
        .filter_map(|path| library_path(path.as_str(), &target_directory(workspace, kind)))
        .collect();
    for (index, package) in packages.iter().enumerate() {
        let of_package = || artifacts.iter().filter(|a| a.package_id == package.package.id);
        let script = scripts.get(&package.package.id.repr);
        built.binaries.extend(of_package().map(|artifact| Binary {
            id: binary_id(package.name(), &artifact.target),
            package: index,
            path: artifact.executable.clone().expect("filtered above").into_std_path_buf(),
            environment: environment(package, script, artifact, &linked),
        }));
        let left_out = package.package.targets.iter().filter(|target| {
            wanted(&options.cargo, target)
                && !target.required_features.is_empty()
                && of_package()
                    .all(|a| a.target.name != target.name || a.target.kind != target.kind)
        });
        built.not_built.extend(left_out.map(|target| NotBuilt {
            package: package.name().to_owned(),
            target: target.name.clone(),
            required: target.required_features.clone(),
        }));
    }
    built.binaries.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(built)
}

/// Whether a plain `cargo test` with these flags would build `target`, were
/// its features on. A target that is named is cargo's to complain about.
fn wanted(flags: &CargoFlags, target: &Target) -> bool {
    let is = |kind: TargetKind| target.kind.contains(&kind);
    target.test
        && (!flags.names_targets()
            || flags.all_targets
            || flags.tests
            || (flags.bins && is(TargetKind::Bin))
            || (flags.examples && is(TargetKind::Example)))
}

/// The id that nextest gives to an executable.
fn binary_id(package: &str, target: &Target) -> String {
    match target.kind.first() {
        Some(TargetKind::Test) => format!("{package}::{}", target.name),
        Some(TargetKind::Bin) => format!("{package}::bin/{}", target.name),
        Some(TargetKind::Example) => format!("{package}::example/{}", target.name),
        Some(TargetKind::Bench) => format!("{package}::bench/{}", target.name),
        _ => package.to_owned(),
    }
}

/// What cargo sets for a test at run time.
fn environment(
    package: &TestPackage,
    script: Option<&cargo_metadata::BuildScript>,
    artifact: &Artifact,
    linked: &[PathBuf],
) -> Vec<(String, String)> {
    let p = &package.package;
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let path = |value: &Option<cargo_metadata::camino::Utf8PathBuf>| {
        value.as_ref().map(ToString::to_string).unwrap_or_default()
    };
    let mut set = vec![
        ("CARGO", cargo().to_string_lossy().into_owned()),
        ("CARGO_MANIFEST_DIR", package.folder().display().to_string()),
        ("CARGO_MANIFEST_PATH", p.manifest_path.to_string()),
        ("CARGO_PKG_NAME", p.name.to_string()),
        ("CARGO_PKG_VERSION", p.version.to_string()),
        ("CARGO_PKG_VERSION_MAJOR", p.version.major.to_string()),
        ("CARGO_PKG_VERSION_MINOR", p.version.minor.to_string()),
        ("CARGO_PKG_VERSION_PATCH", p.version.patch.to_string()),
        ("CARGO_PKG_VERSION_PRE", p.version.pre.to_string()),
        ("CARGO_PKG_AUTHORS", p.authors.join(":")),
        ("CARGO_PKG_DESCRIPTION", text(&p.description)),
        ("CARGO_PKG_HOMEPAGE", text(&p.homepage)),
        ("CARGO_PKG_REPOSITORY", text(&p.repository)),
        ("CARGO_PKG_LICENSE", text(&p.license)),
        ("CARGO_PKG_LICENSE_FILE", path(&p.license_file)),
        ("CARGO_PKG_README", path(&p.readme)),
        (
            "CARGO_PKG_RUST_VERSION",
            p.rust_version.as_ref().map(ToString::to_string).unwrap_or_default(),
        ),
    ];
    if let Some(script) = script {
        set.push(("OUT_DIR", script.out_dir.to_string()));
    }
    let mut set: Vec<(String, String)> =
        set.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    set.extend(script.into_iter().flat_map(|script| script.env.clone()));
    let deps = artifact.executable.as_ref().and_then(|path| path.parent());
    let inherited = std::env::var_os("LD_LIBRARY_PATH");
    let folders = linked
        .iter()
        .cloned()
        .chain(deps.map(|path| path.as_std_path().to_owned()))
        .chain(deps.and_then(|path| path.parent()).map(|path| path.as_std_path().to_owned()))
        .chain(inherited.iter().flat_map(std::env::split_paths));
    if let Ok(joined) = std::env::join_paths(folders) {
        set.push(("LD_LIBRARY_PATH".to_owned(), joined.to_string_lossy().into_owned()));
    }
    set
}

/// The folder in a build script's `rustc-link-search`, where cargo would put
/// it on the search path of a test: only what was built, as cargo does.
fn library_path(said: &str, target_directory: &Path) -> Option<PathBuf> {
    let path = match said.split_once('=') {
        Some(("dependency" | "crate" | "native" | "framework" | "all", path)) => path,
        _ => said,
    };
    Path::new(path).starts_with(target_directory).then(|| path.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(kind: &str, name: &str) -> Target {
        serde_json::from_value(serde_json::json!({
            "name": name, "kind": [kind], "crate_types": [kind], "src_path": "/x.rs", "test": true,
        }))
        .unwrap()
    }

    #[test]
    fn executables_are_named_as_nextest_names_them() {
        assert_eq!(binary_id("app", &target("lib", "app")), "app");
        assert_eq!(binary_id("app", &target("test", "mem")), "app::mem");
        assert_eq!(binary_id("app", &target("bin", "tool")), "app::bin/tool");
    }

    #[test]
    fn only_targets_that_would_be_tested_can_be_missing() {
        let flags = CargoFlags::default();
        assert!(wanted(&flags, &target("test", "mem")));
        let lib_only = CargoFlags { lib: true, ..CargoFlags::default() };
        assert!(!wanted(&lib_only, &target("test", "mem")));
        let bins = CargoFlags { bins: true, ..CargoFlags::default() };
        assert!(wanted(&bins, &target("bin", "tool")) && !wanted(&bins, &target("test", "mem")));
    }

    #[test]
    fn the_simulated_toolkit_is_never_on_the_search_path_of_a_test() {
        let built = Path::new("/t/memcheck/sim");
        assert!(library_path("native=/t/memcheck/sim/debug/build/x/out", built).is_some());
        assert!(library_path("native=/t/memcheck/toolkit-0.1.0/lib", built).is_none());
    }
}
