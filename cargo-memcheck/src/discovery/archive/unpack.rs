//! An extracted archive. It has the interface of a build, so that the rest of the pipeline need not
//! distinguish the two.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use memcheck_core::device::Request;
use memcheck_core::wire::protocol::{self, Entry};

use super::ArchiveError;
use super::extract::{Extracted, extract};
use super::manifest::{self, Build, Manifest, TestTable, WORKSPACE};
use crate::baselines::SourceFunctions;
use crate::build::compile::Built;
use crate::build::leg::{self, DeviceKind, Found, Gpus, Leg};
use crate::build::workspace::{DeviceFeatures, TestPackage, Workspace};
use crate::discovery::listing::ListedExecutable;
use crate::invocation::devices::{DeviceSource, RequestedDevices, Sharing};
use crate::invocation::values::UnpackOptions;
use crate::system::binary::Binary;
use crate::system::error::Failure;
use crate::system::gpus::RealGpu;
use crate::system::launcher::Launcher;
use crate::system::libraries::{self, SEARCH_PATH};
use crate::system::process::Interrupt;

#[derive(Debug)]
pub(crate) struct Unpacked {
    extracted: Extracted,
    /// The tests by kind of device if `--no-run` reads them from the archive.
    tables: Option<BTreeMap<DeviceKind, TestTable>>,
}

impl Unpacked {
    pub(crate) fn open(archive: &Path, flags: &UnpackOptions) -> Result<Self, Failure> {
        if let Some(path) = flags.workspace_remap.as_ref().filter(|path| !path.is_dir()) {
            return Err(ArchiveError::NoSources(path.clone()).into());
        }
        let interrupt = Interrupt::listen().context("listening for signals")?;
        let extracted = extract(archive, flags, &interrupt)?;
        let tables = match flags.no_run {
            true => Some(tables(archive, &extracted)?),
            false => None,
        };
        Ok(Self { extracted, tables })
    }

    /// A failure before this call empties the user's folder, so that the user can try again.
    pub(crate) fn keep(&mut self) {
        self.extracted.folder.keep();
    }

    pub(crate) fn workspace(&self) -> Workspace {
        Workspace::of(self.extracted.metadata.clone(), self.folder().to_owned())
    }

    pub(crate) fn compiled_in(&self) -> &Path {
        &self.extracted.root
    }

    pub(crate) fn sources(&self) -> &Path {
        &self.extracted.sources
    }

    /// The package itself can be in another folder, that of `--workspace-remap`.
    pub(crate) fn baselines_of(&self, package: &Path) -> PathBuf {
        let rest = package.strip_prefix(&self.extracted.sources).unwrap_or(Path::new(""));
        self.folder().join(WORKSPACE).join(rest)
    }

    pub(crate) fn written(&self, baseline: &Path) -> SourceFunctions {
        let place = baseline.strip_prefix(self.folder().join(WORKSPACE)).ok();
        place
            .and_then(Path::to_str)
            .and_then(|place| self.extracted.manifest.baselines.get(place))
            .copied()
            .unwrap_or_default()
    }

    fn folder(&self) -> &Path {
        &self.extracted.folder.path
    }

    pub(crate) fn is_temporary(&self) -> bool {
        self.extracted.folder.is_temporary()
    }

    pub(crate) fn uncommitted(&self) -> Option<String> {
        self.extracted.manifest.uncommitted.clone()
    }

    pub(crate) fn commit(&self) -> Option<String> {
        self.extracted.manifest.commit.clone()
    }

    pub(crate) fn names_targets(&self) -> bool {
        self.extracted.manifest.names_targets
    }

    pub(crate) fn described(&self) -> String {
        let Manifest { commit, profile, features, builds, .. } = &self.extracted.manifest;
        let of = commit.as_ref().map(|commit| format!(", commit {commit:.12}"));
        let with = (!features.is_empty()).then(|| format!(", features {}", features.join(",")));
        let kinds: Vec<&str> = builds.iter().map(|build| manifest::folder(build.kind)).collect();
        let (of, with) = (of.unwrap_or_default(), with.unwrap_or_default());
        format!("built for {}, profile {profile}{with}{of}", kinds.join(" and "))
    }

    pub(crate) fn packages(&self, workspace: &Workspace) -> Vec<TestPackage> {
        let known: BTreeSet<&String> = self.extracted.manifest.packages.iter().collect();
        let is_in = |package: &TestPackage| known.contains(&package.package.id.repr);
        let mut packages: Vec<TestPackage> =
            workspace.test_packages().into_iter().filter(is_in).collect();
        for package in &mut packages {
            for build in &self.extracted.manifest.builds {
                let names = build.features.get(&package.package.id.repr).cloned();
                let features = names.map(|names| DeviceFeatures { names, by: "the archive" });
                package.features.extend(features.map(|features| (build.kind, features)));
            }
        }
        packages
    }

    pub(crate) fn legs(
        &self,
        requested: &RequestedDevices,
        machine: &str,
        (launcher, sharing): (&Launcher, Sharing),
        gpus: impl FnOnce(&Launcher) -> Result<Vec<RealGpu>, String>,
    ) -> Result<Vec<Leg>, Failure> {
        let requested = match requested.by {
            DeviceSource::Flag | DeviceSource::Environment => requested.clone(),
            DeviceSource::Configuration | DeviceSource::Default | DeviceSource::Archive => {
                RequestedDevices {
                    requests: self.extracted.manifest.devices.clone(),
                    by: DeviceSource::Archive,
                }
            }
        };
        let has = |kind| self.build(kind).is_some();
        let found = || Found {
            gpus: match self.tables {
                Some(_) => Gpus::Elsewhere,
                None => Gpus::Here(gpus(launcher)),
            },
            launched: launcher.is_some(),
            nvcc: match has(DeviceKind::Cuda) {
                true => Ok("built already".to_owned()),
                false => Err("the archive was not built for CUDA".to_owned()),
            },
        };
        // This check comes before the GPUs are resolved, so that a missing build in the archive is
        // not reported as a missing GPU.
        let wants = |request: &Request| matches!(request, Request::Cuda(_));
        if let Some(request) =
            requested.requests.iter().find(|r| wants(r) && !has(DeviceKind::Cuda))
        {
            return Err(self.not_for(request).into());
        }
        let lacks =
            if has(DeviceKind::Sim) { None } else { Some("the archive was not built for sim") };
        let legs = leg::resolve(&requested, machine, lacks, sharing, found)?;
        match legs.iter().find(|leg| !has(leg.kind)) {
            Some(leg) => Err(self.not_for(&leg.device).into()),
            None => Ok(legs),
        }
    }

    fn not_for(&self, device: &Request) -> ArchiveError {
        let built: Vec<String> =
            self.extracted.manifest.devices.iter().map(ToString::to_string).collect();
        ArchiveError::NotFor { device: device.to_string(), built: built.join(", ") }
    }

    fn build(&self, kind: DeviceKind) -> Option<&Build> {
        self.extracted.manifest.builds.iter().find(|build| build.kind == kind)
    }

    pub(crate) fn nvml(&self) -> Option<PathBuf> {
        let nvml = self.build(DeviceKind::Sim)?.nvml.as_ref()?;
        Some(self.folder().join(nvml))
    }

    /// The lists of `built` if they are read from the archive. An executable without a list is an
    /// error, because its tests would be missing.
    pub(crate) fn listed(
        &self,
        kind: DeviceKind,
        built: &Built,
    ) -> Option<Result<Vec<ListedExecutable>, ArchiveError>> {
        let table = self.tables.as_ref()?.get(&kind)?;
        let executables = self.build(kind).into_iter().flat_map(|build| &build.executables);
        let known: BTreeMap<&str, &Option<Vec<Entry>>> =
            executables.map(|executable| executable.id.as_str()).zip(&table.executables).collect();
        let one = |binary: &Binary| {
            let tests = known.get(binary.id.as_str()).copied().and_then(Option::as_ref);
            let mut tests = tests.ok_or_else(|| ArchiveError::Unlisted(binary.id.clone()))?.clone();
            tests.sort_by(|a, b| a.name.cmp(&b.name));
            Ok(ListedExecutable::with_tests(binary.clone(), tests))
        };
        Some(built.binaries.iter().map(one).collect())
    }

    /// `packages` must be those of [`Self::packages`].
    pub(crate) fn built(&self, kind: DeviceKind, packages: &[TestPackage]) -> Built {
        let Some(build) = self.build(kind) else { return Built::default() };
        let ids = packages.iter().map(|package| package.package.id.repr.as_str());
        let numbers: BTreeMap<&str, usize> = ids.zip(0..).collect();
        let binaries = build.executables.iter().filter_map(|executable| {
            let package = *numbers.get(executable.package.as_str())?;
            let path = self.folder().join(&executable.file);
            let environment = self.environment(kind, executable, &packages[package]);
            Some(Binary::new(executable.id.clone(), package, path, environment))
        });
        Built { binaries: binaries.collect(), not_built: build.not_built.clone() }
    }

    fn environment(
        &self,
        kind: DeviceKind,
        executable: &manifest::ArchivedExecutable,
        package: &TestPackage,
    ) -> Vec<(String, String)> {
        let shown = |path: &Path| path.display().to_string();
        let mut environment = executable.environment.clone();
        let mut set = |name: &str, value: String| environment.push((name.to_owned(), value));
        set("CARGO_MANIFEST_DIR", shown(package.folder()));
        set("CARGO_MANIFEST_PATH", package.package.manifest_path.to_string());
        let own = self.folder().join(manifest::libraries(kind));
        if own.is_dir()
            && let Ok(joined) = libraries::in_front(own)
        {
            set(SEARCH_PATH, joined.to_string_lossy().into_owned());
        }
        if let Some((was, now)) = &executable.out_dir {
            let now = shown(&self.folder().join(now));
            set("OUT_DIR", now.clone());
            // A build script can also have passed a path in its output directory to the test
            // (`rustc-env`).
            for (_, value) in &mut environment {
                *value = value.replace(&shown(was), &now);
            }
        }
        environment
    }

    /// Otherwise the tests of an executable that lists none here would be missing from the run
    /// without a message.
    pub(crate) fn check(
        &self,
        kind: DeviceKind,
        carried: &[ListedExecutable],
    ) -> Result<(), ArchiveError> {
        let build = self.build(kind);
        let known: BTreeMap<&str, Option<usize>> = build
            .into_iter()
            .flat_map(|build| &build.executables)
            .map(|executable| (executable.id.as_str(), executable.tests))
            .collect();
        let silent =
            carried.iter().filter(|carried| carried.tests.is_empty()).find_map(|carried| {
                let there = match known.get(carried.binary.id.as_str())? {
                    Some(0) => return None,
                    Some(tests) => format!("but {tests} on the machine that built it"),
                    None if carried.warning.is_some() => {
                        "and could not be listed on the machine that built it".to_owned()
                    }
                    None => return None,
                };
                Some((carried, there))
            });
        let Some((carried, there)) = silent else { return Ok(()) };
        let warning = carried.warning.as_ref().map(|warning| format!("\n{warning}"));
        let id = carried.binary.id.clone();
        Err(ArchiveError::LostTests { id, there, warning: warning.unwrap_or_default() })
    }
}

/// Derives everything from the page of an archive that needs no other file of it. Returns false if
/// the page is refused.
#[cfg(any(test, fuzzing))]
pub(crate) fn inspect(json: &[u8]) -> bool {
    let Some(extracted) = Extracted::of_page(json) else { return false };
    let unpacked = Unpacked { extracted, tables: None };
    let packages = unpacked.packages(&unpacked.workspace());
    for kind in [DeviceKind::Cpu, DeviceKind::Sim, DeviceKind::Cuda] {
        let built = unpacked.built(kind, &packages);
        let listed = built.binaries.into_iter();
        let listed = listed.map(|binary| ListedExecutable::with_tests(binary, Vec::new()));
        let _ = unpacked.check(kind, &listed.collect::<Vec<_>>());
    }
    let _ = (unpacked.described(), unpacked.nvml(), unpacked.commit());
    true
}

fn tables(
    archive: &Path,
    extracted: &Extracted,
) -> Result<BTreeMap<DeviceKind, TestTable>, ArchiveError> {
    let refused = |why: String| ArchiveError::refused(archive, &why);
    let one = |build: &Build| {
        let path = extracted.folder.path.join(&build.tests);
        let text = fs::read(&path).map_err(|error| ArchiveError::Io(path, error))?;
        let table: TestTable = serde_json::from_slice(&text)
            .map_err(|error| refused(format!("{}: {error}", build.tests)))?;
        if table.memcheck != protocol::VERSION {
            let (theirs, ours) = (table.memcheck, protocol::VERSION);
            return Err(refused(format!("its tests have version {theirs} instead of {ours}")));
        }
        if table.executables.len() != build.executables.len() {
            return Err(refused(format!("{} is not for its executables", build.tests)));
        }
        Ok((build.kind, table))
    };
    extracted.manifest.builds.iter().map(one).collect()
}
