//! The list of modules in `docs/modules.md` is made from the first sentence of each module's own
//! documentation, so that it cannot differ from the sources. `just modules` writes it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::fixture::workspace;

/// The packages, each with the folder of its modules.
const PACKAGES: [(&str, &str); 14] = [
    ("memcheck-limits", "src"),
    ("memcheck-macros", "src"),
    ("memcheck-ledger", "src"),
    ("memcheck-runtime", "src"),
    ("memcheck-sim", "src"),
    ("memcheck-kernels", "src"),
    ("memcheck-core", "src"),
    ("memcheck-conduct", "src"),
    ("memcheck-estimate", "src"),
    ("cargo-memcheck", "src"),
    ("tests", ""),
    ("tests/functional", ""),
    ("tests/programs", ""),
    ("tests/sources", "src"),
];

const HEAD: &str = "\
# Modules

One block for each package, from the first sentence of each module's own documentation. `just modules` writes this page, and a test compares
it with the sources. A name with `/` is a folder, with its modules below it. Modules named `tests` are left out.
[DESIGN.md](../DESIGN.md) describes how the packages work together.
";

/// The width of a line in a block.
const WIDTH: usize = 140;

/// The most characters of a first sentence, because a list of longer ones is not read.
const LONGEST: usize = 200;

/// A module, with the modules in its folder by name.
#[derive(Default)]
struct Module {
    sentence: String,
    is_folder: bool,
    inner: BTreeMap<String, Module>,
}

/// The first sentence of a source's own documentation, or an empty text.
fn first_sentence(source: &str) -> String {
    let lines = source.lines().skip_while(|line| !line.starts_with("//!"));
    let lines = lines.map_while(|line| line.strip_prefix("//!").map(str::trim));
    let paragraph: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
    let text = paragraph.join(" ");
    let end = text.find(". ").map_or(text.len(), |end| end + 1);
    text[..end].to_owned()
}

/// The modules in a folder. The folder's own sentence is in `lib.rs`, `mod.rs` or `main.rs`, or in
/// the file of the same name next to it.
fn read_folder(folder: &Path) -> Module {
    let mut module = Module { is_folder: true, ..Module::default() };
    let is_package = folder.join("Cargo.toml").is_file();
    for entry in fs::read_dir(folder).expect("a folder of sources").flatten() {
        let path = entry.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        // Unit tests, files of packages that tests write, and packages that have a block of their own.
        let is_left_out = name == "tests" && !is_package || name == "template";
        if is_left_out || path.join("Cargo.toml").is_file() {
            continue;
        }
        if path.is_dir() {
            let inner = read_folder(&path);
            let is_of_rust = !inner.inner.is_empty() || !inner.sentence.is_empty();
            if is_of_rust {
                let known = module.inner.entry(name).or_default();
                known.sentence.push_str(&inner.sentence);
                known.inner = inner.inner;
                known.is_folder = true;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = fs::read_to_string(&path).expect("a source file");
            module.inner.entry(name).or_default().sentence += &first_sentence(&source);
        }
    }
    let head = ["lib", "mod", "main"].into_iter().find_map(|head| module.inner.remove(head));
    module.sentence = head.map(|head| head.sentence).unwrap_or_default();
    module
}

/// Adds a line for each module: indentation, name, sentence.
fn add_rows(module: &Module, level: usize, rows: &mut Vec<(String, String)>) {
    for (name, module) in &module.inner {
        let slash = if module.is_folder { "/" } else { "" };
        let name = format!("{}{name}{slash}", "  ".repeat(level));
        rows.push((name, module.sentence.clone()));
        add_rows(module, level + 1, rows);
    }
}

/// The rows as columns. The rest of a sentence that does not fit into a line is below its beginning.
fn block(rows: &[(String, String)]) -> String {
    let column = rows.iter().map(|(name, _)| name.chars().count() + 2).max().unwrap_or_default();
    let mut text = String::new();
    for (name, sentence) in rows {
        let mut line = format!("{name:column$}");
        for word in sentence.split(' ') {
            if line.chars().count() + word.chars().count() > WIDTH {
                text += line.trim_end();
                text.push('\n');
                line = " ".repeat(column);
            }
            line += word;
            line.push(' ');
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// Adds the modules whose first sentence is missing or too long.
fn add_defects(path: &str, module: &Module, defects: &mut Vec<String>) {
    // A package of programs, or a folder of them, is not a module.
    let is_module = !["tests", "benches", "examples"].iter().any(|name| path.ends_with(name));
    if is_module && module.sentence.is_empty() {
        defects.push(format!("{path} has no `//!` line"));
    }
    if module.sentence.chars().count() > LONGEST {
        defects.push(format!("{path}: the first sentence has more than {LONGEST} characters"));
    }
    for (name, module) in &module.inner {
        add_defects(&format!("{path}/{name}"), module, defects);
    }
}

/// The page, and the defects of the modules' documentation.
fn page(root: &Path, packages: &[(&str, &str)]) -> (String, Vec<String>) {
    let (mut page, mut defects) = (HEAD.to_owned(), Vec::new());
    for (package, folder) in packages {
        let module = read_folder(&root.join(package).join(folder));
        add_defects(package, &module, &mut defects);
        let mut rows = Vec::new();
        add_rows(&module, 0, &mut rows);
        page += &format!("\n## {package}\n\n");
        if !module.sentence.is_empty() {
            page += &format!("{}\n\n", module.sentence);
        }
        page += &format!("```text\n{}```\n", block(&rows));
    }
    (page, defects)
}

#[test]
fn the_list_of_modules_is_that_of_the_sources() {
    let (page, defects) = page(&workspace(), &PACKAGES);
    assert!(defects.is_empty(), "{defects:#?}");
    let path = workspace().join("docs/modules.md");
    if std::env::var("MODULES").is_ok_and(|value| value == "write") {
        fs::write(&path, &page).expect("the page can be written");
    }
    let committed = fs::read_to_string(&path).expect("docs/modules.md");
    let mut lines = page.lines().zip(committed.lines());
    let first = lines.find(|(made, found)| made != found);
    assert!(
        page == committed,
        "docs/modules.md differs from the sources: run `just modules`. The first difference: {first:?}"
    );
}

#[test]
fn the_page_has_each_module_and_names_those_without_documentation() {
    let root = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = root.path().join("one/src").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("lib.rs", "// A license.\n//! All of it:\n//! two parts. And more.\n");
    write("main.rs", "#![forbid(unsafe_code)]\n\n//! The program.\n");
    write("a.rs", "//! The first part\n//!\n//! More.\n");
    write("a/inner.rs", "//! Inside.\nfn f() {}\n");
    write("a/tests.rs", "");
    write("b/mod.rs", &format!("//! Words{}.\n", " that do not fit into one line".repeat(5)));
    write("b/tests/all.rs", "");
    let rest = " that do not fit into one line".repeat(4);
    let (text, defects) = page(root.path(), &[("one", "src")]);
    assert_eq!(defects, [""; 0]);
    let list = format!(
        "
## one

All of it: two parts.

```text
a/       The first part
  inner  Inside.
b/       Words{rest} that
         do not fit into one line.
main     The program.
```
"
    );
    assert_eq!(text.strip_prefix(HEAD), Some(list.as_str()));
    write("a/inner.rs", "fn f() {}\n");
    write("b/mod.rs", &format!("//! Words{}.\n", " that do not end".repeat(20)));
    let (_, defects) = page(root.path(), &[("one", "src")]);
    let long = format!("one/b: the first sentence has more than {LONGEST} characters");
    assert_eq!(defects, ["one/a/inner has no `//!` line".to_owned(), long]);
}
