//! The programs that can compile an artifact: a rustc and wrappers that the user has named. Cargo
//! compares the version of rustc and the path of the wrapper for members of the workspace. It does not
//! compare the other wrapper, nor notice that such a program has become another one under its name.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use cargo_metadata::PackageId;

use super::Unit;
use crate::build::workspace::{Workspace, configuration_files, program};
use crate::invocation::values::CargoOptions;

/// Keys of the section `build` in cargo's configuration.
const RUSTC: &str = "rustc";
const WRAPPER: &str = "rustc-wrapper";
const WORKSPACE_WRAPPER: &str = "rustc-workspace-wrapper";

/// All that an environment or a configuration names, without deciding which of them comes first: one
/// that is not used costs a build at most when it changes.
#[derive(Debug, Clone, Default)]
pub(in crate::build) struct Compilers {
    of_all: BTreeSet<PathBuf>,
    /// Those that compile only members of the workspace. Another revision has its own one
    /// (`execution/revision/wrapper`), and shares the artifacts of all other packages.
    of_members: BTreeSet<PathBuf>,
    members: BTreeSet<PackageId>,
}

impl Compilers {
    pub(in crate::build) fn named(workspace: &Workspace, flags: &CargoOptions) -> Self {
        let here = env::current_dir().unwrap_or_default();
        let here = here.as_path();
        let mut of_all: BTreeSet<PathBuf> = BTreeSet::new();
        let mut of_members = BTreeSet::new();
        let mut add = |key: &str, name: &OsStr, base: &Path| {
            // An empty name switches a wrapper off.
            if !name.is_empty() {
                let programs = if key == WORKSPACE_WRAPPER { &mut of_members } else { &mut of_all };
                programs.insert(program(name, base));
            }
        };
        for key in [RUSTC, WRAPPER, WORKSPACE_WRAPPER] {
            let variable = key.replace('-', "_").to_uppercase();
            for variable in [format!("CARGO_BUILD_{variable}"), variable] {
                if let Some(name) = env::var_os(variable) {
                    add(key, &name, here);
                }
            }
        }
        for file in configuration_files(here, workspace.root(), &flags.config) {
            for key in [RUSTC, WRAPPER, WORKSPACE_WRAPPER] {
                if let Some(name) = file.of_build(key) {
                    add(key, OsStr::new(name), &file.base);
                }
            }
        }
        let members = workspace.metadata().workspace_members.iter().cloned().collect();
        Self { of_all, of_members, members }
    }

    #[cfg(test)]
    pub(super) fn example(of_all: &[&Path], of_members: &[&Path]) -> Self {
        let set = |paths: &[&Path]| paths.iter().map(|&path| path.to_owned()).collect();
        Self { of_all: set(of_all), of_members: set(of_members), members: BTreeSet::new() }
    }

    #[cfg(test)]
    pub(super) fn add_member(&mut self, id: &str) {
        self.members.insert(PackageId { repr: id.to_owned() });
    }

    pub(super) fn of<'a>(&'a self, unit: &Unit) -> impl Iterator<Item = &'a PathBuf> {
        let is_member = self.members.contains(&unit.package);
        self.of_all.iter().chain(self.of_members.iter().filter(move |_| is_member))
    }
}
