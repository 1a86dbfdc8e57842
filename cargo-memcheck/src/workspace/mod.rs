//! The workspace: which packages are selected, which of them carry memory
//! tests, and which candle crates these can reach.

mod commit;
mod error;
mod package;
mod places;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_metadata::{DependencyKind, Metadata, Package, PackageId};
use globset::Glob;
use memcheck_core::lock::CANDLE;

use crate::cli::CargoFlags;
use crate::fresh::{Place, manifests, surroundings};

pub(crate) use commit::commit;
pub(crate) use error::WorkspaceError;
pub(crate) use package::TestPackage;
pub(crate) use places::{Places, pending_of_results};

/// The crate that a package depends on to have memory tests.
pub(crate) use memcheck_core::lock::RUNTIME;

/// The workspace as cargo sees it.
#[derive(Debug)]
pub(crate) struct Workspace {
    metadata: Metadata,
    target_directory: PathBuf,
    build_directory: PathBuf,
}

impl Workspace {
    /// What cargo said elsewhere; `own` is where the tool keeps its files here.
    pub(crate) fn of(metadata: Metadata, own: PathBuf) -> Self {
        Self { metadata, build_directory: own.clone(), target_directory: own }
    }

    /// What cargo said.
    pub(crate) fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Asks cargo, or reads what it said the last time where that still holds.
    pub(crate) fn load(flags: &CargoFlags) -> Result<Self, WorkspaceError> {
        let command = metadata(flags, &[]);
        let place = |folder: &Path| Place::of(folder, "metadata", &command);
        let kept = Places::candidates(flags).iter().find_map(|folder| place(folder).read());
        if let Some(metadata) = kept {
            return Self::from(metadata, flags);
        }
        let began = place(Path::new(""));
        let workspace = Self::ask(flags, &[])?;
        let watched = surroundings(flags, &cargo())
            .and_then(|watched| manifests(&workspace.metadata, watched));
        began.below(&workspace.own_directory()).write(watched, &workspace.metadata);
        Ok(workspace)
    }

    /// The same without what the packages depend on, which cargo may have to
    /// fetch: folders and members only.
    fn outline(flags: &CargoFlags) -> Result<Self, WorkspaceError> {
        Self::ask(flags, &["--no-deps"])
    }

    fn ask(flags: &CargoFlags, how: &[&str]) -> Result<Self, WorkspaceError> {
        let output = metadata(flags, how).output().map_err(WorkspaceError::NoCargo)?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
            return Err(WorkspaceError::Metadata(said));
        }
        let metadata: Metadata = serde_json::from_slice(&output.stdout)
            .map_err(|error| WorkspaceError::Metadata(error.to_string()))?;
        Self::from(metadata, flags)
    }

    fn from(metadata: Metadata, flags: &CargoFlags) -> Result<Self, WorkspaceError> {
        let target_directory = match &flags.target_dir {
            Some(path) => std::path::absolute(path)
                .map_err(|error| WorkspaceError::Metadata(error.to_string()))?,
            None => metadata.target_directory.clone().into_std_path_buf(),
        };
        // Cargo's own rule: without `build.build-dir` it is the target directory.
        let build_directory = match &metadata.build_directory {
            Some(build) if *build != metadata.target_directory => build.clone().into_std_path_buf(),
            _ => target_directory.clone(),
        };
        Ok(Self { metadata, target_directory, build_directory })
    }

    /// The folder of the workspace's Cargo.toml.
    pub(crate) fn root(&self) -> &Path {
        self.metadata.workspace_root.as_std_path()
    }

    /// Whether the workspace's folder is not that of a package, too.
    pub(crate) fn is_virtual(&self) -> bool {
        // Not `root_package`: that is the one of the current folder.
        let at_root = |package: &&Package| {
            package.manifest_path.parent() == Some(&*self.metadata.workspace_root)
        };
        !self.members().iter().any(at_root)
    }

    /// The target directory.
    pub(crate) fn target_directory(&self) -> &Path {
        &self.target_directory
    }

    /// The directory of cargo's intermediate files: its `build.build-dir`.
    pub(crate) fn build_directory(&self) -> &Path {
        &self.build_directory
    }

    /// The folder of the simulated toolkit. Build scripts watch its path, so every
    /// build that shares a build directory must find it in the same place.
    pub(crate) fn toolkit_directory(&self) -> PathBuf {
        self.build_directory.join(concat!("memcheck/toolkit-", env!("CARGO_PKG_VERSION")))
    }

    /// Where the tool keeps its own files.
    pub(crate) fn own_directory(&self) -> PathBuf {
        self.target_directory.join("memcheck")
    }

    /// Where `--ci` leaves pending snapshots.
    pub(crate) fn pending_directory(&self) -> PathBuf {
        self.own_directory().join("pending")
    }

    /// Where the results of a run are kept unless somebody says otherwise.
    pub(crate) fn results_directory(&self) -> PathBuf {
        self.own_directory().join("results")
    }

    /// Every package of the workspace.
    pub(crate) fn members(&self) -> Vec<&Package> {
        self.metadata.workspace_packages()
    }

    /// Every package of the workspace that depends on the runtime.
    pub(crate) fn test_packages(&self) -> Vec<TestPackage> {
        self.members().into_iter().filter_map(|package| self.test_package(package)).collect()
    }

    /// The selected packages that depend on the runtime; cargo's own rules.
    pub(crate) fn select(&self, flags: &CargoFlags) -> Result<Vec<TestPackage>, WorkspaceError> {
        let selected = self.selected(flags)?;
        let with_runtime: Vec<TestPackage> =
            selected.iter().filter_map(|package| self.test_package(package)).collect();
        if with_runtime.is_empty() {
            return Err(WorkspaceError::NoRuntime(names(&selected)));
        }
        Ok(with_runtime)
    }

    /// The packages that a list of specs names, or all.
    pub(crate) fn named(&self, specs: &[String]) -> Result<Vec<&Package>, WorkspaceError> {
        if specs.is_empty() {
            return Ok(self.members());
        }
        self.matching(specs)
    }

    fn selected(&self, flags: &CargoFlags) -> Result<Vec<&Package>, WorkspaceError> {
        if !flags.packages.is_empty() {
            return self.matching(&flags.packages);
        }
        if flags.workspace {
            let excluded: HashSet<&PackageId> =
                self.matching(&flags.exclude)?.into_iter().map(|package| &package.id).collect();
            let members = self.members().into_iter();
            return Ok(members.filter(|package| !excluded.contains(&package.id)).collect());
        }
        Ok(self.metadata.workspace_default_packages())
    }

    fn matching(&self, specs: &[String]) -> Result<Vec<&Package>, WorkspaceError> {
        let members = self.members();
        let mut found: Vec<&Package> = Vec::new();
        for spec in specs {
            let before = found.len();
            for package in &members {
                if matches(spec, package) && found.iter().all(|known| known.id != package.id) {
                    found.push(package);
                }
            }
            if found.len() == before && !members.iter().any(|package| matches(spec, package)) {
                return Err(WorkspaceError::NoMember(spec.clone(), names(&members)));
            }
        }
        Ok(found)
    }

    fn test_package(&self, package: &Package) -> Option<TestPackage> {
        let dependency = package.dependencies.iter().find(|dependency| {
            dependency.name == RUNTIME && dependency.kind != DependencyKind::Build
        })?;
        let reached = self.reachable(&package.id);
        let is_reached = |name: &str| reached.iter().any(|package| package.name.as_str() == name);
        let candle_features =
            [("candle-nn", "nn-cuda"), ("candle-transformers", "transformers-cuda")]
                .into_iter()
                .filter(|(name, _)| is_reached(name))
                .map(|(_, feature)| feature)
                .collect();
        let runtime = self.dependency(&package.id, RUNTIME);
        let candle = runtime.and_then(|runtime| self.dependency(&runtime.id, CANDLE));
        Some(TestPackage {
            package: package.clone(),
            runtime: dependency.rename.clone().unwrap_or_else(|| dependency.name.clone()),
            candle_features,
            candle: candle.map(|candle| candle.version.to_string()),
        })
    }

    /// The package of this name that `of` itself depends on.
    fn dependency(&self, of: &PackageId, name: &str) -> Option<&Package> {
        let resolve = self.metadata.resolve.as_ref()?;
        let node = resolve.nodes.iter().find(|node| node.id == *of)?;
        let is_named = |package: &&Package| {
            package.name.as_str() == name && node.dependencies.contains(&package.id)
        };
        self.metadata.packages.iter().find(is_named)
    }

    /// All packages in the resolved graph below `root`.
    fn reachable(&self, root: &PackageId) -> Vec<&Package> {
        let Some(resolve) = &self.metadata.resolve else { return Vec::new() };
        let mut seen: HashSet<&PackageId> = HashSet::from([root]);
        let mut open = vec![root];
        while let Some(id) = open.pop() {
            let node = resolve.nodes.iter().find(|node| &node.id == id);
            for dependency in node.into_iter().flat_map(|node| &node.deps) {
                // A dependency's own tests are not built.
                let counts = id == root
                    || dependency.dep_kinds.iter().any(|k| k.kind != DependencyKind::Development);
                if counts && seen.insert(&dependency.pkg) {
                    open.push(&dependency.pkg);
                }
            }
        }
        self.metadata.packages.iter().filter(|package| seen.contains(&package.id)).collect()
    }

    /// How cargo is told about `package`: by name, unless that is ambiguous.
    pub(crate) fn spec(&self, package: &Package) -> String {
        let same_name = self.metadata.packages.iter().filter(|other| other.name == package.name);
        if same_name.count() == 1 { package.name.to_string() } else { package.id.repr.clone() }
    }

    /// The package of this name in the resolved graph.
    pub(crate) fn resolved(&self, name: &str) -> Option<&Package> {
        self.metadata.packages.iter().find(|package| package.name.as_str() == name)
    }
}

/// The command that asks cargo for the workspace.
fn metadata(flags: &CargoFlags, how: &[&str]) -> Command {
    let mut command = Command::new(cargo());
    command.args(["metadata", "--format-version", "1"]).args(how).args(flags.for_metadata());
    command
}

/// The cargo that started us, or the one on the path.
pub(crate) fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn names(packages: &[&Package]) -> String {
    packages.iter().map(|package| package.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// Whether `spec` (a name, `name@version`, an id or a glob) means `package`.
fn matches(spec: &str, package: &Package) -> bool {
    if spec == package.id.repr {
        return true;
    }
    if let Some((name, version)) = spec.split_once('@') {
        return name == package.name.as_str() && version == package.version.to_string();
    }
    if spec.contains(['*', '?', '[']) {
        return Glob::new(spec)
            .is_ok_and(|glob| glob.compile_matcher().is_match(package.name.as_str()));
    }
    spec == package.name.as_str()
}
