//! The sources of candle-transformers with which this crate is built, for tests that compare our
//! tables with its modules.

use std::path::PathBuf;

/// Returns the names of all modules.
pub(crate) fn modules() -> Vec<String> {
    let list = std::fs::read_to_string(models().join("mod.rs")).expect("the list of modules");
    let names = list.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    names.map(str::to_owned).collect()
}

/// Returns the folder of candle's models in the sources with which this crate is built.
fn models() -> PathBuf {
    memcheck_sources::folder("candle-transformers").join("src/models")
}

/// Returns the source text of a module, which is a file or a folder of files.
pub(crate) fn source(module: &str) -> String {
    let read = |path: PathBuf| std::fs::read_to_string(path).expect("a source file");
    let folder = models().join(module);
    if !folder.is_dir() {
        return read(folder.with_extension("rs"));
    }
    let files = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file"));
    let files = files.map(|entry| entry.path());
    files.filter(|path| path.extension().is_some_and(|end| end == "rs")).map(read).collect()
}
