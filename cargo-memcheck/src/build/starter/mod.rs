//! The first memory test of a package: the package, its manifest with the dependency, and the text
//! of the test, which uses a model or a layer of the package if one is found.

mod accepted;
mod command_source;
mod manifest;
mod model;
mod patch;
mod text;

use std::path::{Path, PathBuf};

use cargo_metadata::{Dependency, Package};
use memcheck_core::measurement::cargo_lock::{CANDLE, RUNTIME};

pub(crate) use command_source::CommandSource;
pub(crate) use manifest::{ChangedFile, StarterError};
pub(crate) use text::workflow;

use crate::build::workspace::Workspace;
use crate::invocation::cli::InitArgs;
use model::ModelStruct;
use patch::Patch;

/// The package, with its crates and the model that the test uses.
#[derive(Debug)]
pub(crate) struct Starter {
    package: String,
    folder: PathBuf,
    root: PathBuf,
    /// The dependency on the runtime, if the package has it already.
    runtime: Option<Dependency>,
    /// That of another package of the workspace.
    another: Option<Dependency>,
    crates: CrateNames,
    model: Option<ModelStruct>,
    /// The crates of candle that memcheck-runtime must have from the package's source.
    patch: Patch,
}

/// The names by which a test uses the crates.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CrateNames {
    candle_core: String,
    candle_nn: Option<String>,
    runtime: String,
    /// `None` if the package has no library.
    library: Option<String>,
}

impl Starter {
    /// # Errors
    /// If the package is not named and is not clear, or does not depend on a candle that the runtime
    /// accepts.
    pub(crate) fn find(workspace: &Workspace, args: &InitArgs) -> Result<Self, StarterError> {
        let package = choose(workspace, args.package.as_deref())?;
        let name = package.name.to_string();
        let dependency = |name: &str| package.dependencies.iter().find(|it| it.name == name);
        let candle = dependency(CANDLE).ok_or_else(|| StarterError::NoCandle(name.clone()))?;
        if !accepted::can_accept(&candle.req) {
            return Err(StarterError::OtherVersion(name, candle.req.to_string()));
        }
        let runtime = dependency(RUNTIME);
        let library = package.targets.iter().find(|target| target.is_lib());
        let crates = CrateNames {
            candle_core: crate_name(candle),
            candle_nn: dependency("candle-nn").map(crate_name),
            runtime: runtime.map_or_else(|| RUNTIME.replace('-', "_"), crate_name),
            library: library.map(|library| library.name.replace('-', "_")),
        };
        let model =
            library.and_then(|library| ModelStruct::find(library.src_path.as_std_path(), &crates));
        let folder = package.manifest_path.parent().map(|folder| folder.as_std_path().to_owned());
        Ok(Self {
            package: name,
            folder: folder.unwrap_or_default(),
            root: workspace.root().to_owned(),
            runtime: runtime.cloned(),
            another: declared_by_any(workspace),
            crates,
            model,
            patch: Patch::of(workspace, candle),
        })
    }

    pub(crate) fn package(&self) -> &str {
        &self.package
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn workspace_root(&self) -> &Path {
        &self.root
    }

    /// The manifests that change, each with its text: that of the package gets the dependency, and
    /// that of the workspace a patch if candle is not that of the registry.
    ///
    /// # Errors
    /// If a manifest cannot be read.
    pub(crate) fn manifests(&self, args: &InitArgs) -> Result<Vec<ChangedFile>, StarterError> {
        let (own, root) = (self.folder.join("Cargo.toml"), self.root.join("Cargo.toml"));
        let mut changed: Vec<ChangedFile> = Vec::new();
        if self.runtime.is_none() {
            changed.push(ChangedFile::edit(own.clone(), |text| {
                manifest::with_runtime(text, &self.folder, args, self.another.as_ref())
            })?);
        }
        let patch = |text: &str| self.patch.added(text, &self.root);
        match changed.iter_mut().find(|file| file.path == root) {
            Some(file) => file.edit_again(patch)?,
            None => changed.push(ChangedFile::edit(root, patch)?),
        }
        changed.retain(|file| file.before != file.text);
        Ok(changed)
    }

    /// The source from which CI installs the command; `None` if other machines do not have it.
    pub(crate) fn command_source(&self, args: &InitArgs) -> Option<CommandSource> {
        CommandSource::find(args, self.runtime.as_ref().or(self.another.as_ref()))
    }

    /// The command that makes an existing lock file follow the patch.
    pub(crate) fn update(&self) -> Option<String> {
        self.patch.update(&self.root)
    }

    pub(crate) fn test(&self) -> String {
        text::test(&self.crates, self.model.as_ref())
    }

    /// One line about the subject of the test.
    pub(crate) fn described(&self) -> String {
        match &self.model {
            Some(model) => format!("the test runs `{}::forward`", model.path),
            None => {
                "no public struct with `new` and `forward` was found whose arguments are known, \
                     so the test has a small model of its own to replace"
                    .to_owned()
            }
        }
    }
}

fn declared_by_any(workspace: &Workspace) -> Option<Dependency> {
    let members = workspace.members().into_iter();
    members.flat_map(|member| &member.dependencies).find(|it| it.name == RUNTIME).cloned()
}

fn choose<'a>(workspace: &'a Workspace, spec: Option<&str>) -> Result<&'a Package, StarterError> {
    if let Some(spec) = spec {
        let named = workspace.named(&[spec.to_owned()]);
        let named = named.map_err(|error| StarterError::NoPackage(error.to_string()))?;
        return match named.as_slice() {
            [package] => Ok(package),
            _ => Err(StarterError::Several(names(&named))),
        };
    }
    let here = std::env::current_dir().unwrap_or_default();
    let members = workspace.members();
    let of_folder = members.iter().filter(|package| {
        let folder = package.manifest_path.parent();
        folder.is_some_and(|folder| here.starts_with(folder))
    });
    // The innermost of packages in each other.
    let nearest = of_folder.max_by_key(|package| package.manifest_path.as_str().len());
    match (nearest, members.as_slice()) {
        (Some(package), _) => Ok(package),
        (None, [package]) => Ok(package),
        (None, _) => Err(StarterError::Several(names(&members))),
    }
}

fn names(packages: &[&Package]) -> String {
    packages.iter().map(|package| package.name.as_str()).collect::<Vec<_>>().join(", ")
}

fn crate_name(dependency: &Dependency) -> String {
    dependency.rename.as_ref().unwrap_or(&dependency.name).replace('-', "_")
}
