//! The files that cargo has made for an artifact: the copies of an output under other names, the list
//! of its sources, and the paths that rustc writes into it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use cargo_metadata::{Artifact, TargetKind};
use memcheck_core::input;
use memchr::memmem;

use super::FileState;

/// Bytes of an output that are searched at once.
const CHUNK: u64 = 1 << 20;

/// The files of cargo with the name of an output and a hash, in its folder, in `deps` below it, or in
/// the same folders of another directory that cargo writes to. Not the lists of sources: a library
/// and a program of one name have theirs side by side.
pub(super) fn hashed(output: &Path, made: &[&Path]) -> Vec<PathBuf> {
    let folder = output.parent().unwrap_or(Path::new(""));
    // One directory can be inside the other.
    let below = made.iter().filter_map(|directory| folder.strip_prefix(directory).ok());
    let below = below.min_by_key(|path| path.as_os_str().len());
    let same = below.iter().flat_map(|below| made.iter().map(move |made| made.join(below)));
    let folders: BTreeSet<PathBuf> =
        same.chain([folder.to_owned()]).flat_map(|it| [it.join("deps"), it]).collect();
    let Some(stem) = output.file_stem().and_then(OsStr::to_str) else { return Vec::new() };
    // Cargo replaces the hyphens of a program's name by underscores.
    let plain = |name: &str| name.replace('-', "_");
    let is_hashed = |path: &PathBuf| {
        let name = path.file_stem().and_then(OsStr::to_str);
        let parts = name.and_then(|name| name.rsplit_once('-'));
        parts.is_some_and(|(name, hash)| is_hash(hash) && plain(name) == plain(stem))
            && path.extension() == output.extension()
    };
    let files = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    files.map(|file| file.path()).filter(is_hashed).collect()
}

/// The file with a hash in its name that cargo has linked or copied to the name of this output, or
/// the output itself.
pub(super) fn original(output: &Path, made: &[&Path]) -> PathBuf {
    let stem = output.file_stem().and_then(OsStr::to_str).unwrap_or_default();
    if stem.rsplit_once('-').is_some_and(|(_, end)| is_hash(end)) {
        return output.to_owned();
    }
    let state = FileState::of(output);
    let all = hashed(output, made);
    // PERF: a link has the state of its file, so that no contents are read.
    let linked = all.iter().find(|file| FileState::of(file) == state);
    let found = linked.or_else(|| all.iter().find(|file| is_copy(file, output)));
    found.map_or_else(|| output.to_owned(), Clone::clone)
}

/// The list that rustc has written. `outputs` are original files, because cargo writes a list of its
/// own for a name without a hash, also if it compiles nothing, or never.
pub(super) fn dep_info(artifact: &Artifact, outputs: &[PathBuf]) -> Option<PathBuf> {
    if artifact.target.kind.contains(&TargetKind::CustomBuild) {
        let files = fs::read_dir(outputs.first()?.parent()?).ok()?.flatten();
        return files.map(|file| file.path()).find(|path| path.extension() == Some("d".as_ref()));
    }
    outputs.iter().find_map(|output| {
        let name = output.file_stem()?.to_str()?;
        let bare = name.strip_prefix("lib").unwrap_or(name);
        // `libapp` can also be the executable of a program next to another one, `app`.
        let names = [format!("{name}.d"), format!("{bare}.d")];
        names.into_iter().map(|name| output.with_file_name(name)).find(|path| path.is_file())
    })
}

/// Cargo copies a file to a directory on another file system.
fn is_copy(file: &Path, of: &Path) -> bool {
    let size = |path: &Path| fs::metadata(path).map(|found| found.len()).ok();
    let read = |path: &Path| input::read(path, input::EXECUTABLE).ok();
    size(file) == size(of) && read(file).is_some_and(|text| Some(text) == read(of))
}

/// The end of a name that cargo gives to an artifact.
fn is_hash(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Lines are `output: source source` with `\ ` for a space.
pub(super) fn listed(text: &str) -> Vec<PathBuf> {
    let mut sources = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some((_, list)) = line.split_once(": ") else { continue };
        let mut path = String::new();
        for word in list.split(' ') {
            path.push_str(word);
            match path.strip_suffix('\\') {
                Some(begun) => path = format!("{begun} "),
                None => sources.push(PathBuf::from(std::mem::take(&mut path))),
            }
        }
    }
    sources.retain(|path| path != Path::new(""));
    sources.sort();
    sources.dedup();
    sources
}

/// True if the file contains one of the texts.
pub(super) fn contains(path: &Path, texts: &[&[u8]]) -> io::Result<bool> {
    let longest = texts.iter().map(|text| text.len()).max().unwrap_or(0);
    let mut file = input::open(path, input::EXECUTABLE)?;
    let mut read = Vec::new();
    loop {
        let new = (&mut file).take(CHUNK).read_to_end(&mut read)?;
        if texts.iter().any(|text| memmem::find(&read, text).is_some()) {
            return Ok(true);
        }
        if new == 0 {
            return Ok(false);
        }
        // A text can begin at the end of this chunk.
        read.drain(..read.len().saturating_sub(longest));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_list_of_rustc_is_read() {
        let text = "/t/deps/mem-1: tests/mem.rs /a\\ b/c.rs\n\ntests/mem.rs:\n\n# env-dep:NVCC=x\n";
        assert_eq!(listed(text), ["/a b/c.rs", "tests/mem.rs"].map(PathBuf::from));
    }

    /// A library and a program of one name, and the program with another feature.
    #[test]
    fn the_list_of_a_program_is_that_of_the_file_with_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("deps")).unwrap();
        let hashes = ["0123456789abcdef", "1123456789abcdef", "2123456789abcdef"];
        for hash in hashes {
            fs::write(at(&format!("deps/app-{hash}.d")), "").unwrap();
        }
        fs::write(at("deps/libapp-2123456789abcdef.rlib"), "").unwrap();
        for hash in &hashes[..2] {
            fs::write(at(&format!("deps/app-{hash}")), hash).unwrap();
        }
        // Cargo writes it again whenever it links a file to the name.
        fs::write(at("app.d"), "").unwrap();
        fs::hard_link(at("deps/app-0123456789abcdef"), at("app")).unwrap();
        let artifact = json!({
            "package_id": "path+file:///app#0.1.0", "manifest_path": "/app/Cargo.toml",
            "target": { "name": "app", "kind": ["bin"], "crate_types": ["bin"], "src_path": "/a.rs" },
            "profile": {
                "opt_level": "0", "debuginfo": 0, "debug_assertions": true,
                "overflow_checks": true, "test": false,
            },
            "features": [], "filenames": [at("app")], "executable": at("app"), "fresh": true,
        });
        let artifact: Artifact = serde_json::from_value(artifact).unwrap();
        let list = dep_info(&artifact, &[original(&at("app"), &[])]);
        assert_eq!(list, Some(at("deps/app-0123456789abcdef.d")));
        // The directory of final artifacts is another one.
        let target = folder.path().join("target");
        fs::create_dir(&target).unwrap();
        let made = [target.as_path(), folder.path()];
        let elsewhere = target.join("app");
        fs::hard_link(at("deps/app-1123456789abcdef"), &elsewhere).unwrap();
        let list = dep_info(&artifact, &[original(&elsewhere, &made)]);
        assert_eq!(list, Some(at("deps/app-1123456789abcdef.d")), "linked");
        fs::remove_file(&elsewhere).unwrap();
        fs::copy(at("deps/app-0123456789abcdef"), &elsewhere).unwrap();
        let list = dep_info(&artifact, &[original(&elsewhere, &made)]);
        assert_eq!(list, Some(at("deps/app-0123456789abcdef.d")), "copied");
        assert_eq!(hashed(&elsewhere, &made).len(), 2);
        // Not the lists: one of them is that of the library.
        let mut removed = hashed(&at("app"), &[]);
        removed.sort();
        let expected = [0, 1].map(|number| at(&format!("deps/app-{}", hashes[number])));
        assert_eq!(removed, expected);
        fs::write(at("build_script_build-0123456789abcdef"), "").unwrap();
        let removed = hashed(&at("build-script-build"), &[]);
        assert_eq!(removed, [at("build_script_build-0123456789abcdef")]);
    }
}
