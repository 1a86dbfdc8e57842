//! The source of a crate of candle, and the entry of a manifest that names it.

use std::fmt;
use std::path::{Path, PathBuf};

use cargo_metadata::{Dependency, Package};
use memcheck_core::measurement::cargo_lock::CANDLE;
use toml_edit::{InlineTable, Value};

const NN: &str = "candle-nn";
const TRANSFORMERS: &str = "candle-transformers";

/// The crates of candle on which memcheck-runtime depends, the last two with features only. They bring
/// all others from their own repository.
const CRATES: [&str; 4] = [CANDLE, "candle-kernels", NN, TRANSFORMERS];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CandleSource {
    Registry,
    Git {
        url: String,
        /// `rev`, `branch` or `tag` of a dependency, with its value.
        reference: Option<(String, String)>,
    },
    /// The folder above those of the crates.
    Path(PathBuf),
}

impl CandleSource {
    pub(crate) fn of(package: &Package) -> Self {
        match &package.source {
            Some(source) => Self::parse(&source.repr),
            None => Self::above(package.manifest_path.parent().map(|it| it.as_std_path())),
        }
    }

    /// That of a dependency as a manifest declares it.
    pub(crate) fn declared(dependency: &Dependency) -> Self {
        match (&dependency.path, &dependency.source) {
            (Some(path), _) => Self::above(Some(path.as_std_path())),
            (None, Some(source)) => Self::parse(&source.repr),
            (None, None) => Self::Registry,
        }
    }

    fn above(folder: Option<&Path>) -> Self {
        Self::Path(folder.and_then(Path::parent).unwrap_or(Path::new("")).to_owned())
    }

    /// `git+URL?rev=REV#COMMIT`, or that of a registry.
    fn parse(source: &str) -> Self {
        let Some(git) = source.strip_prefix("git+") else { return Self::Registry };
        // The commit is the one of Cargo.lock, which a manifest does not name.
        let git = git.split_once('#').map_or(git, |(before, _)| before);
        let (url, query) = git.split_once('?').unwrap_or((git, ""));
        let parts = query.split('&').filter_map(|part| part.split_once('='));
        let mut named = parts.filter(|(key, _)| ["rev", "branch", "tag"].contains(key));
        let reference = named.next().map(|(key, value)| (key.to_owned(), decoded(value)));
        Self::Git { url: url.to_owned(), reference }
    }

    /// The crates to replace by those of this source, so that the runtime has those of a program with
    /// the `used` crates. `beside` is the folder above the crates, if it is known.
    pub(crate) fn crates(&self, used: &[&str], beside: Option<&Path>) -> Vec<&'static str> {
        let is_there =
            |name: &str| beside.is_none_or(|folder| folder.join(name).join("Cargo.toml").is_file());
        let wanted = |name: &&str| match *name {
            NN => used.contains(&NN) || used.contains(&TRANSFORMERS),
            TRANSFORMERS => used.contains(&TRANSFORMERS),
            _ => true,
        };
        CRATES.into_iter().filter(wanted).filter(|name| is_there(name)).collect()
    }

    /// The value of an entry of `[patch.crates-io]` in the manifest of the workspace in `root`.
    pub(crate) fn entry(&self, name: &str, root: &Path) -> Value {
        let mut table = InlineTable::new();
        match self {
            Self::Registry => {}
            Self::Git { url, reference } => {
                table.insert("git", url.as_str().into());
                if let Some((key, value)) = reference {
                    table.insert(key, value.as_str().into());
                }
            }
            Self::Path(above) => {
                let folder = above.join(name);
                // Relative in the workspace, so that the line holds in every checkout.
                let folder = folder.strip_prefix(root).unwrap_or(&folder);
                table.insert("path", folder.to_string_lossy().into_owned().into());
            }
        }
        Value::InlineTable(table)
    }
}

/// Cargo writes a reference with the escapes of a URL.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = match (first, tail) {
            (b'%', [high, low, ..]) => std::str::from_utf8(&[*high, *low])
                .ok()
                .and_then(|hex| u8::from_str_radix(hex, 16).ok()),
            _ => None,
        };
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

impl fmt::Display for CandleSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Registry => f.write_str("the registry"),
            Self::Git { url, reference: None } => write!(f, "{url}"),
            Self::Git { url, reference: Some((key, value)) } => write!(f, "{url} ({key} {value})"),
            Self::Path(above) => write!(f, "{}", above.join(CANDLE).display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_of_a_patch_has_the_reference_of_the_dependency() {
        let entry = |source: &str| {
            let source = CandleSource::parse(source);
            source.entry("candle-nn", Path::new("/ws")).to_string().trim().to_owned()
        };
        let (url, rev) = ("https://host/candle", "35d7ae7");
        assert_eq!(entry(&format!("git+{url}#{rev}00")), format!("{{ git = \"{url}\" }}"));
        assert_eq!(
            entry(&format!("git+{url}?rev={rev}#{rev}00")),
            format!("{{ git = \"{url}\", rev = \"{rev}\" }}")
        );
        assert_eq!(
            entry(&format!("git+{url}?branch=feature%2Fmoe#0")),
            format!("{{ git = \"{url}\", branch = \"feature/moe\" }}")
        );
        let path =
            |above: &str| CandleSource::Path(above.into()).entry("candle-nn", Path::new("/ws"));
        assert_eq!(path("/ws").to_string().trim(), "{ path = \"candle-nn\" }");
        assert_eq!(path("/ws/vendor").to_string().trim(), "{ path = \"vendor/candle-nn\" }");
        assert_eq!(path("/other").to_string().trim(), "{ path = \"/other/candle-nn\" }");
    }

    #[test]
    fn only_crates_that_the_source_has_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["candle-core", "candle-nn"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
            std::fs::write(folder.path().join(name).join("Cargo.toml"), "").unwrap();
        }
        let source = CandleSource::Path(folder.path().to_owned());
        let used = ["candle-nn", "candle-lora", "serde"];
        assert_eq!(source.crates(&used, Some(folder.path())), ["candle-core", "candle-nn"]);
        let all = ["candle-core", "candle-kernels", "candle-nn"];
        assert_eq!(source.crates(&used, None), all);
    }

    #[test]
    fn only_crates_of_the_runtime_that_the_program_uses_are_replaced() {
        let source = CandleSource::Path(PathBuf::new());
        let base = ["candle-core", "candle-kernels"];
        let others = ["candle-core", "candle-flash-attn", "candle-metal-kernels", "candle-onnx"];
        assert_eq!(source.crates(&others, None), base);
        // candle-nn is a dependency of candle-transformers, and can be none of the program.
        let all = [&base[..], &["candle-nn", "candle-transformers"]].concat();
        assert_eq!(source.crates(&["candle-core", "candle-transformers"], None), all);
    }
}
