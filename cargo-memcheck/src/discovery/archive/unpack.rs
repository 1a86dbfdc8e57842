//! An extracted archive. It has the interface of a build, so that the rest of the pipeline need not
//! distinguish the two.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use memcheck_core::device::Request;

use super::ArchiveError;
use super::extract::{absolute, empty, extract, folder};
use super::manifest::{self, Build, Manifest, WORKSPACE};
use crate::baselines::{SnapshotFile, SourceFunctions};
use crate::build::compile::Built;
use crate::build::workspace::{TestPackage, Workspace};
use crate::discovery::listing::ListedExecutable;
use crate::invocation::devices::{
    self, DeviceKind, DeviceSource, Found, Gpus, Leg, RequestedDevices, Sharing,
};
use crate::invocation::values::UnpackOptions;
use crate::system::binary::Binary;
use crate::system::error::Failure;
use crate::system::gpus::RealGpu;
use crate::system::launcher::Launcher;
use crate::system::libraries::{self, SEARCH_PATH};
use crate::system::temporary::TemporaryFolder;

#[derive(Debug)]
pub(crate) struct Unpacked {
    manifest: Manifest,
    folder: PathBuf,
    sources: PathBuf,
    /// On the machine that built the archive.
    root: PathBuf,
    /// Removed on drop. `None` if the user named a folder.
    temporary: Option<TemporaryFolder>,
    /// The folder that the user named, emptied on drop until `keep` is called.
    emptied: Option<PathBuf>,
}

impl Unpacked {
    pub(crate) fn open(archive: &Path, flags: &UnpackOptions) -> Result<Self, Failure> {
        let (folder, temporary) = folder(flags.extract_to.as_deref())?;
        let sources = match &flags.workspace_remap {
            Some(path) if !path.is_dir() => {
                return Err(ArchiveError::NoSources(path.clone()).into());
            }
            Some(path) => absolute(path)?,
            None => folder.join(WORKSPACE),
        };
        let extracted = extract(archive, flags.line_tables.as_deref(), &folder, &sources);
        let emptied = temporary.is_none().then(|| folder.clone());
        let (manifest, root) = extracted.inspect_err(|_| emptied.iter().for_each(|f| empty(f)))?;
        Ok(Self { manifest, folder, sources, root, temporary, emptied })
    }

    /// A failure before this call empties the user's folder, so that the user can try again.
    pub(crate) fn keep(&mut self) {
        self.emptied = None;
    }

    pub(crate) fn workspace(&self) -> Workspace {
        Workspace::of(self.manifest.metadata.clone(), self.folder.clone())
    }

    pub(crate) fn compiled_in(&self) -> &Path {
        &self.root
    }

    pub(crate) fn sources(&self) -> &Path {
        &self.sources
    }

    /// The package itself can be in another folder, that of `--workspace-remap`.
    pub(crate) fn baselines_of(&self, package: &Path) -> PathBuf {
        let rest = package.strip_prefix(&self.sources).unwrap_or(Path::new(""));
        self.folder.join(WORKSPACE).join(rest)
    }

    pub(crate) fn written(&self, file: &SnapshotFile) -> SourceFunctions {
        let place = file.path.strip_prefix(self.folder.join(WORKSPACE)).ok();
        place.and_then(|place| self.manifest.baselines.get(place)).copied().unwrap_or_default()
    }

    pub(crate) fn is_temporary(&self) -> bool {
        self.temporary.is_some()
    }

    pub(crate) fn commit(&self) -> Option<String> {
        self.manifest.commit.clone()
    }

    pub(crate) fn names_targets(&self) -> bool {
        self.manifest.names_targets
    }

    pub(crate) fn described(&self) -> String {
        let Manifest { commit, profile, features, builds, .. } = &self.manifest;
        let of = commit.as_ref().map(|commit| format!(", commit {commit:.12}"));
        let with = (!features.is_empty()).then(|| format!(", features {}", features.join(",")));
        let kinds: Vec<String> =
            builds.iter().map(|build| manifest::folder(build.kind).display().to_string()).collect();
        let (of, with) = (of.unwrap_or_default(), with.unwrap_or_default());
        format!("built for {}, profile {profile}{with}{of}", kinds.join(" and "))
    }

    pub(crate) fn packages(&self, workspace: &Workspace) -> Vec<TestPackage> {
        let is_in =
            |package: &TestPackage| self.manifest.packages.contains(&package.package.id.repr);
        workspace.test_packages().into_iter().filter(is_in).collect()
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
                    requests: self.manifest.devices.clone(),
                    by: DeviceSource::Archive,
                }
            }
        };
        let has = |kind| self.build(kind).is_some();
        let found = || Found {
            gpus: Gpus::Here(gpus(launcher)),
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
        let legs = devices::resolve(&requested, machine, lacks, sharing, found)?;
        match legs.iter().find(|leg| !has(leg.kind)) {
            Some(leg) => Err(self.not_for(&leg.device).into()),
            None => Ok(legs),
        }
    }

    fn not_for(&self, device: &Request) -> ArchiveError {
        let built: Vec<String> = self.manifest.devices.iter().map(ToString::to_string).collect();
        ArchiveError::NotFor { device: device.to_string(), built: built.join(", ") }
    }

    fn build(&self, kind: DeviceKind) -> Option<&Build> {
        self.manifest.builds.iter().find(|build| build.kind == kind)
    }

    pub(crate) fn nvml(&self) -> Option<PathBuf> {
        let nvml = self.build(DeviceKind::Sim)?.nvml.as_ref()?;
        Some(self.folder.join(nvml))
    }

    /// `packages` must be those of [`Self::packages`].
    pub(crate) fn built(&self, kind: DeviceKind, packages: &[TestPackage]) -> Built {
        let Some(build) = self.build(kind) else { return Built::default() };
        let binaries = build.executables.iter().filter_map(|executable| {
            let is_its = |p: &TestPackage| p.package.id.repr == executable.package;
            let package = packages.iter().position(is_its)?;
            Some(Binary {
                id: executable.id.clone(),
                package,
                path: self.folder.join(&executable.file),
                environment: self.environment(kind, executable, &packages[package]),
            })
        });
        Built { binaries: binaries.collect(), not_built: build.not_built.clone() }
    }

    fn environment(
        &self,
        kind: DeviceKind,
        executable: &manifest::Executable,
        package: &TestPackage,
    ) -> Vec<(String, String)> {
        let shown = |path: &Path| path.display().to_string();
        let mut environment = executable.environment.clone();
        let mut set = |name: &str, value: String| environment.push((name.to_owned(), value));
        set("CARGO_MANIFEST_DIR", shown(package.folder()));
        set("CARGO_MANIFEST_PATH", package.package.manifest_path.to_string());
        let own = self.folder.join(manifest::libraries(kind));
        if own.is_dir()
            && let Ok(joined) = libraries::in_front(own)
        {
            set(SEARCH_PATH, joined.to_string_lossy().into_owned());
        }
        if let Some((was, now)) = &executable.out_dir {
            let now = shown(&self.folder.join(now));
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

impl Drop for Unpacked {
    fn drop(&mut self) {
        if let Some(folder) = &self.emptied {
            empty(folder);
        }
    }
}
