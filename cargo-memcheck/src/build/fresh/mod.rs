//! A cache of cargo's answers, so that the command need not start cargo if nothing changed: no
//! argument, environment, configuration, toolchain, manifest, folder of targets or source. An
//! answer is not stored if its inputs cannot all be listed, or if one changed while cargo ran,
//! because cargo may have read the older version.

mod sources;
mod surroundings;
mod watched;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub(crate) use sources::{is_local, sources};
pub(crate) use surroundings::{manifests, surroundings};
pub(crate) use watched::Watched;

use crate::system::files;

/// A shell changes these with every command.
const FLEETING: [&str; 3] = ["_", "OLDPWD", "SHLVL"];

/// The command's own variables. Those that change a build are an argument or a variable of the cargo
/// that it starts.
const OWN: &str = "MEMCHECK_";

/// True if another value of this variable is the same input. `sources` rejects an answer if a build
/// script or a source reads such a variable.
fn is_no_input(variable: &str) -> bool {
    FLEETING.contains(&variable) || variable.starts_with(OWN)
}

const MOST: usize = 16;

/// The first line of a stored answer. The answer is on the lines after it, so that it is parsed only
/// if its inputs are unchanged.
#[derive(Debug, Serialize, Deserialize)]
struct CachedInputs {
    /// A hash of all inputs that are not files.
    key: String,
    watched: Watched,
}

#[derive(Debug)]
pub(crate) struct CacheEntry {
    path: PathBuf,
    key: String,
    /// An input that changed later must not be trusted.
    began: SystemTime,
}

impl CacheEntry {
    pub(crate) fn of(folder: &Path, what: &str, command: &Command) -> Self {
        // The name must depend on the current folder because several workspaces can share a target
        // directory.
        let mut name = DefaultHasher::new();
        std::env::current_dir().unwrap_or_default().hash(&mut name);
        command.get_args().collect::<Vec<&OsStr>>().hash(&mut name);
        let path = folder.join(format!(".memcheck-{what}-{:016x}.json", name.finish()));
        Self { path, key: key(command), began: SystemTime::now() }
    }

    pub(crate) fn below(self, folder: &Path) -> Self {
        let name = self.path.file_name().unwrap_or_default();
        Self { path: folder.join(name), ..self }
    }

    pub(crate) fn read<T: DeserializeOwned>(&self) -> Option<T> {
        let text = fs::read(&self.path).ok()?;
        let end = text.iter().position(|&byte| byte == b'\n')?;
        let (inputs, answer) = text.split_at(end);
        let inputs: CachedInputs = serde_json::from_slice(inputs).ok()?;
        let is_valid = inputs.key == self.key && inputs.watched.is_unchanged();
        is_valid.then(|| serde_json::from_slice(answer).ok()).flatten()
    }

    /// `answer` is JSON. `None` (not all inputs can be listed) removes the stored answer. Errors
    /// are ignored: cargo is then asked again.
    pub(crate) fn write(&self, watched: Option<Watched>, answer: &[u8]) {
        let watched = watched.filter(|watched| watched.are_older_than(self.began));
        let text = watched.and_then(|watched| {
            let inputs = CachedInputs { key: self.key.clone(), watched };
            Some([&serde_json::to_vec(&inputs).ok()?, &b"\n"[..], answer].concat())
        });
        if text.is_some_and(|text| files::replace(&self.path, &text).is_ok()) {
            self.prune();
        } else {
            let _ = files::remove(&self.path);
        }
    }

    fn prune(&self) {
        let (Some(folder), Some(name)) = (self.path.parent(), self.path.file_name()) else {
            return;
        };
        let name = name.to_string_lossy();
        let kind = name.rsplit_once('-').map_or(&*name, |(kind, _)| kind);
        let files = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut answers: Vec<(SystemTime, PathBuf)> = files
            .filter(|file| file.file_name().to_string_lossy().starts_with(kind))
            .filter_map(|file| Some((file.metadata().ok()?.modified().ok()?, file.path())))
            .collect();
        answers.sort();
        let too_many = answers.len().saturating_sub(MOST);
        for (_, path) in &answers[..too_many] {
            let _ = fs::remove_file(path);
        }
    }
}

fn key(command: &Command) -> String {
    let mut hasher = DefaultHasher::new();
    let own = std::env::current_exe().unwrap_or_default();
    // Not its ctime, which changes whenever cargo links a file of the target directory once more.
    let linked = fs::metadata(&own).map(|own| (own.mtime(), own.mtime_nsec(), own.size())).ok();
    (env!("CARGO_PKG_VERSION"), linked, own).hash(&mut hasher);
    std::env::current_dir().unwrap_or_default().hash(&mut hasher);
    command.get_program().hash(&mut hasher);
    command.get_args().collect::<Vec<&OsStr>>().hash(&mut hasher);
    command.get_envs().collect::<Vec<_>>().hash(&mut hasher);
    let mut environment: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    environment.retain(|(name, _)| !name.to_str().is_some_and(is_no_input));
    environment.sort();
    environment.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn kept(place: &CacheEntry) -> Option<u32> {
        place.read()
    }

    /// Its cargo starts after the test has written all its files.
    fn later(folder: &Path, command: &Command) -> CacheEntry {
        let began = SystemTime::now() + Duration::from_secs(5);
        CacheEntry { began, ..CacheEntry::of(folder, "test", command) }
    }

    #[test]
    fn a_cached_answer_is_valid_until_an_input_changes() {
        let folder = tempfile::tempdir().unwrap();
        let (source, absent) = (folder.path().join("a.rs"), folder.path().join("build.rs"));
        fs::write(&source, "1").unwrap();
        let mut command = Command::new("cargo");
        command.arg("test");
        let place = later(folder.path(), &command);
        let watched = || {
            let mut watched = Watched::default();
            watched.add(&source);
            watched.add(&absent);
            Some(watched)
        };
        assert_eq!(kept(&place), None);
        place.write(watched(), b"7");
        assert_eq!(kept(&place), Some(7));
        fs::write(&absent, "").unwrap();
        assert_eq!(kept(&place), None, "a file that was not there");
        fs::remove_file(&absent).unwrap();
        assert_eq!(kept(&place), Some(7));
        // An archiver restores a file like this: with new contents, but with the old modification
        // time.
        let modified = fs::metadata(&source).unwrap().modified().unwrap();
        fs::write(&source, "2").unwrap();
        fs::File::options().write(true).open(&source).unwrap().set_modified(modified).unwrap();
        assert_eq!(kept(&place), None, "the time of a change is not what was set");
        place.write(watched(), b"8");
        assert_eq!(kept(&place), Some(8));
        place.write(None, b"9");
        assert_eq!(kept(&place), None, "inputs that cannot be named");
    }

    #[test]
    fn an_input_that_changed_while_cargo_ran_is_looked_at_again() {
        let folder = tempfile::tempdir().unwrap();
        let place = CacheEntry::of(folder.path(), "test", &Command::new("cargo"));
        let source = folder.path().join("a.rs");
        fs::write(&source, "").unwrap();
        let mut watched = Watched::default();
        watched.add(&source);
        place.write(Some(watched), b"7");
        assert_eq!(kept(&place), None);
        // An output of cargo is always newer than the start of cargo.
        let mut made = Watched::default();
        made.add_output(&source);
        place.write(Some(made), b"7");
        assert_eq!(kept(&place), Some(7));
    }

    #[test]
    fn only_the_latest_answers_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let of = |number: u32| {
            let mut command = Command::new("cargo");
            command.arg(number.to_string());
            CacheEntry::of(folder.path(), "test", &command)
        };
        for number in 0..40 {
            of(number).write(Some(Watched::default()), number.to_string().as_bytes());
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), MOST);
        assert_eq!(kept(&of(39)), Some(39));
    }

    #[test]
    fn another_command_line_or_environment_has_another_cached_answer() {
        let folder = tempfile::tempdir().unwrap();
        let of = |arguments: &[&str], variable: Option<&str>| {
            let mut command = Command::new("cargo");
            command.args(arguments).envs(variable.map(|value| ("NVCC", value)));
            CacheEntry::of(folder.path(), "test", &command)
        };
        let plain = of(&["test"], None);
        plain.write(Some(Watched::default()), b"7");
        assert_eq!(kept(&of(&["test"], None)), Some(7));
        assert_eq!(kept(&of(&["test", "--release"], None)), None);
        assert_eq!(kept(&of(&["test"], Some("/usr/bin/nvcc"))), None);
    }
}
