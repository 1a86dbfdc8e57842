//! Gives memcheck-runtime the candle of a package that is not that of the registry: entries of
//! `[patch.crates-io]` in the manifest of the workspace.

use std::path::Path;

use cargo_metadata::Dependency;
use memcheck_core::input;
use memcheck_core::measurement::cargo_lock::CANDLE;
use toml_edit::{DocumentMut, Item, Table};

use crate::build::workspace::{CandleSource, Workspace};

/// Without crates if candle is that of the registry.
#[derive(Debug)]
pub(super) struct Patch {
    source: CandleSource,
    crates: Vec<&'static str>,
}

impl Patch {
    /// `candle` is the dependency of the package on candle-core.
    pub(super) fn of(workspace: &Workspace, candle: &Dependency) -> Self {
        let source = CandleSource::declared(candle);
        let crates = match &source {
            CandleSource::Registry => Vec::new(),
            CandleSource::Git { .. } => source.crates(&used(workspace, &source), None),
            CandleSource::Path(above) => source.crates(&used(workspace, &source), Some(above)),
        };
        Self { source, crates }
    }

    /// Entries that the manifest has already stay as they are.
    pub(super) fn added(&self, text: &str, root: &Path) -> Result<String, String> {
        if self.crates.is_empty() {
            return Ok(text.to_owned());
        }
        let mut manifest: DocumentMut = text.parse().map_err(|error| format!("{error}"))?;
        let mut implicit = Table::new();
        // Otherwise an empty `[patch]` line would precede the table.
        implicit.set_implicit(true);
        let patch = manifest.entry("patch").or_insert(Item::Table(implicit));
        let patch = patch.as_table_like_mut().ok_or("patch is not a table")?;
        let registry = patch.entry("crates-io").or_insert(Item::Table(Table::new()));
        let registry = registry.as_table_like_mut().ok_or("patch.crates-io is not a table")?;
        if registry.contains_key(CANDLE) {
            return Ok(text.to_owned());
        }
        for name in &self.crates {
            registry.entry(name).or_insert_with(|| Item::Value(self.source.entry(name, root)));
        }
        Ok(manifest.to_string())
    }

    /// `None` if the lock file has none of the registry's crates that the patch replaces.
    pub(super) fn update(&self, root: &Path) -> Option<String> {
        let lock = input::read_text(&root.join("Cargo.lock"), input::LOCK_FILE).ok()?;
        let lock: toml::Table = lock.parse().ok()?;
        let packages = lock.get("package")?.as_array()?.iter();
        let specs = packages.filter_map(|package| {
            let text = |key: &str| package.get(key)?.as_str();
            let (name, version) = (text("name")?, text("version")?);
            let is_replaced =
                self.crates.contains(&name) && text("source")?.starts_with("registry+");
            is_replaced.then(|| format!(" -p {name}@{version}"))
        });
        let specs: String = specs.collect();
        (!specs.is_empty()).then(|| format!("cargo update{specs}"))
    }
}

/// The crates of this source that members of the workspace use.
fn used<'a>(workspace: &'a Workspace, source: &CandleSource) -> Vec<&'a str> {
    let declared = workspace.members().into_iter().flat_map(|member| &member.dependencies);
    let same = declared.filter(|dependency| CandleSource::declared(dependency) == *source);
    same.map(|dependency| dependency.name.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git() -> Patch {
        let (url, rev) =
            ("https://host/candle".to_owned(), ("rev".to_owned(), "35d7ae7".to_owned()));
        let source = CandleSource::Git { url, reference: Some(rev) };
        Patch { source, crates: vec!["candle-core", "candle-nn"] }
    }

    #[test]
    fn a_manifest_gets_the_entries_and_keeps_its_form() {
        let added = |text: &str| git().added(text, Path::new("/ws")).unwrap();
        let text = "[workspace]\nmembers = [\"a\"] # all\n";
        let entry = |name: &str| {
            format!("{name} = {{ git = \"https://host/candle\", rev = \"35d7ae7\" }}\n")
        };
        let both = entry("candle-core") + &entry("candle-nn");
        assert_eq!(added(text), format!("{text}\n[patch.crates-io]\n{both}"));
        // That of another crate is kept, and one of candle is the user's choice.
        let other = format!("{text}[patch.crates-io]\nserde  =  {{ path = \"serde\" }}\n");
        assert_eq!(added(&other), other.clone() + &both);
        let own = format!("{text}[patch.crates-io]\ncandle-core = {{ path = \"candle\" }}\n");
        assert_eq!(added(&own), own);
        let registry = Patch { source: CandleSource::Registry, crates: Vec::new() };
        assert_eq!(registry.added("any text", Path::new("/ws")).unwrap(), "any text");
        assert!(git().added("patch = 1", Path::new("/ws")).is_err());
    }

    #[test]
    fn a_lock_file_with_the_crates_of_the_registry_needs_a_command() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(git().update(folder.path()), None);
        let lock = "[[package]]\nname = \"candle-core\"\nversion = \"0.11.1\"\n\
                    source = \"registry+https://host/index\"\n\n\
                    [[package]]\nname = \"candle-nn\"\nversion = \"0.11.0\"\n\
                    source = \"git+https://host/candle#0\"\n";
        std::fs::write(folder.path().join("Cargo.lock"), lock).unwrap();
        let command = git().update(folder.path());
        assert_eq!(command.as_deref(), Some("cargo update -p candle-core@0.11.1"));
    }
}
