//! The packages that a command line selects.

use std::collections::HashSet;

use cargo_metadata::{Package, PackageId};

use super::{RUNTIME, TestPackage, Workspace, WorkspaceError};
use crate::invocation::printed::PrintedCommand;
use crate::invocation::values::CargoOptions;

impl Workspace {
    pub(crate) fn select(&self, flags: &CargoOptions) -> Result<Vec<TestPackage>, WorkspaceError> {
        let selected = self.selected(flags)?;
        let with_runtime: Vec<TestPackage> =
            selected.iter().filter_map(|package| self.test_package(package)).collect();
        if with_runtime.is_empty() {
            return Err(WorkspaceError::NoRuntime(names(&selected)));
        }
        Ok(with_runtime)
    }

    /// A line for each package that the flags name and whose tests the run leaves out. A pattern names
    /// packages without tests too.
    pub(crate) fn left_out(&self, flags: &CargoOptions) -> Vec<String> {
        let is_pattern = |spec: &&String| spec.contains(PATTERN);
        let named: Vec<&String> = flags.packages.iter().filter(|spec| !is_pattern(spec)).collect();
        let members = self.members().into_iter();
        let left_out = members.filter(|package| {
            named.iter().any(|spec| matches(spec, package)) && self.test_package(package).is_none()
        });
        let line = |package: &Package| {
            let name = &package.name;
            format!(
                "no test of {name} is measured, because it does not depend on {RUNTIME}: {} adds it",
                PrintedCommand::AddRuntime.quoted(["-p", name])
            )
        };
        left_out.map(line).collect()
    }

    pub(crate) fn named(&self, specs: &[String]) -> Result<Vec<&Package>, WorkspaceError> {
        if specs.is_empty() {
            return Ok(self.members());
        }
        self.matching(specs)
    }

    fn selected(&self, flags: &CargoOptions) -> Result<Vec<&Package>, WorkspaceError> {
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
            // An earlier spec can have found the same packages.
            if found.len() == before && !members.iter().any(|package| matches(spec, package)) {
                return Err(WorkspaceError::NoMember(spec.clone(), names(&members)));
            }
        }
        Ok(found)
    }
}

fn names(packages: &[&Package]) -> String {
    packages.iter().map(|package| package.name.as_str()).collect::<Vec<_>>().join(", ")
}

const PATTERN: [char; 3] = ['*', '?', '['];

/// `spec` is a name, `name@version`, an id or a glob.
fn matches(spec: &str, package: &Package) -> bool {
    if spec == package.id.repr {
        return true;
    }
    if let Some((name, version)) = spec.split_once('@') {
        return name == package.name.as_str() && version == package.version.to_string();
    }
    if spec.contains(PATTERN) {
        return fast_glob::glob_match(spec, package.name.as_str());
    }
    spec == package.name.as_str()
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;

    #[test]
    fn a_named_package_without_the_runtime_is_reported() {
        let runtime = example::package(RUNTIME).of("0.1.0", example::REGISTRY);
        let (with, without) = (example::package("with").on(&runtime), example::package("without"));
        let workspace = example::workspace("/ws", &[&with, &without, &runtime]);
        let left_out = |specs: &[&str]| {
            let packages = specs.iter().map(|&spec| spec.to_owned()).collect();
            workspace.left_out(&CargoOptions { packages, ..CargoOptions::default() })
        };
        assert!(left_out(&[]).is_empty() && left_out(&["with", "w*"]).is_empty());
        let [line] = &left_out(&["with", "without"])[..] else { panic!("one line") };
        assert!(line.starts_with("no test of without is measured"), "{line}");
    }
}
