//! The units of a build: what cargo has made of each local package, and the inputs of each. rustc
//! lists the sources in a dep-info file next to its output, and a build script names its inputs.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use cargo_metadata::{Artifact, BuildScript, PackageId};
use memcheck_core::input;
use walkdir::WalkDir;

use super::outputs::{contains, dep_info, hashed, listed, original};
use super::{FileState, TICK, is_before, since_epoch};
use crate::build::workspace::git;

/// An artifact of rustc, or the output of a build script.
#[derive(Debug)]
pub(in crate::build) struct Unit {
    pub(super) package: PackageId,
    /// Of the package.
    pub(super) name: String,
    /// Of the package.
    pub(super) folder: PathBuf,
    pub(super) outputs: Vec<PathBuf>,
    /// The names without a hash that cargo links or copies outputs to.
    names: Vec<PathBuf>,
    /// The file that was written when the inputs had been read, or just before. `None` if the inputs
    /// are not known.
    pub(super) listing: Option<PathBuf>,
    pub(super) inputs: Vec<PathBuf>,
    /// Those that cargo does not look at.
    unwatched: Vec<PathBuf>,
    /// The root source of its crate. `None` for the output of a build script.
    root_source: Option<PathBuf>,
    /// `None` if cargo does not tell it: whether it has run a build script.
    is_fresh: Option<bool>,
}

/// `below` is the folder of the workspace: rustc's paths of a package inside it are relative to it.
/// `made` are the directories that cargo writes to.
pub(in crate::build) fn units(
    artifacts: &[Artifact],
    scripts: &[BuildScript],
    below: &Path,
    made: &[&Path],
) -> Vec<Unit> {
    let mut units = Vec::new();
    let mut folders: BTreeMap<&PackageId, (&Path, &Artifact)> = BTreeMap::new();
    for artifact in artifacts.iter().filter(|artifact| is_local(&artifact.package_id)) {
        let Some(folder) = artifact.manifest_path.parent().map(AsRef::as_ref) else { continue };
        folders.insert(&artifact.package_id, (folder, artifact));
        units.push(of_artifact(artifact, folder, below, made));
    }
    for script in scripts {
        if let Some((folder, artifact)) = folders.get(&script.package_id) {
            let name = name_of(artifact);
            units.push(of_script(script, name, folder, made));
        }
    }
    for unit in &mut units {
        // What a build script has written is an output of that script.
        unit.inputs.retain(|path| !scripts.iter().any(|script| path.starts_with(&script.out_dir)));
    }
    units
}

pub(in crate::build) fn is_local(package: &PackageId) -> bool {
    package.repr.contains("path+file:")
}

/// The name of the package. The name of a target says less to a user.
fn name_of(artifact: &Artifact) -> String {
    let folder = artifact.manifest_path.parent().and_then(|folder| folder.file_name());
    let (_, end) = artifact.package_id.repr.rsplit_once('#').unwrap_or_default();
    // `path+file:///ws/app#0.1.0` or `path+file:///ws/folder#app@0.1.0`.
    let named = end.split_once('@').map(|(name, _)| name);
    named.or(folder).unwrap_or(&artifact.target.name).to_owned()
}

fn of_artifact(artifact: &Artifact, folder: &Path, below: &Path, made: &[&Path]) -> Unit {
    let names: Vec<PathBuf> =
        artifact.filenames.iter().map(|path| path.as_std_path().to_owned()).collect();
    let outputs: Vec<PathBuf> = names.iter().map(|name| original(name, made)).collect();
    let base = if folder.starts_with(below) { below } else { folder };
    let read = |listing: PathBuf| Some((input::read_text(&listing, input::OWN).ok()?, listing));
    let (text, listing) = dep_info(artifact, &outputs).and_then(read).unzip();
    let inputs = listed(&text.unwrap_or_default());
    Unit {
        package: artifact.package_id.clone(),
        name: name_of(artifact),
        folder: folder.to_owned(),
        outputs,
        names,
        listing,
        inputs: inputs.into_iter().map(|path| base.join(path)).collect(),
        unwatched: Vec::new(),
        root_source: Some(artifact.target.src_path.clone().into()),
        is_fresh: Some(artifact.fresh),
    }
}

fn of_script(script: &BuildScript, name: String, folder: &Path, made: &[&Path]) -> Unit {
    let own = script.out_dir.as_std_path().parent().unwrap_or(Path::new(""));
    let output = own.join("output");
    let mut named = Vec::new();
    let mut names_inputs = false;
    let text = input::read_text(&output, input::OWN);
    for (key, value) in instructions(text.as_deref().unwrap_or_default()) {
        match key {
            "rerun-if-changed" => {
                names_inputs = true;
                named.push(folder.join(value));
            }
            "rerun-if-env-changed" => names_inputs = true,
            _ => {}
        }
    }
    let mut inputs = Vec::new();
    if names_inputs {
        named.iter().for_each(|path| add_tree(path, &mut inputs));
    } else {
        // Cargo runs such a script again if any file of the package is newer.
        add_package(folder, made, &mut inputs);
    }
    let unwatched = linked_files(script, text.as_deref().unwrap_or_default(), folder);
    inputs.extend_from_slice(&unwatched);
    let began = own.join("invoked.timestamp");
    let listing = [began, output.clone()].into_iter().find(|path| path.is_file());
    // Without the output, the inputs that it names are not known.
    let listing = listing.filter(|_| text.is_ok());
    let folder = folder.to_owned();
    Unit {
        package: script.package_id.clone(),
        name,
        folder,
        outputs: vec![output],
        names: Vec::new(),
        listing,
        inputs,
        unwatched,
        root_source: None,
        is_fresh: None,
    }
}

/// A file, or all files of a folder. Cargo follows links.
fn add_tree(path: &Path, inputs: &mut Vec<PathBuf>) {
    let entries = WalkDir::new(path).follow_links(true).into_iter().flatten();
    let before = inputs.len();
    inputs.extend(entries.map(walkdir::DirEntry::into_path));
    if inputs.len() == before {
        // Cargo always runs a script that names a file that does not exist.
        inputs.push(path.to_owned());
    }
}

/// The files that git tracks, or does not ignore, as cargo lists them. Without a repository all files,
/// except hidden folders. Without directories that cargo writes to, and other packages below this one.
fn add_package(folder: &Path, made: &[&Path], inputs: &mut Vec<PathBuf>) {
    let known = git(folder, &["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let known = known.unwrap_or_default();
    let names = known.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    let files = names.map(|name| folder.join(OsStr::from_bytes(name)));
    let is_made =
        |path: &Path| made.iter().any(|made| made.starts_with(folder) && path.starts_with(made));
    let before = inputs.len();
    for file in files.filter(|file| !is_made(file) && !is_of_another(file, folder)) {
        // A link to a folder.
        if file.is_dir() { add_tree(&file, inputs) } else { inputs.push(file) }
    }
    if inputs.len() > before {
        return;
    }
    let is_own = |entry: &walkdir::DirEntry| {
        let path = entry.path();
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        let is_package = || path.join("Cargo.toml").is_file();
        entry.depth() == 0
            || !entry.file_type().is_dir()
            || !(is_hidden || made.contains(&path) || is_package())
    };
    let entries =
        WalkDir::new(folder).follow_links(true).into_iter().filter_entry(is_own).flatten();
    let files = entries.filter(|entry| !entry.file_type().is_dir());
    inputs.extend(files.map(walkdir::DirEntry::into_path));
}

/// True if a package below `folder` has the file.
fn is_of_another(file: &Path, folder: &Path) -> bool {
    let above = file.ancestors().skip(1).take_while(|above| *above != folder);
    above.into_iter().any(|above| above.join("Cargo.toml").is_file())
}

/// Where an operating system has its own libraries: too many to look at each of them.
const SYSTEM: [&str; 2] = ["/usr/lib", "/lib"];

/// The static libraries and object files that a script can have the linker read, except those that
/// it has made. Cargo does not look at them. Each file that an instruction names, and each library of
/// a folder that it names, because sources name libraries too (`#[link]`).
fn linked_files(script: &BuildScript, output: &str, folder: &Path) -> Vec<PathBuf> {
    let linking = instructions(output)
        .filter(|(key, _)| key.starts_with("rustc-link-") || *key == "rustc-flags");
    // `native=/folder`, `static:+verbatim=name`, `program=-Wl,/file`, `-L/folder`, `-l:name`.
    let words = linking.flat_map(|(_, value)| value.split([',', ' ', '=']));
    let words: BTreeSet<&str> = words
        .map(|word| ["-L", "-l:", "-l"].iter().find_map(|it| word.strip_prefix(it)).unwrap_or(word))
        .filter(|word| !word.is_empty())
        .collect();
    let is_library =
        |path: &PathBuf| path.extension().is_some_and(|it| it == "a" || it == "o" || it == "lib");
    let mut files = BTreeSet::new();
    for place in words.iter().map(|word| folder.join(word)) {
        if place.is_file() {
            files.insert(place);
        } else if SYSTEM.iter().any(|system| place.starts_with(system)) {
            let names = words.iter().flat_map(|name| [format!("lib{name}.a"), (*name).to_owned()]);
            files.extend(names.map(|name| place.join(name)).filter(|path| path.is_file()));
        } else if let Ok(entries) = fs::read_dir(&place) {
            files.extend(entries.flatten().map(|entry| entry.path()).filter(is_library));
        }
    }
    let made = script.out_dir.as_std_path();
    files.into_iter().filter(|file| !file.starts_with(made)).collect()
}

impl Unit {
    /// An artifact with one source.
    #[cfg(test)]
    pub(super) fn example(
        folder: &Path,
        output: PathBuf,
        listing: PathBuf,
        source: PathBuf,
        is_fresh: bool,
    ) -> Self {
        Self {
            package: PackageId { repr: "app".to_owned() },
            name: "app".to_owned(),
            folder: folder.to_owned(),
            outputs: vec![output],
            names: Vec::new(),
            listing: Some(listing),
            inputs: vec![source.clone()],
            unwatched: Vec::new(),
            root_source: Some(source.clone()),
            is_fresh: Some(is_fresh),
        }
    }

    pub(super) fn key(&self) -> &Path {
        self.outputs.last().unwrap_or(&self.folder)
    }

    /// With the names without a hash, and all files that cargo could link or copy to them.
    pub(super) fn all_outputs(&self, made: &[&Path]) -> Vec<PathBuf> {
        let hashed = self.names.iter().flat_map(|name| hashed(name, made));
        self.outputs.iter().chain(&self.names).cloned().chain(hashed).collect()
    }

    /// True if cargo has made it in a build that began at this time.
    pub(super) fn is_new(&self, began: SystemTime) -> bool {
        let is_written = || {
            let written = FileState::of(self.key()).map_or(Duration::ZERO, FileState::modified);
            // A clock that was ahead has left outputs of the future.
            let now = since_epoch(SystemTime::now());
            (since_epoch(began)..=now + TICK).contains(&(written + TICK))
        };
        self.is_fresh.map_or_else(is_written, |is_fresh| !is_fresh)
    }

    /// True if cargo decides without this file: a file that is newer than the output is one that
    /// cargo knows to be no input.
    pub(super) fn is_unseen(&self, path: &Path) -> bool {
        let modified = |path: &Path| FileState::of(path).map(FileState::modified);
        let is_watched = !self.unwatched.iter().any(|unwatched| unwatched == path);
        self.is_fresh.is_some() || !is_watched || modified(path) <= modified(self.key())
    }

    /// True if an output names the source below `root`, the folder of the workspace, by its full
    /// path: rustc writes the path of a crate into its metadata, and the folder that it runs in into
    /// the line tables of an executable.
    pub(super) fn is_made_in(&self, root: &Path) -> bool {
        let Some(source) = &self.root_source else { return false };
        let real = fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
        let source = real.join(source.strip_prefix(root).unwrap_or(source));
        let folder = [real.as_os_str().as_encoded_bytes(), b"\0"].concat();
        let texts = [source.as_os_str().as_encoded_bytes(), &folder];
        self.outputs.iter().any(|output| contains(output, &texts).unwrap_or_default())
    }

    /// An input that can have changed after the inputs were read: itself, or because a link or a
    /// folder on its path leads elsewhere. `root` is the folder of the workspace.
    pub(super) fn changed_since_listing(&self, root: &Path) -> Option<PathBuf> {
        let listed = self.listing.as_ref().and_then(|listing| FileState::of(listing));
        let listed = listed.map_or(Duration::ZERO, FileState::modified);
        let is_possible = listed <= since_epoch(SystemTime::now());
        let is_older = |path: &Path| {
            let own = FileState::of(path).map(FileState::changed);
            let above = path.ancestors().map(|it| self.moved(it, root));
            own.is_some_and(|own| is_before(above.fold(own, Duration::max), listed))
        };
        let changed = self.inputs.iter().find(|path| !is_possible || !is_older(path));
        changed.filter(|path| self.is_unseen(path)).cloned()
    }

    /// When a link was made, or a folder can have got another name: its time of the last change is
    /// later than the build, and nothing in it has changed then. In a folder of the package's own
    /// sources, a new file can hide the new name.
    fn moved(&self, path: &Path, root: &Path) -> Duration {
        let Ok(found) = fs::symlink_metadata(path) else { return Duration::MAX };
        let state = FileState::from(&found);
        let changed = state.changed();
        let is_own = path.starts_with(&self.folder) && path != root;
        match found.file_type() {
            kind if kind.is_symlink() => changed,
            kind if kind.is_dir() && (is_own || is_before(state.modified(), changed)) => changed,
            _ => Duration::ZERO,
        }
    }
}

/// `cargo:key=value` or `cargo::key=value`.
fn instructions(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| {
        let line = line.strip_prefix("cargo:")?;
        line.strip_prefix(':').unwrap_or(line).split_once('=')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_of_an_instruction_are_read() {
        let text = "cargo:rerun-if-changed=a.cu\ncargo::rerun-if-env-changed=NVCC\nhello\n";
        let read: Vec<_> = instructions(text).collect();
        assert_eq!(read, [("rerun-if-changed", "a.cu"), ("rerun-if-env-changed", "NVCC")]);
    }
}
