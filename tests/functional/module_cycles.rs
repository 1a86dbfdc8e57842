//! The dependencies between the top-level modules of a crate must have no cycle, and neither must
//! those between the modules of one of its folders. A crate must define each name of a type once.
//! Dependencies and types of unit tests do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::fixture::workspace;

/// The modules that each module uses, all in one folder.
type Dependencies = BTreeMap<String, BTreeSet<String>>;

/// The crates, and the least number of their top-level modules.
const CRATES: [(&str, usize); 10] = [
    ("cargo-memcheck", 8),
    ("memcheck-conduct", 6),
    ("memcheck-core", 7),
    ("memcheck-estimate", 5),
    ("memcheck-kernels", 20),
    ("memcheck-ledger", 8),
    ("memcheck-limits", 10),
    ("memcheck-macros", 5),
    ("memcheck-runtime", 20),
    ("memcheck-sim", 20),
];

/// The source without comments and without its unit tests, and the modules that exist for unit
/// tests only.
fn production(source: &str) -> (String, BTreeSet<String>) {
    let (mut kept, mut for_tests) = (String::new(), BTreeSet::new());
    let mut lines = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    while let Some(line) = lines.next() {
        if line != "#[cfg(test)]" {
            kept.push_str(line);
            kept.push('\n');
            continue;
        }
        let item = lines.next().unwrap_or_default();
        if let Some((_, module)) = item.split_once("mod ") {
            match module.strip_suffix(';') {
                Some(name) => drop(for_tests.insert(name.to_owned())),
                // Inline test modules are at the end of a file.
                None => break,
            }
        }
    }
    (kept, for_tests)
}

/// The first names behind `root` of all paths of a source that begin with it, such as `crate::`.
fn used_modules<'a>(source: &'a str, root: &str) -> Vec<&'a str> {
    let name =
        |path: &str| path.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(path.len());
    let mut names = Vec::new();
    for path in source.split(root).skip(1) {
        match path.strip_prefix('{').and_then(|list| list.split_once("};")) {
            Some((list, _)) => {
                let mut depth = 0;
                for piece in list.split_inclusive([',', '{', '}']) {
                    let piece = piece.trim_start();
                    if depth == 0 {
                        names.push(&piece[..name(piece)]);
                    }
                    depth += i32::from(piece.ends_with('{')) - i32::from(piece.ends_with('}'));
                }
            }
            None => names.push(&path[..name(path)]),
        }
    }
    names
}

/// The source with `root` in place of each path that leaves `levels` modules with `super::`.
fn with_absolute_paths(source: &str, root: &str, levels: usize) -> String {
    const UP: &str = "super::";
    let mut text = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find(UP) {
        text.push_str(&rest[..at]);
        let path = &rest[at..];
        rest = path.trim_start_matches(UP);
        let ups = &path[..path.len() - rest.len()];
        text.push_str(if ups.len() == levels * UP.len() { root } else { ups });
    }
    text + rest
}

/// Calls `visit` with the production code of a module and of the modules in it, and with the number
/// of modules between the file and the folder whose modules are compared, `levels` for the first.
fn visit_production(path: &Path, levels: usize, visit: &mut impl FnMut(&str, usize)) {
    let source = std::fs::read_to_string(path).expect("a source file");
    let (source, for_tests) = production(&source);
    visit(&source, levels);
    // `a.rs` and `a/mod.rs` have their modules in `a`, and `lib.rs` has them in its folder.
    let folder = match path.file_stem().is_some_and(|stem| stem == "mod" || stem == "lib") {
        true => path.parent().expect("the file has a folder").to_owned(),
        false => path.with_extension(""),
    };
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if ["lib", "main", "mod"].contains(&name.as_str()) || for_tests.contains(&name) {
            continue;
        }
        match path.is_dir() {
            true if path.join("mod.rs").is_file() => {
                visit_production(&path.join("mod.rs"), levels + 1, visit)
            }
            // The file of the same name has already been read, and its modules with it.
            true => {}
            false => visit_production(&path, levels + 1, visit),
        }
    }
}

/// Adds the dependencies of the files of a module. `levels` is the number of modules between the
/// file and the folder whose modules are compared.
fn add_dependencies(
    path: &Path,
    root: &str,
    levels: usize,
    module: &str,
    modules: &mut Dependencies,
) {
    let own = modules.entry(module.to_owned()).or_default();
    visit_production(path, levels, &mut |source, levels| {
        let source = with_absolute_paths(source, root, levels);
        own.extend(used_modules(&source, root).into_iter().map(str::to_owned));
    });
}

/// The modules in a folder, whose paths begin with `root`.
fn modules(sources: &Path, root: &str) -> Dependencies {
    let mut modules = Dependencies::new();
    for entry in std::fs::read_dir(sources).expect("a folder of sources").flatten() {
        let path = entry.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if path.join("mod.rs").is_file() {
            add_dependencies(&path.join("mod.rs"), root, 1, &name, &mut modules);
        } else if path.is_file() && !["lib", "main", "mod"].contains(&name.as_str()) {
            add_dependencies(&path, root, 1, &name, &mut modules);
        }
    }
    let known: BTreeSet<String> = modules.keys().cloned().collect();
    for (module, uses) in &mut modules {
        uses.retain(|name| known.contains(name) && name != module);
    }
    modules
}

/// Removes modules that use no remaining module, and modules that no remaining module uses, until
/// nothing changes. The rest are cycles.
fn cycles(mut modules: Dependencies) -> Dependencies {
    loop {
        let before = modules.len();
        let used: BTreeSet<String> = modules.values().flatten().cloned().collect();
        modules.retain(|module, uses| !uses.is_empty() && used.contains(module));
        let left: BTreeSet<String> = modules.keys().cloned().collect();
        for uses in modules.values_mut() {
            uses.retain(|name| left.contains(name));
        }
        if modules.len() == before {
            return modules;
        }
    }
}

#[test]
fn the_modules_of_each_crate_have_no_dependency_cycle() {
    for (name, least) in CRATES {
        let sources = workspace().join(name).join("src");
        let modules = modules(&sources, "crate::");
        assert!(modules.len() >= least, "{name} has {} modules", modules.len());
        assert!(modules.values().any(|uses| !uses.is_empty()), "{name}: {modules:?}");
        let cycles = cycles(modules);
        assert!(cycles.is_empty(), "{name}: {cycles:#?}");
    }
}

/// Each folder of the sources that has modules of its own, and the path of its modules.
fn folders(sources: &Path, root: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(sources).expect("a folder of sources").flatten() {
        let path = entry.path();
        if path.is_dir() {
            let root = format!("{root}{}::", entry.file_name().to_string_lossy());
            found.extend(folders(&path, &root));
            found.push((path, root));
        }
    }
    found
}

#[test]
fn the_modules_of_each_folder_have_no_dependency_cycle() {
    for (name, _) in CRATES {
        let sources = workspace().join(name).join("src");
        for (folder, root) in folders(&sources, "crate::") {
            let cycles = cycles(modules(&folder, &root));
            assert!(cycles.is_empty(), "{}: {cycles:#?}", folder.display());
        }
    }
}

/// The name of the struct, enum or trait whose definition begins in a line of code.
fn defined_type(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = line.strip_prefix("pub").map_or(line, |line| match line.split_once(')') {
        Some((visibility, rest)) if visibility.starts_with('(') => rest,
        _ => line,
    });
    let (keyword, rest) = line.trim_start().trim_start_matches("unsafe ").split_once(' ')?;
    let name = rest.split(|c: char| !c.is_alphanumeric()).next().filter(|name| !name.is_empty());
    name.filter(|_| ["struct", "enum", "union", "trait"].contains(&keyword))
}

/// The names that the production code of a crate defines as more than one type.
fn names_of_several_types(sources: &Path) -> BTreeSet<String> {
    let (mut names, mut several) = (BTreeSet::new(), BTreeSet::new());
    visit_production(&sources.join("lib.rs"), 0, &mut |source, _| {
        let defined = source.lines().filter_map(defined_type).map(str::to_owned);
        several.extend(defined.filter(|name| !names.insert(name.clone())));
    });
    assert!(!names.is_empty(), "{}: no types", sources.display());
    several
}

#[test]
fn a_crate_defines_each_type_name_once() {
    for (name, _) in CRATES {
        let several = names_of_several_types(&workspace().join(name).join("src"));
        assert!(several.is_empty(), "{name}: {several:?}");
    }
}

#[test]
fn a_name_of_two_types_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("lib.rs", "mod a;\nmod b;\n#[cfg(test)]\nmod c;\nstruct One;\n");
    write("a.rs", "pub struct Two(u8);\nfn f() {\n    // A struct One\n    enum Three {}\n}\n");
    write("b.rs", "pub(in crate::b) trait Two<T> {}\nunsafe trait Three {}\n");
    write("c.rs", "struct One;\n");
    let found = names_of_several_types(folder.path());
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["Three", "Two"]);
}

#[test]
fn a_dependency_cycle_is_found_and_unit_tests_do_not_count() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("lib.rs", "mod a;\nmod b;\nmod c;\nuse crate::c::C;\n");
    write("a/mod.rs", "mod inner;\n");
    write("a/inner.rs", "use crate::b::B;\n");
    write("b.rs", "use std::fmt;\nuse crate::{\n    c::{C, D},\n    fmt::a,\n};\n");
    write("c.rs", "// crate::a\n#[cfg(test)]\nmod tests;\n");
    write("c/tests.rs", "use crate::a;\n");
    assert!(cycles(modules(folder.path(), "crate::")).is_empty());
    write("c/tests.rs", "");
    write("c.rs", "#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n");
    assert!(cycles(modules(folder.path(), "crate::")).is_empty());
    write("c/more.rs", "fn x() {\n    super::super::a::y();\n}\n");
    let found: Vec<String> = cycles(modules(folder.path(), "crate::")).into_keys().collect();
    assert_eq!(found, ["a", "b", "c"]);
}
