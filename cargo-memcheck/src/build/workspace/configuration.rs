//! The files of cargo's configuration (<https://doc.rust-lang.org/cargo/reference/config.html>).

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use memcheck_core::input;

/// Files that include each other in a circle are an error of cargo.
const DEEPEST_INCLUDE: usize = 8;

#[derive(Debug, PartialEq)]
pub(crate) struct ConfigurationFile {
    /// The folder that relative paths of its programs start from: the one with `.cargo`.
    pub(crate) base: PathBuf,
    pub(crate) values: toml::Table,
}

impl ConfigurationFile {
    /// A text of the section `build`.
    pub(crate) fn of_build(&self, key: &str) -> Option<&str> {
        self.values.get("build")?.get(key)?.as_str()
    }
}

/// All files that cargo reads in the folder `here` for the workspace in `root`, the nearest first, and
/// the values of `--config` (`flags`). What is not TOML is left out, because cargo itself ends with an
/// error.
pub(crate) fn configuration_files(
    here: &Path,
    root: &Path,
    flags: &[String],
) -> Vec<ConfigurationFile> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| env::home_dir().map(|home| home.join(".cargo")));
    let folders = here.ancestors().chain(root.ancestors()).map(|folder| folder.join(".cargo"));
    let files =
        folders.chain(home).flat_map(|folder| ["config", "config.toml"].map(|it| folder.join(it)));
    let mut read = Vec::new();
    files.for_each(|file| add(&file, 0, &mut read));
    for value in flags {
        match value.parse() {
            Ok(values) => read.push(ConfigurationFile { base: here.to_owned(), values }),
            // `--config` takes a line of TOML, or the path of a file.
            Err(_) => add(&here.join(value), 0, &mut read),
        }
    }
    read
}

fn add(file: &Path, depth: usize, read: &mut Vec<ConfigurationFile>) {
    let text = input::read_text(file, input::SOURCE).unwrap_or_default();
    let Ok(values) = text.parse::<toml::Table>() else { return };
    let folder = file.parent().unwrap_or(Path::new(""));
    if depth < DEEPEST_INCLUDE {
        let included = values.get("include").into_iter().flat_map(paths);
        included.for_each(|path| add(&folder.join(path), depth + 1, read));
    }
    if !values.is_empty() {
        let base = folder.parent().unwrap_or(folder).to_owned();
        read.push(ConfigurationFile { base, values });
    }
}

/// `include` is a path, a list of paths, or a list of tables with a `path`.
fn paths(value: &toml::Value) -> Vec<&str> {
    match value {
        toml::Value::String(path) => vec![path],
        toml::Value::Array(values) => values.iter().flat_map(paths).collect(),
        toml::Value::Table(table) => table.get("path").into_iter().flat_map(paths).collect(),
        _ => Vec::new(),
    }
}

/// A path is relative to `base`, and a name without a folder is searched for in `PATH`.
pub(crate) fn program(name: &OsStr, base: &Path) -> PathBuf {
    let path = Path::new(name);
    if path.components().count() > 1 {
        return base.join(path);
    }
    let folders = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&folders).map(|folder| folder.join(path));
    found.into_iter().find(|file| file.is_file()).unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn included_files_and_flags_are_configuration_too() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at(".cargo")).unwrap();
        let main = "include = [\"more.toml\", { path = \"gone.toml\", optional = true }]\n";
        fs::write(at(".cargo/config.toml"), format!("{main}[build]\nrustc = \"a\"\n")).unwrap();
        // It includes itself.
        fs::write(at(".cargo/more.toml"), "include = \"more.toml\"\nbuild.rustc = \"b\"\n")
            .unwrap();
        fs::write(at("flag.toml"), "build.rustc = \"c\"\n").unwrap();
        let config = ["build.rustc = \"d\"".to_owned(), at("flag.toml").display().to_string()];
        let of = |folder: &Path| {
            let files = configuration_files(folder, Path::new("/"), &config);
            let own = files.into_iter().filter(|file| file.values.contains_key("build"));
            let name = |file: &ConfigurationFile| file.values["build"]["rustc"].to_string();
            let mut names: Vec<String> = own.map(|file| name(&file)).collect();
            names.retain(|name| ["\"a\"", "\"b\"", "\"c\"", "\"d\""].contains(&name.as_str()));
            names.dedup();
            names
        };
        assert_eq!(of(folder.path()), ["\"b\"", "\"a\"", "\"d\"", "\"c\""]);
    }

    #[test]
    fn a_program_is_found_by_its_path_or_in_path() {
        let base = Path::new("/ws");
        assert_eq!(program(OsStr::new("tools/rustc"), base), Path::new("/ws/tools/rustc"));
        assert_eq!(program(OsStr::new("/opt/rustc"), base), Path::new("/opt/rustc"));
        assert!(program(OsStr::new("sh"), base).is_file());
        assert_eq!(program(OsStr::new("no-such-program"), base), Path::new("no-such-program"));
    }
}
