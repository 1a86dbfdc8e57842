//! Adds the dependency on memcheck-runtime to a manifest, which keeps its form.

use std::path::{Path, PathBuf};

use cargo_metadata::Dependency;
use memcheck_core::input;
use memcheck_core::measurement::cargo_lock::RUNTIME;
use toml_edit::{DocumentMut, Item, Table, Value};

use super::accepted::ACCEPTED;
use crate::build::workspace::CandleSource;
use crate::invocation::cli::InitArgs;

#[derive(Debug, thiserror::Error)]
pub(crate) enum StarterError {
    #[error("init needs one package, but there are several: {0}")]
    Several(String),
    #[error("{0}")]
    NoPackage(String),
    #[error("the package {0} does not depend on candle-core, whose memory the test measures")]
    NoCandle(String),
    #[error("{0} requires candle-core {1}, and {RUNTIME} accepts {ACCEPTED}")]
    OtherVersion(String, String),
    #[error("{0}: {1}")]
    Manifest(String, String),
}

impl StarterError {
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Several(_) => Some("-p names the package".to_owned()),
            Self::NoCandle(name) => Some(format!("`cargo add -p {name} candle-core` adds it")),
            Self::OtherVersion(..) => Some(format!(
                "{RUNTIME} counts memory without candle's types, too: add it with \
                 `default-features = false, features = [\"global-allocator\"]`, and write a test as in \
                 docs/reference/without-candle.md"
            )),
            Self::NoPackage(_) | Self::Manifest(..) => None,
        }
    }
}

/// A manifest with its new text.
#[derive(Debug)]
pub(crate) struct ChangedFile {
    pub(crate) path: PathBuf,
    pub(crate) before: String,
    pub(crate) text: String,
}

impl ChangedFile {
    pub(super) fn edit(
        path: PathBuf,
        edit: impl FnOnce(&str) -> Result<String, String>,
    ) -> Result<Self, StarterError> {
        let error = |why: String| StarterError::Manifest(path.display().to_string(), why);
        let before =
            input::read_text(&path, input::SOURCE).map_err(|why| error(why.to_string()))?;
        let text = edit(&before).map_err(error)?;
        Ok(Self { path, before, text })
    }

    pub(super) fn edit_again(
        &mut self,
        edit: impl FnOnce(&str) -> Result<String, String>,
    ) -> Result<(), StarterError> {
        let error = |why: String| StarterError::Manifest(self.path.display().to_string(), why);
        self.text = edit(&self.text).map_err(error)?;
        Ok(())
    }
}

/// The text of a manifest with the dependency.
/// `another` is the dependency of another package of the workspace.
pub(super) fn with_runtime(
    text: &str,
    folder: &Path,
    args: &InitArgs,
    another: Option<&Dependency>,
) -> Result<String, String> {
    added(text, source(folder, args, another))
}

/// The source of the dependency: a path relative to the package, a repository, or a version. Without
/// a flag it is that of the other package, because cargo would build a second runtime from another.
fn source(folder: &Path, args: &InitArgs, another: Option<&Dependency>) -> Value {
    let entry = |entries: &[(&str, &str)]| {
        Value::InlineTable(entries.iter().map(|(key, value)| (*key, Value::from(*value))).collect())
    };
    let of_path = |path: &Path| entry(&[("path", relative(folder, path).as_str())]);
    if let Some(path) = &args.path {
        // The folder of a whole clone is meant as that of the crate in it.
        let inner = path.join(RUNTIME);
        let is_clone = inner.join("Cargo.toml").is_file();
        return of_path(if is_clone { &inner } else { path });
    }
    if let Some(url) = &args.git {
        return entry(&[("git", url.as_str())]);
    }
    if let Some(path) = another.and_then(|another| another.path.as_ref()) {
        return of_path(path.as_std_path());
    }
    match another.map(CandleSource::declared) {
        Some(CandleSource::Git { url, reference: Some((key, value)) }) => {
            entry(&[("git", url.as_str()), (key.as_str(), value.as_str())])
        }
        Some(CandleSource::Git { url, reference: None }) => entry(&[("git", url.as_str())]),
        Some(CandleSource::Registry | CandleSource::Path(_)) | None => {
            env!("CARGO_PKG_VERSION").into()
        }
    }
}

/// `path` as seen from `folder`, with `..` if necessary.
fn relative(folder: &Path, path: &Path) -> String {
    let whole = |path: &Path| {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        // `..` behind a link leads to another folder than its text suggests.
        absolute.canonicalize().unwrap_or(absolute)
    };
    let (folder, path) = (whole(folder), whole(path));
    let shared = folder.components().zip(path.components()).take_while(|(one, other)| one == other);
    let shared = shared.count();
    let up = folder.components().skip(shared).map(|_| "..".to_owned());
    let down = path.components().skip(shared);
    let down = down.map(|part| part.as_os_str().to_string_lossy().into_owned());
    up.chain(down).collect::<Vec<_>>().join("/")
}

fn added(text: &str, source: Value) -> Result<String, String> {
    let mut manifest: DocumentMut = text.parse().map_err(|error| format!("{error}"))?;
    let dependencies = manifest.entry("dev-dependencies").or_insert(Item::Table(Table::new()));
    let table = dependencies.as_table_like_mut().ok_or("dev-dependencies is not a table")?;
    table.insert(RUNTIME, Item::Value(source));
    Ok(manifest.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_keeps_its_form() {
        let text = "[package]\nname = \"a\" # the name\n\n[dev-dependencies]\nb  =  \"1\"\n";
        let now = added(text, "0.1.0".into()).unwrap();
        assert_eq!(now, format!("{text}memcheck-runtime = \"0.1.0\"\n"));
        let without = "[package]\nname = \"a\"\n";
        let args = InitArgs { git: Some("https://host/m".to_owned()), ..InitArgs::default() };
        let now = added(without, source(Path::new("/a"), &args, None)).unwrap();
        let expected = "[dev-dependencies]\nmemcheck-runtime = { git = \"https://host/m\" }\n";
        assert_eq!(now, format!("{without}\n{expected}"));
        assert!(added("dev-dependencies = 1", "0".into()).is_err());
    }

    #[test]
    fn a_second_package_gets_the_source_of_the_first() {
        let of = |path: Option<&str>, address: Option<&str>| {
            let declared: Dependency = serde_json::from_value(serde_json::json!({
                "name": RUNTIME, "source": address, "req": "*", "kind": "dev", "optional": false,
                "uses_default_features": true, "features": [], "target": null, "path": path,
            }))
            .unwrap();
            let source = source(Path::new("/none/app"), &InitArgs::default(), Some(&declared));
            source.to_string().trim().to_owned()
        };
        let clone = of(Some("/none/clone/memcheck-runtime"), None);
        assert_eq!(clone, "{ path = \"../clone/memcheck-runtime\" }");
        let pinned = of(None, Some("git+https://host/m?rev=1"));
        assert_eq!(pinned, "{ git = \"https://host/m\", rev = \"1\" }");
        let git = of(None, Some("git+https://host/m"));
        assert_eq!(git, "{ git = \"https://host/m\" }");
        let registry = of(None, Some("registry+https://host/index"));
        assert_eq!(registry, format!("{:?}", env!("CARGO_PKG_VERSION")));
    }

    #[test]
    fn a_path_is_relative_to_the_package() {
        let folder = tempfile::tempdir().unwrap();
        let of = |path: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(&path).unwrap();
            path
        };
        let (package, runtime) = (of("app/crates/a"), of("clone/memcheck-runtime"));
        assert_eq!(relative(&package, &runtime), "../../../clone/memcheck-runtime");
    }
}
