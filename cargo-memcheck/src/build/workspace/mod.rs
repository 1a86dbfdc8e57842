//! The workspace: which packages are selected, which of them have memory tests, and which candle
//! crates those can reach.

mod candles;
mod commit;
mod configuration;
mod cudarc;
mod error;
#[cfg(test)]
mod example;
mod features;
mod package;
mod places;
mod reach;
mod remote;
mod selection;
mod separable;

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_metadata::{Dependency, DependencyKind, Metadata, Package, PackageId};
use memcheck_core::measurement::cargo_lock::CANDLE;

use crate::invocation::values::CargoOptions;
use crate::system::process::{self, ShortRun};

use cudarc::CUDARC;

pub(crate) use candles::{CandleSource, OtherCandle};
pub(crate) use commit::{branch, commit, git, uncommitted};
pub(crate) use configuration::{configuration_files, program};
pub(crate) use error::WorkspaceError;
pub(crate) use features::DeviceFeatures;
pub(crate) use package::TestPackage;
pub(crate) use places::{Places, pending_of_results};
pub(crate) use remote::{escaped, line_address, web_address};

pub(crate) use memcheck_core::measurement::cargo_lock::RUNTIME;

#[derive(Debug)]
pub(crate) struct Workspace {
    metadata: Metadata,
    target_directory: PathBuf,
    build_directory: PathBuf,
    /// True if cargo must not choose the build directory itself.
    has_own_build_directory: bool,
}

impl Workspace {
    /// `own` is the tool's folder on this machine; `metadata` can be that of another one.
    pub(crate) fn of(metadata: Metadata, own: PathBuf) -> Self {
        let build_directory = own.clone();
        Self { metadata, build_directory, target_directory: own, has_own_build_directory: false }
    }

    pub(crate) fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    pub(crate) fn load(flags: &CargoOptions) -> Result<Self, WorkspaceError> {
        Self::from(parse(&run_metadata(flags, &[])?)?, flags)
    }

    /// Folders and members only, because cargo may have to download the dependencies to describe
    /// them.
    pub(crate) fn outline(flags: &CargoOptions) -> Result<Self, WorkspaceError> {
        Self::from(parse(&run_metadata(flags, &["--no-deps"])?)?, flags)
    }

    fn from(metadata: Metadata, flags: &CargoOptions) -> Result<Self, WorkspaceError> {
        check(&metadata)?;
        let target_directory = match &flags.target_dir {
            Some(path) => std::path::absolute(path)
                .map_err(|error| WorkspaceError::Metadata(error.to_string()))?,
            None => metadata.target_directory.clone().into_std_path_buf(),
        };
        if flags.revision && !separable::is_separable(&metadata, flags) {
            let own = target_directory.join("memcheck/revision");
            let build_directory = own.clone();
            return Ok(Self {
                metadata,
                target_directory: own,
                build_directory,
                has_own_build_directory: true,
            });
        }
        // Cargo has the same rule: without `build.build-dir` it uses the target directory.
        let build_directory = match &metadata.build_directory {
            Some(build) if *build != metadata.target_directory => build.clone().into_std_path_buf(),
            _ => target_directory.clone(),
        };
        let has_own_build_directory = false;
        Ok(Self { metadata, target_directory, build_directory, has_own_build_directory })
    }

    pub(crate) fn root(&self) -> &Path {
        self.metadata.workspace_root.as_std_path()
    }

    pub(crate) fn is_virtual(&self) -> bool {
        self.package_at_root().is_none()
    }

    fn package_at_root(&self) -> Option<&Package> {
        // `root_package` does not help here because it is the package of the current folder.
        let root = &*self.metadata.workspace_root;
        self.members().into_iter().find(|package| package.manifest_path.parent() == Some(root))
    }

    /// The name for people: that of the package at the root or of the only package, else that of the
    /// folder.
    pub(crate) fn name(&self) -> String {
        let of_package = match self.members().as_slice() {
            [only] => Some(*only),
            _ => self.package_at_root(),
        };
        let of_folder = || self.root().file_name().unwrap_or(self.root().as_os_str());
        of_package.map_or_else(
            || of_folder().to_string_lossy().into_owned(),
            |package| package.name.to_string(),
        )
    }

    pub(crate) fn target_directory(&self) -> &Path {
        &self.target_directory
    }

    /// `build.build-dir`.
    pub(crate) fn build_directory(&self) -> &Path {
        &self.build_directory
    }

    pub(crate) fn has_own_build_directory(&self) -> bool {
        self.has_own_build_directory
    }

    /// Build scripts watch this path, so all builds that share a build directory must have the same
    /// one.
    pub(crate) fn toolkit_directory(&self) -> PathBuf {
        self.build_directory.join(concat!("memcheck/toolkit-", env!("CARGO_PKG_VERSION")))
    }

    pub(crate) fn own_directory(&self) -> PathBuf {
        self.target_directory.join("memcheck")
    }

    pub(crate) fn pending_directory(&self) -> PathBuf {
        self.own_directory().join("pending")
    }

    pub(crate) fn results_directory(&self) -> PathBuf {
        self.own_directory().join("results")
    }

    pub(crate) fn members(&self) -> Vec<&Package> {
        self.metadata.workspace_packages()
    }

    pub(crate) fn test_packages(&self) -> Vec<TestPackage> {
        self.members().into_iter().filter_map(|package| self.test_package(package)).collect()
    }

    fn test_package(&self, package: &Package) -> Option<TestPackage> {
        let dependency = package.dependencies.iter().find(|dependency| {
            // A build script has no memory tests.
            dependency.name == RUNTIME && dependency.kind != DependencyKind::Build
        })?;
        let reached = self.reachable(&package.id);
        let is_reached = |name: &str| reached.iter().any(|package| package.name.as_str() == name);
        let runtime = self.dependency(&package.id, RUNTIME);
        let candle = runtime.and_then(|runtime| self.dependency(&runtime.id, CANDLE));
        // Without its feature `candle`, the runtime cannot switch on a feature of candle's crates.
        let candle_features = [
            (CANDLE, "candle-cuda"),
            ("candle-nn", "nn-cuda"),
            ("candle-transformers", "transformers-cuda"),
        ]
        .into_iter()
        .filter(|(name, _)| candle.is_some() && is_reached(name))
        .map(|(_, feature)| feature)
        .collect();
        let own_features = match candle {
            Some(_) => BTreeSet::new(),
            None => self.cuda_of_own_candle(package),
        };
        Some(TestPackage {
            package: package.clone(),
            runtime: dependency.rename.clone().unwrap_or_else(|| dependency.name.clone()),
            candle_features,
            own_features,
            candle: candle.map(|candle| candle.version.to_string()),
            can_use_cuda: candle.is_some() || is_reached(CANDLE) || is_reached(CUDARC),
            features: BTreeMap::new(),
        })
    }

    /// The feature `cuda` of each candle crate that the package itself depends on.
    fn cuda_of_own_candle(&self, package: &Package) -> BTreeSet<String> {
        self.resolved_dependencies(package)
            .into_iter()
            .filter(|(declared, chosen)| {
                declared.kind != DependencyKind::Build
                    && chosen.name.starts_with("candle-")
                    && chosen.features.contains_key("cuda")
            })
            .map(|(declared, _)| {
                format!("{}/cuda", declared.rename.as_ref().unwrap_or(&declared.name))
            })
            .collect()
    }

    fn dependency(&self, of: &PackageId, name: &str) -> Option<&Package> {
        let resolve = self.metadata.resolve.as_ref()?;
        let node = resolve.nodes.iter().find(|node| node.id == *of)?;
        let is_named = |package: &&Package| {
            package.name.as_str() == name && node.dependencies.contains(&package.id)
        };
        self.metadata.packages.iter().find(is_named)
    }

    /// The declared dependencies that are used, each with the package that cargo has chosen.
    pub(crate) fn resolved_dependencies<'a>(
        &'a self,
        package: &'a Package,
    ) -> Vec<(&'a Dependency, &'a Package)> {
        let nodes = self.metadata.resolve.iter().flat_map(|resolve| &resolve.nodes);
        let Some(node) = nodes.into_iter().find(|node| node.id == package.id) else {
            return Vec::new();
        };
        let chosen = |declared: &Dependency| {
            self.metadata.packages.iter().find(|package| {
                package.name.as_str() == declared.name
                    && declared.req.matches(&package.version)
                    && node.dependencies.contains(&package.id)
            })
        };
        let declared = package.dependencies.iter();
        declared.filter_map(|declared| Some((declared, chosen(declared)?))).collect()
    }

    pub(crate) fn resolved(&self, name: &str) -> Option<&Package> {
        self.metadata.packages.iter().find(|package| package.name.as_str() == name)
    }
}

/// `CARGO` can name another program.
fn check(metadata: &Metadata) -> Result<(), WorkspaceError> {
    let has_folder = |package: &&Package| package.manifest_path.parent().is_some();
    if let Some(package) = metadata.packages.iter().find(|package| !has_folder(package)) {
        let (name, path) = (&package.name, &package.manifest_path);
        let why = format!("the manifest of package {name} is not in a folder: `{path}`");
        return Err(WorkspaceError::Metadata(why));
    }
    let is_known = |id: &PackageId| metadata.packages.iter().any(|package| package.id == *id);
    let members = &metadata.workspace_members;
    if let Some(id) = members.iter().find(|id| !is_known(id)) {
        let why = format!("the workspace has a member that is not a package: `{}`", id.repr);
        return Err(WorkspaceError::Metadata(why));
    }
    if !metadata.workspace_default_members.is_available() {
        let why = "`workspace_default_members` is missing: cargo is older than 1.71".to_owned();
        return Err(WorkspaceError::Metadata(why));
    }
    Ok(())
}

fn run_metadata(flags: &CargoOptions, how: &[&str]) -> Result<Vec<u8>, WorkspaceError> {
    let output = process::short(&metadata(flags, how), ShortRun::TRUSTED);
    let output = output.map_err(WorkspaceError::NoCargo)?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
        return Err(match output.status.signal() {
            Some(_) => WorkspaceError::Killed(output.status, stderr),
            None => WorkspaceError::Metadata(stderr),
        });
    }
    Ok(output.stdout)
}

fn parse(metadata: &[u8]) -> Result<Metadata, WorkspaceError> {
    serde_json::from_slice(metadata).map_err(|error| WorkspaceError::Metadata(error.to_string()))
}

fn metadata(flags: &CargoOptions, how: &[&str]) -> Command {
    let mut command = Command::new(cargo());
    command.args(["metadata", "--format-version", "1"]).args(how).args(flags.for_metadata());
    command
}

/// The cargo that started this process, or else the one on the path.
pub(crate) fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_has_the_name_of_its_package_or_of_its_folder() {
        use super::example::{package, workspace};

        let name = |root: &str, packages: &[&'static str]| {
            let packages: Vec<_> = packages.iter().map(|name| package(name)).collect();
            workspace(root, &packages.iter().collect::<Vec<_>>()).name()
        };
        assert_eq!(name("/code/folder", &["app"]), "app");
        assert_eq!(name("/code/folder", &["app", "helpers"]), "folder");
    }

    #[test]
    fn metadata_that_no_cargo_writes_is_an_error() {
        let whole = serde_json::json!({
            "packages": [{
                "name": "app", "version": "0.1.0", "id": "app", "source": null, "targets": [],
                "manifest_path": "/ws/Cargo.toml", "dependencies": [], "features": {},
            }],
            "workspace_members": ["app"], "workspace_default_members": ["app"], "resolve": null,
            "workspace_root": "/ws", "target_directory": "/ws/target", "version": 1,
        });
        let read = |change: &dyn Fn(&mut serde_json::Value)| {
            let mut text = whole.clone();
            change(&mut text);
            Workspace::from(serde_json::from_value(text).unwrap(), &CargoOptions::default())
        };
        assert_eq!(read(&|_| {}).unwrap().members().len(), 1);
        type Change<'a> = &'a dyn Fn(&mut serde_json::Value);
        let changes: [(Change<'_>, &str); 4] = [
            (&|text| text["packages"][0]["manifest_path"] = "".into(), "not in a folder"),
            (&|text| text["packages"][0]["manifest_path"] = "/".into(), "not in a folder"),
            (&|text| text["workspace_members"][0] = "other".into(), "`other`"),
            (
                &|text| drop(text.as_object_mut().unwrap().remove("workspace_default_members")),
                "1.71",
            ),
        ];
        for (change, message) in changes {
            let error = read(change).unwrap_err();
            assert!(error.to_string().contains(message), "{error}");
        }
    }
}
