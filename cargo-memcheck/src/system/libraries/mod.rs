//! The shared libraries of a test executable: asks the loader which are missing, and adds folders
//! that contain them to the search path of the test. CUDA's wheels for Python contain the libraries
//! that candle links to, and the toolchain contains Rust's own, but in folders that a loader does not
//! search.

mod advice;
mod python;
mod rust;

use std::collections::BTreeMap;
use std::env::JoinPathsError;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use memcheck_core::request::variables;

use crate::system::binary::Binary;
use crate::system::process::{self, ShortRun};

pub(crate) use advice::{Missing, advice};

pub(crate) const SEARCH_PATH: &str = "LD_LIBRARY_PATH";
/// Makes glibc's loader print the libraries that it would load, without starting the program. An
/// own search could differ from the loader's.
const TRACE: &str = "LD_TRACE_LOADED_OBJECTS";

#[derive(Debug, Default)]
pub(crate) struct LibrarySearch {
    /// From `--library-path`. They come first on the search path whatever they contain.
    named: Vec<PathBuf>,
    /// Looked for only when a library is missing, or for libcupti.
    python: OnceLock<Vec<PathBuf>>,
    /// Looked for only when one of Rust's own libraries is missing.
    rust: OnceLock<Vec<PathBuf>>,
    cupti: OnceLock<Option<OsString>>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Linked {
    pub(crate) found: BTreeMap<String, PathBuf>,
    pub(crate) missing: Vec<String>,
    /// The loader's messages about libraries that are too old.
    pub(crate) outdated: Vec<String>,
}

impl LibrarySearch {
    pub(crate) fn new(named: Vec<PathBuf>) -> Self {
        Self { named, ..Self::default() }
    }

    /// For a test with an itemized report of GPU memory.
    pub(crate) fn cupti(&self) -> Option<&OsStr> {
        let find = || {
            let found = python::cupti(self.python.get_or_init(python::folders));
            // The list is separated by colons, so that it cannot contain a path with a colon.
            let paths = found.iter().filter(|path| std::env::join_paths([path]).is_ok());
            std::env::join_paths(paths).ok().filter(|paths| !paths.is_empty())
        };
        self.cupti.get_or_init(find).as_deref()
    }

    pub(crate) fn prepare(&self, binary: &mut Binary) {
        let rest = search_path(binary);
        // Joining cannot fail, because these folders come from a list that was split at the colons.
        let _ = set_search_path(binary, self.named.iter().cloned().chain(rest));
    }

    /// Stops after the time-out, because a program without a loader starts and may hang. True if it
    /// added a folder and no library is missing any longer.
    pub(crate) fn complete(&self, binary: &mut Binary, timeout: Duration) -> Result<bool, Missing> {
        let started = Instant::now();
        let mut added = false;
        loop {
            let left = timeout.saturating_sub(started.elapsed());
            // A loader that does not answer names no library that is missing.
            let Ok(linked) = Linked::of(binary, left) else { return Ok(added) };
            if linked.missing.is_empty() && linked.outdated.is_empty() {
                return Ok(added);
            }
            // A library that was found can need further libraries, so the loop asks the loader
            // again.
            let before = search_path(binary);
            let folders = match linked.missing.iter().any(|library| rust::is_own(library)) {
                true => self.rust.get_or_init(rust::folders),
                false => self.python.get_or_init(python::folders),
            };
            let has = |folder: &&PathBuf| linked.missing.iter().any(|l| folder.join(l).is_file());
            let more: Vec<PathBuf> =
                folders.iter().filter(has).filter(|f| !before.contains(f)).cloned().collect();
            let found = !more.is_empty();
            if !found || set_search_path(binary, before.into_iter().chain(more)).is_err() {
                return Err(Missing { libraries: linked.missing, outdated: linked.outdated });
            }
            added = true;
        }
    }
}

fn search_path(binary: &Binary) -> Vec<PathBuf> {
    let own = binary.environment.iter().find(|(name, _)| name == SEARCH_PATH);
    let text = match own {
        Some((_, text)) => Some(text.into()),
        None => std::env::var_os(SEARCH_PATH),
    };
    text.iter().flat_map(std::env::split_paths).filter(|f| !f.as_os_str().is_empty()).collect()
}

/// Fails if the path of a folder contains a colon.
fn set_search_path(
    binary: &mut Binary,
    folders: impl Iterator<Item = PathBuf>,
) -> Result<(), JoinPathsError> {
    let joined = std::env::join_paths(folders)?;
    if !joined.is_empty() {
        binary.environment.retain(|(name, _)| name != SEARCH_PATH);
        binary.environment.push((SEARCH_PATH.to_owned(), joined.to_string_lossy().into_owned()));
    }
    Ok(())
}

/// `folder` first, then the search path of this process.
pub(crate) fn in_front(folder: PathBuf) -> Result<OsString, JoinPathsError> {
    let inherited = std::env::var_os(SEARCH_PATH).unwrap_or_default();
    let rest = std::env::split_paths(&inherited).filter(|f| !f.as_os_str().is_empty());
    std::env::join_paths(std::iter::once(folder).chain(rest))
}

impl Linked {
    pub(crate) fn of(binary: &Binary, timeout: Duration) -> io::Result<Self> {
        let mut command = Command::new(binary.pinned_path());
        command
            // A statically linked program has no loader and starts in spite of the variable. It
            // must then only list its tests.
            .arg("--list")
            .env(variables::LIST, "1")
            .envs(binary.environment.iter().map(|(name, value)| (name, value)))
            .env(TRACE, "1");
        let output = process::short(&command, ShortRun::within(timeout))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(Self::read(&text(&output.stdout), &text(&output.stderr)))
    }

    pub(crate) fn read(stdout: &str, stderr: &str) -> Self {
        let mut linked = Self::default();
        for line in stdout.lines() {
            let Some((name, place)) = line.trim().split_once(" => ") else { continue };
            if place.trim() == "not found" {
                linked.missing.push(name.to_owned());
            } else if let Some((path, _)) = place.rsplit_once(" (0x") {
                linked.found.insert(name.to_owned(), path.into());
            }
        }
        // `…/libc.so.6: version `GLIBC_2.99' not found (required by …)`
        linked.outdated = stderr
            .lines()
            .filter(|line| line.contains(": version `") && line.contains("not found"))
            .map(|line| line.split_once(": ").map_or(line, |(_, text)| text).to_owned())
            .collect();
        linked
    }

    /// In `folder` or below it.
    pub(crate) fn below<'a>(&'a self, folder: &'a Path) -> impl Iterator<Item = &'a Path> {
        self.found.values().map(PathBuf::as_path).filter(move |path| path.starts_with(folder))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    #[test]
    fn messages_of_the_loader_are_parsed() {
        let linked = Linked::read(
            "\tlinux-vdso.so.1 (0x00007ffc)\n\tlibcuda.so.1 => not found\n\tlibc.so.6 => /lib/x y/libc.so.6 (0x00007f)\n\t/lib64/ld-linux-x86-64.so.2 (0x7f)\n",
            "/t/mem: /lib/libc.so.6: version `GLIBC_2.99' not found (required by /t/mem)\n",
        );
        assert_eq!(linked.missing, ["libcuda.so.1"]);
        assert_eq!(linked.found["libc.so.6"], Path::new("/lib/x y/libc.so.6"));
        assert_eq!(
            linked.outdated,
            ["/lib/libc.so.6: version `GLIBC_2.99' not found (required by /t/mem)"]
        );
        assert_eq!(linked.below(Path::new("/lib")).count(), 1);
    }

    fn program(folder: &Path) -> Binary {
        let compile = |arguments: &[&str]| {
            let done = Command::new("cc").args(arguments).current_dir(folder).status();
            assert!(done.is_ok_and(|status| status.success()), "cc {arguments:?}");
        };
        for name in ["a", "b"] {
            fs::create_dir(folder.join(name)).unwrap();
        }
        fs::write(folder.join("inner.c"), "int inner(void) { return 0; }").unwrap();
        fs::write(folder.join("outer.c"), "int inner(void); int outer(void) { return inner(); }")
            .unwrap();
        fs::write(folder.join("main.c"), "int outer(void); int main(void) { return outer(); }")
            .unwrap();
        compile(&["-shared", "-fPIC", "-o", "a/libmemcheck_inner.so", "inner.c"]);
        let outer = ["-shared", "-fPIC", "-o", "b/libmemcheck_outer.so", "outer.c"];
        compile(&[&outer[..], &["-La", "-lmemcheck_inner"]].concat());
        let main = ["-o", "main", "main.c", "-Lb", "-lmemcheck_outer", "-Wl,-rpath-link,a"];
        compile(&main);
        let environment = vec![(SEARCH_PATH.to_owned(), "/nowhere".to_owned())];
        Binary::new("app".to_owned(), 0, folder.join("main"), environment)
    }

    #[test]
    fn missing_libraries_of_libraries_are_found_in_folders_of_python() {
        let folder = tempfile::tempdir().unwrap();
        let mut binary = program(folder.path());
        let search = |folders: &[&str]| LibrarySearch {
            named: Vec::new(),
            python: OnceLock::from(
                folders.iter().map(|f| folder.path().join(f)).collect::<Vec<_>>(),
            ),
            ..LibrarySearch::default()
        };
        let missing = search(&[]).complete(&mut binary.clone(), LIMIT).unwrap_err();
        assert_eq!(missing.libraries, ["libmemcheck_outer.so"]);
        let missing = search(&["b"]).complete(&mut binary.clone(), LIMIT).unwrap_err();
        assert_eq!(missing.libraries, ["libmemcheck_inner.so"]);
        assert_eq!(search(&["a", "b"]).complete(&mut binary, LIMIT), Ok(true));
        let path = search_path(&binary);
        assert_eq!(
            path,
            [Path::new("/nowhere"), &folder.path().join("b"), &folder.path().join("a")]
        );
        // A second call finds all libraries and has to add none.
        assert_eq!(search(&[]).complete(&mut binary, LIMIT), Ok(false));
        let linked = Linked::of(&binary, LIMIT).unwrap();
        assert_eq!(linked.below(folder.path()).count(), 2);
    }

    #[test]
    fn a_folder_that_a_search_path_cannot_contain_ends_the_search() {
        let folder = tempfile::tempdir().unwrap();
        let mut binary = program(folder.path());
        let colon = folder.path().join("with:colon");
        fs::rename(folder.path().join("b"), &colon).unwrap();
        let search =
            LibrarySearch { python: OnceLock::from(vec![colon]), ..LibrarySearch::default() };
        let missing = search.complete(&mut binary, LIMIT).unwrap_err();
        assert_eq!(missing.libraries, ["libmemcheck_outer.so"]);
    }

    #[test]
    fn a_folder_that_is_named_comes_first() {
        let folder = tempfile::tempdir().unwrap();
        let mut binary = program(folder.path());
        let named = ["a", "b"].map(|name| folder.path().join(name)).to_vec();
        let search =
            LibrarySearch { named, python: OnceLock::from(Vec::new()), ..LibrarySearch::default() };
        search.prepare(&mut binary);
        assert_eq!(search_path(&binary).last().unwrap(), Path::new("/nowhere"));
        assert_eq!(search.complete(&mut binary, LIMIT), Ok(false));
    }
}
