//! Refuses pages that could lead out of the folder of the archive, or that name files which are not
//! in it. The writer applies the same rules.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use cargo_metadata::Package;
use cargo_metadata::camino::Utf8Path;

use super::format::{ArchivePage, PackedFile};
use super::manifest::{self, ArchivedExecutable, Build, Manifest, TESTS, Tables, WORKSPACE};
use super::{metadata, names};
use crate::build::leg::DeviceKind;
use crate::invocation::devices;

/// Bytes of text files that are read as a whole. JSON takes up to ten times as much memory when it
/// is parsed.
const TABLE_LIMIT: u64 = 32 << 20;
const CONFIGURATION_LIMIT: u64 = 1 << 20;
// Each of them is a leg of the run.
const DEVICES: usize = 64;

type Files<'a> = BTreeMap<&'a str, &'a PackedFile>;

impl ArchivePage for Manifest {
    const NAME: &'static str = "memcheck-archive.json";
    const KIND: &'static str = "an archive of cargo memcheck";

    fn files(&self) -> &[PackedFile] {
        &self.files
    }

    fn check(&self) -> Result<(), String> {
        manifest(self)
    }
}

impl ArchivePage for Tables {
    const NAME: &'static str = "memcheck-line-tables.json";
    const KIND: &'static str = "an archive of line tables";

    fn files(&self) -> &[PackedFile] {
        &self.files
    }

    fn check(&self) -> Result<(), String> {
        files(&self.files).map(drop)
    }
}

/// Each name is valid and occurs once, and no file is the folder of another one.
pub(super) fn files(files: &[PackedFile]) -> Result<Files<'_>, String> {
    let mut known = Files::new();
    for file in files {
        named(&file.name)?;
        if known.insert(&file.name, file).is_some() {
            return Err(format!("{} is listed twice", file.name));
        }
    }
    // With the separator before all other characters, a folder is directly followed by its files.
    let mut sorted: Vec<String> = known.keys().map(|name| name.replace('/', "\0")).collect();
    sorted.sort_unstable();
    for pair in sorted.windows(2) {
        if pair[1].strip_prefix(&pair[0]).is_some_and(|rest| rest.starts_with('\0')) {
            let [folder, file] = [&pair[0], &pair[1]].map(|name| name.replace('\0', "/"));
            return Err(format!("{file}: {folder} is a file, not a folder"));
        }
    }
    Ok(known)
}

fn named(name: &str) -> Result<(), String> {
    names::check(name).map_err(|why| format!("{name:?}: {why}"))
}

fn text(what: &str, text: &str) -> Result<(), String> {
    names::check_text(text).map_err(|why| format!("{what} {text:?}: {why}"))
}

fn manifest(manifest: &Manifest) -> Result<(), String> {
    let known = files(&manifest.files)?;
    for name in known.keys() {
        let first = name.split('/').next().unwrap_or_default();
        let folders = [WORKSPACE, TESTS].into_iter();
        let kinds = [DeviceKind::Cpu, DeviceKind::Sim, DeviceKind::Cuda].map(manifest::folder);
        if !name.contains('/') || !folders.chain(kinds).any(|folder| folder == first) {
            return Err(format!("{name} is not in a folder of an archive"));
        }
    }
    text("target", &manifest.target.to_string())?;
    text("profile", &manifest.profile)?;
    manifest.commit.iter().try_for_each(|commit| text("commit", commit))?;
    manifest.uncommitted.iter().try_for_each(|hash| text("uncommitted", hash))?;
    manifest.features.iter().try_for_each(|feature| text("feature", feature))?;
    if manifest.devices.len() > DEVICES {
        return Err(format!("it has more than {DEVICES} devices"));
    }
    for request in &manifest.devices {
        devices::check(request).map_err(|error| error.to_string())?;
    }
    manifest.baselines.keys().try_for_each(|name| named(name))?;
    within(&known, &manifest::configuration(), CONFIGURATION_LIMIT)?;
    let packages = packages(manifest)?;
    let mut kinds = BTreeSet::new();
    for build in &manifest.builds {
        if !kinds.insert(build.kind) {
            return Err(format!("{}: there are two builds", manifest::folder(build.kind)));
        }
        self::build(build, &packages, &known)?;
    }
    Ok(())
}

/// A missing file is accepted.
fn within(files: &Files<'_>, name: &str, limit: u64) -> Result<(), String> {
    match files.get(name) {
        Some(file) if file.bytes > limit => {
            Err(format!("{name} has {} bytes instead of at most {limit}", file.bytes))
        }
        _ => Ok(()),
    }
}

fn build(build: &Build, packages: &BTreeSet<&str>, files: &Files<'_>) -> Result<(), String> {
    let there = |name: &str| match files.get(name) {
        Some(file) => Ok(*file),
        None => Err(format!("{name:?} is not a file of the archive")),
    };
    if build.tests != manifest::test_table(build.kind) {
        return Err(format!("{:?} is not the place of a table of tests", build.tests));
    }
    there(&build.tests)?;
    within(files, &build.tests, TABLE_LIMIT)?;
    let own = Path::new(manifest::folder(build.kind));
    for ArchivedExecutable { id, package, file, tests: _, environment, out_dir } in
        &build.executables
    {
        text("executable", id)?;
        if !packages.contains(package.as_str()) {
            return Err(format!("{id}: its package is not in the archive"));
        }
        if !there(file)?.executable || !Path::new(file).starts_with(own) {
            return Err(format!("{file} is not an executable for {}", own.display()));
        }
        for (name, value) in environment {
            // The system cannot pass such a variable to a process.
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                return Err(format!("{id} has an invalid variable, {name:?}"));
            }
        }
        if let Some((_, name)) = out_dir {
            named(name)?;
            if !Path::new(name).starts_with(own) {
                return Err(format!("{name} is not a folder for {}", own.display()));
            }
        }
    }
    for target in &build.not_built {
        text("package", &target.package)?;
        text("target", &target.target)?;
    }
    let nvml = build.nvml.as_deref().map(there).transpose()?;
    match nvml.is_none_or(|library| Path::new(&library.name).starts_with(own)) {
        true => Ok(()),
        false => Err("NVML is not in the folder of its build".to_owned()),
    }
}

/// The folders of the packages are created in the folder of the archive, so they must be below the
/// root.
fn packages(manifest: &Manifest) -> Result<BTreeSet<&str>, String> {
    let metadata = metadata::parse(&manifest.metadata)?;
    let root = &metadata.workspace_root;
    let below = root.as_str().strip_prefix('/');
    if below.is_none_or(|below| !below.is_empty() && names::check(below).is_err()) {
        return Err(format!("{:?} is not the path of a workspace", root.as_str()));
    }
    let packages: BTreeSet<&str> = manifest.packages.iter().map(String::as_str).collect();
    if packages.len() != manifest.packages.len() {
        return Err("a package is listed twice".to_owned());
    }
    let listed = metadata.packages.iter().filter(|p| packages.contains(p.id.repr.as_str()));
    let described: BTreeMap<&str, &Package> =
        listed.map(|package| (package.id.repr.as_str(), package)).collect();
    if let Some(id) = packages.iter().find(|id| !described.contains_key(*id)) {
        return Err(format!("{id:?}: the package is not described"));
    }
    for package in described.values() {
        text("package", &package.name)?;
        below_root(root, &package.manifest_path)?;
    }
    Ok(packages)
}

fn below_root(root: &Utf8Path, manifest: &Utf8Path) -> Result<(), String> {
    let refused = |why: &str| Err(format!("manifest_path {:?}: {why}", manifest.as_str()));
    let Ok(rest) = manifest.strip_prefix(root) else {
        return refused("it is not in the workspace");
    };
    // `strip_prefix` and the components leave out separators and dots.
    match names::check(rest.as_str()) {
        Err(why) => refused(why),
        Ok(()) if root.join(rest).as_str() != manifest.as_str() => {
            refused("the name is not a normalised path")
        }
        Ok(()) => Ok(()),
    }
}
