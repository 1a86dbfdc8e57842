//! The path of a test's baseline: in `snapshots/`, next to the source file of the test. Paths are
//! normalized as text, because both sides of the wire must agree and insta refuses `..` in a
//! pending path. A symbolic link before a `..` is not resolved.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use crate::device::Family;

/// The absolute source file of a test, without the `..` of a `#[path = "../shared.rs"]`.
pub fn source(workspace: &Path, file: &Path) -> PathBuf {
    normalize(&workspace.join(file))
}

/// The baseline of a test; `stem` is its file name without device and extension.
pub fn baseline(workspace: &Path, file: &Path, stem: &str, family: Family) -> PathBuf {
    let source = source(workspace, file);
    let folder = source.parent().unwrap_or(workspace).join("snapshots");
    folder.join(format!("{stem}@{}.snap", family.name()))
}

/// The stem of the snapshot for the laws of `module`, whose cases share the values `common`.
pub fn law(module: &str, common: &BTreeMap<String, String>) -> String {
    let mut stem = format!("{}__law", module.replace("::", "__"));
    for (name, value) in common {
        let letters = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        stem.push_str(&format!("_{name}_{}", value.chars().map(letters).collect::<String>()));
    }
    stem
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
            let path = baseline(Path::new("/ws"), Path::new(file), "mem__a", Family::Cpu);
            assert_eq!(path, Path::new(folder).join("mem__a@cpu.snap"), "{file}");
        }
        let common = BTreeMap::from([("dtype".to_owned(), "f32".to_owned())]);
        assert_eq!(law("mem::bert::forward", &common), "mem__bert__forward__law_dtype_f32");
        assert_eq!(law("mem::forward", &BTreeMap::new()), "mem__forward__law");
        assert_eq!(normalize(Path::new("../a/./b/../c")), Path::new("../a/c"));
    }
}
