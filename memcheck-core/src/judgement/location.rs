//! The path of a test's baseline: in `snapshots/`, next to the source file of the test, or at the
//! same place of another folder that has the baselines of the workspace. Paths are normalized as
//! text, because both sides of the wire must agree and insta refuses `..` in a pending path. A
//! symbolic link before a `..` is not resolved.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use crate::characters::is_special;
use crate::device::Family;

/// The folders of sources and baselines. They are the same unless the user has named a folder of
/// baselines, which mirrors the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Roots<'a> {
    /// The root of the workspace.
    pub workspace: &'a Path,
    /// The folder that has each baseline at the place that its source has in the workspace.
    pub baselines: &'a Path,
}

impl<'a> Roots<'a> {
    /// Without `baselines`, they are next to their sources.
    pub fn new(workspace: &'a Path, baselines: Option<&'a Path>) -> Self {
        Self { workspace, baselines: baselines.unwrap_or(workspace) }
    }

    /// The folder of baselines, unless it is the workspace.
    pub fn elsewhere(self) -> Option<&'a Path> {
        (self.baselines != self.workspace).then_some(self.baselines)
    }

    /// The place of a path of the workspace in the folder of baselines. A path outside the
    /// workspace has no other place.
    pub fn mirrored(self, path: &Path) -> PathBuf {
        moved(path, self.workspace, self.baselines)
    }

    /// The path of the workspace whose place in the folder of baselines is `place`.
    pub fn in_workspace(self, place: &Path) -> PathBuf {
        moved(place, self.baselines, self.workspace)
    }
}

/// The same place below `to` as `path` has below `from`; another path stays as it is.
pub fn moved(path: &Path, from: &Path, to: &Path) -> PathBuf {
    match path.strip_prefix(from) {
        // Without a separator at the end, which `join` adds before an empty path.
        Ok(rest) => to.components().chain(rest.components()).collect(),
        Err(_) => path.to_owned(),
    }
}

/// The absolute path of `path`, which may be relative to `base`, without `..`.
pub fn absolute(base: &Path, path: &Path) -> PathBuf {
    normalize(&base.join(path))
}

/// The absolute source file of a test, without the `..` of a `#[path = "../shared.rs"]`.
pub fn source(workspace: &Path, file: &Path) -> PathBuf {
    absolute(workspace, file)
}

/// The baseline of a test; `stem` is its file name without device and extension.
pub fn baseline(roots: Roots<'_>, file: &Path, stem: &str, family: Family) -> PathBuf {
    let source = roots.mirrored(&source(roots.workspace, file));
    let folder = source.parent().unwrap_or(roots.baselines).join("snapshots");
    folder.join(format!("{}@{}.snap", file_name(stem), family.name()))
}

/// The longest name of a file is 255 bytes on most file systems; the rest is for the device, the
/// extensions and the hash.
const LONGEST: usize = 200;

/// The name itself, if it is a safe name of a file. The name of a test in Rust is one; that of an
/// executable that pretends to have tests can be anything. Other names get a hash, so that two of
/// them are not the same file.
pub fn file_name(name: &str) -> String {
    let is_unsafe = |c: char| is_special(c) || matches!(c, '/' | '\\');
    let is_safe = !name.is_empty()
        && name.len() <= LONGEST
        && !name.starts_with('.')
        && !name.contains(is_unsafe);
    if is_safe {
        return name.to_owned();
    }
    let letters: String = name.replace(is_unsafe, "_").trim_start_matches('.').to_owned();
    let end = (0..=LONGEST.min(letters.len())).rev().find(|&end| letters.is_char_boundary(end));
    format!("{}-{:016x}", &letters[..end.unwrap_or(0)], hash(name))
}

/// FNV-1a, because the hash of a name must not change with the version of Rust.
fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// The stem of the snapshot for the laws of `module`, whose cases share the values `common`.
pub fn law(module: &str, common: &BTreeMap<String, String>) -> String {
    let mut stem = format!("{}__law", module.replace("::", "__"));
    let mut values = String::new();
    for (name, value) in common {
        let letters = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        stem.push_str(&format!("_{name}_{}", value.chars().map(letters).collect::<String>()));
        values.push_str(&format!("{value}\n"));
    }
    // `1.5` and `1_5` have the same letters.
    let is_exact = common.values().all(|value| value.chars().all(|c| c.is_ascii_alphanumeric()));
    if is_exact { stem } else { format!("{stem}-{:016x}", hash(&values)) }
}

fn normalize(path: &Path) -> PathBuf {
    let mut straight = PathBuf::new();
    for component in path.components() {
        let last = straight.components().next_back();
        match (component, last) {
            (Component::CurDir, _) | (Component::ParentDir, Some(Component::RootDir)) => {}
            (Component::ParentDir, Some(Component::Normal(_))) => {
                straight.pop();
            }
            _ => straight.push(component),
        }
    }
    straight
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_baseline_is_next_to_its_source_for_every_form_of_the_path() {
        for (file, folder) in [
            ("app/tests/mem.rs", "/ws/app/tests/snapshots"),
            ("app/tests/../shared.rs", "/ws/app/snapshots"),
            ("app/tests/../../common/./shared.rs", "/ws/common/snapshots"),
            ("app/../../other.rs", "/snapshots"),
            ("../../../other.rs", "/snapshots"),
            ("/elsewhere/tests/../mem.rs", "/elsewhere/snapshots"),
        ] {
            let roots = Roots::new(Path::new("/ws"), None);
            let path = baseline(roots, Path::new(file), "mem__a", Family::Cpu);
            assert_eq!(path, Path::new(folder).join("mem__a@cpu.snap"), "{file}");
        }
        let common = BTreeMap::from([("dtype".to_owned(), "f32".to_owned())]);
        assert_eq!(law("mem::bert::forward", &common), "mem__bert__forward__law_dtype_f32");
        assert_eq!(law("mem::forward", &BTreeMap::new()), "mem__forward__law");
        assert_eq!(normalize(Path::new("../a/./b/../c")), Path::new("../a/c"));
    }

    #[test]
    fn a_folder_of_baselines_mirrors_the_workspace() {
        let roots = Roots::new(Path::new("/ws"), Some(Path::new("/kept")));
        for (file, folder) in [
            ("app/tests/mem.rs", "/kept/app/tests/snapshots"),
            ("app/tests/../../common/shared.rs", "/kept/common/snapshots"),
            ("mem.rs", "/kept/snapshots"),
            ("/ws/app/mem.rs", "/kept/app/snapshots"),
            // A source outside the workspace has no place in the mirror.
            ("../other.rs", "/snapshots"),
            ("/elsewhere/mem.rs", "/elsewhere/snapshots"),
        ] {
            let path = baseline(roots, Path::new(file), "mem__a", Family::Cpu);
            assert_eq!(path, Path::new(folder).join("mem__a@cpu.snap"), "{file}");
        }
        for (path, place) in [("/ws", "/kept"), ("/ws/app", "/kept/app"), ("/wsx/a", "/wsx/a")] {
            let mirrored = roots.mirrored(Path::new(path));
            assert_eq!(mirrored.as_os_str(), place);
            assert_eq!(roots.in_workspace(&mirrored).as_os_str(), path);
        }
        assert_eq!(roots.elsewhere(), Some(Path::new("/kept")));
        assert_eq!(Roots::new(Path::new("/ws"), None).elsewhere(), None);
        assert_eq!(absolute(Path::new("/ws/app"), Path::new("../kept")), Path::new("/ws/kept"));
    }

    #[test]
    fn every_name_gives_one_file_of_its_own_in_the_folder() {
        let long = ["é".repeat(400), "é".repeat(400) + "x", "a".repeat(255), "a".repeat(256)];
        let short = [
            "",
            ".",
            "..",
            "../x",
            "..\\x",
            "a/b",
            "a\\b",
            "a_b",
            "a\0b",
            "a\nb",
            "a\u{202e}b",
            "/etc/x",
        ];
        let names: Vec<String> = short.map(str::to_owned).into_iter().chain(long).collect();
        let mut files = std::collections::BTreeSet::new();
        for name in &names {
            let roots = Roots::new(Path::new("/ws"), None);
            let path = baseline(roots, Path::new("t/m.rs"), name, Family::Cuda);
            assert_eq!(path.parent(), Some(Path::new("/ws/t/snapshots")), "{name:?}");
            let file = path.file_name().unwrap().to_str().unwrap().to_owned();
            assert!(!file.contains(is_special) && file.len() + 4 <= 255, "{file:?}");
            assert!(file.ends_with("@cuda.snap"), "{file:?}");
            assert!(files.insert(file), "{name:?}");
        }
        assert_eq!(file_name("mem__bert__é"), "mem__bert__é");
        let with = |value: &str| law("m::f", &BTreeMap::from([("x".to_owned(), value.to_owned())]));
        assert!(with("1.5").starts_with("m__f__law_x_1_5-"));
        assert_ne!(with("1.5"), with("1_5"));
    }
}
