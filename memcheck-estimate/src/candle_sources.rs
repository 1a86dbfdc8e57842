//! The sources of candle-transformers with which this crate is built, for tests that compare our
//! tables with its modules.

use std::path::PathBuf;
use std::sync::OnceLock;

/// Returns the names of all modules.
pub(crate) fn modules() -> Vec<String> {
    let list = std::fs::read_to_string(models().join("mod.rs")).expect("the list of modules");
    let names = list.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    names.map(str::to_owned).collect()
}

/// Returns the folder of candle's models in the sources with which this crate is built.
fn models() -> &'static PathBuf {
    static MODELS: OnceLock<PathBuf> = OnceLock::new();
    MODELS.get_or_init(find_models)
}

fn find_models() -> PathBuf {
    let metadata = cargo_metadata::MetadataCommand::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        // Only this platform, because the crates of other platforms were not fetched.
        .other_options(["--filter-platform".to_owned(), "x86_64-unknown-linux-gnu".to_owned()])
        .exec()
        .expect("cargo knows the dependencies");
    let candle = metadata.packages.iter().find(|package| package.name == "candle-transformers");
    let manifest = &candle.expect("candle-transformers").manifest_path;
    manifest.with_file_name("src").join("models").into()
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
