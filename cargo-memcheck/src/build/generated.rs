//! Packages that the tool writes below the target directory and builds. They have the versions,
//! features, profiles and patches of the workspace, so that cargo builds candle once.

mod same_features;

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use cargo_metadata::Package;
use cargo_metadata::semver::Version;
use memcheck_core::input;
use memcheck_core::measurement::cargo_lock::CANDLE;

use crate::build::workspace::Workspace;
use crate::system::files;
use same_features::SameFeatures;

#[derive(Debug)]
pub(crate) struct Generated<'a> {
    pub(crate) name: &'a str,
    /// The second name is a package of the workspace's graph (often the same) whose source the
    /// dependency gets.
    pub(crate) dependencies: &'a [(&'a str, &'a str)],
    pub(crate) source: (&'a str, &'a str),
    /// The oldest candle that the dependencies accept.
    pub(crate) least_candle: Version,
}

impl Generated<'_> {
    pub(crate) fn write(&self, folder: &Path, workspace: &Workspace) -> anyhow::Result<()> {
        let manifest = self.manifest(workspace)?;
        let (path, text) = self.source;
        let source = folder.join(path);
        fs::create_dir_all(source.parent().unwrap_or(folder))?;
        files::replace_if_different(&folder.join("Cargo.toml"), manifest.as_bytes())?;
        files::replace_if_different(&source, text.as_bytes())?;
        // The copy makes cargo use the same versions, so that candle is not built again. Cargo adds
        // the package's further dependencies to it. The copy is replaced when the workspace's
        // Cargo.lock changes.
        let (theirs, own) = (workspace.root().join("Cargo.lock"), folder.join("Cargo.lock"));
        let changed = |path: &Path| fs::metadata(path).and_then(|it| it.modified()).ok();
        // With an older candle, memcheck-runtime would keep it, and the types of the others would
        // differ from its own.
        let candle = workspace.resolved(CANDLE);
        let is_old = candle.is_some_and(|candle| candle.version < self.least_candle);
        // A copy that does not exist has `None`, which is less than every time.
        if !is_old && theirs.exists() && changed(&own) < changed(&theirs) {
            files::replace(&own, &input::read(&theirs, input::LOCK_FILE)?)?;
        }
        Ok(())
    }

    fn manifest(&self, workspace: &Workspace) -> anyhow::Result<String> {
        // A workspace of its own, because its folder can be inside that of another one.
        let mut text = format!(
            "[package]\nname = \"{}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\
             publish = false\n\n[workspace]\n\n[dependencies]\n",
            self.name
        );
        for &(name, like) in self.dependencies {
            let package = workspace.resolved(like).with_context(|| format!("no {like}"))?;
            writeln!(text, "{name} = {}", dependency(name, package)?)?;
        }
        write!(text, "\n{}", toml::to_string(&SameFeatures::of(workspace))?)?;
        let manifest = workspace.root().join("Cargo.toml");
        let root: toml::Table = input::read_text(&manifest, input::SOURCE)?.parse()?;
        for key in ["profile", "patch"] {
            if let Some(value) = root.get(key) {
                let mut value = value.clone();
                // The paths are relative to the folder of the workspace, and this manifest is in
                // another one.
                absolute_paths(&mut value, workspace.root());
                let table = toml::Table::from_iter([(key.to_owned(), value)]);
                write!(text, "\n{}", toml::to_string(&table)?)?;
            }
        }
        Ok(text)
    }
}

/// From the source of `like`: the neighboring folder, the same repository, or the same registry and
/// version.
fn dependency(name: &str, like: &Package) -> anyhow::Result<String> {
    let source = like.source.as_ref().map(|source| source.repr.as_str());
    Ok(match source {
        None => {
            let folder = like.manifest_path.parent().context("the manifest has no folder")?;
            let folder = match (name == like.name.as_str(), folder.parent()) {
                (false, Some(above)) => above.join(name),
                _ => folder.to_owned(),
            };
            format!("{{ path = {} }}", quoted(folder.as_str()))
        }
        Some(source) if source.starts_with("git+") => {
            let (url, commit) = source["git+".len()..]
                .split_once('#')
                .context("the source of the package has no commit")?;
            // The commit replaces the branch or the tag in the query, which can have moved.
            let url = url.split('?').next().unwrap_or(url);
            format!("{{ git = {}, rev = {} }}", quoted(url), quoted(commit))
        }
        Some(_) => format!("\"={}\"", like.version),
    })
}

fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

fn absolute_paths(value: &mut toml::Value, root: &Path) {
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                match value {
                    toml::Value::String(path) if key == "path" => {
                        *path = root.join(PathBuf::from(&*path)).display().to_string();
                    }
                    other => absolute_paths(other, root),
                }
            }
        }
        toml::Value::Array(values) => values.iter_mut().for_each(|v| absolute_paths(v, root)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_of_the_workspace_apply_to_the_package() {
        let mut value: toml::Value =
            toml::from_str::<toml::Table>("[patch.crates-io]\nx = { path = \"../x\" }")
                .unwrap()
                .into();
        absolute_paths(&mut value, Path::new("/ws"));
        assert_eq!(value["patch"]["crates-io"]["x"]["path"].as_str(), Some("/ws/../x"));
    }

    #[test]
    fn a_package_has_the_source_of_its_sibling() {
        let of = |source: serde_json::Value, name: &str| {
            let package: Package = serde_json::from_value(serde_json::json!({
                "name": "memcheck-runtime", "version": "0.1.0", "id": "x", "source": source,
                "manifest_path": "/clone/memcheck-runtime/Cargo.toml", "dependencies": [],
                "targets": [], "features": {},
            }))
            .unwrap();
            dependency(name, &package).unwrap()
        };
        let (path, runtime) = (serde_json::Value::Null, "memcheck-runtime");
        assert_eq!(of(path.clone(), runtime), r#"{ path = "/clone/memcheck-runtime" }"#);
        assert_eq!(of(path, "memcheck-x"), r#"{ path = "/clone/memcheck-x" }"#);
        let git = serde_json::json!("git+https://example.org/m?branch=main#abc");
        assert_eq!(of(git, "memcheck-x"), r#"{ git = "https://example.org/m", rev = "abc" }"#);
        let registry = serde_json::json!("registry+https://example.org/index");
        assert_eq!(of(registry, "memcheck-x"), "\"=0.1.0\"");
    }
}
