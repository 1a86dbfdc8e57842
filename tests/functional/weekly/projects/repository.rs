//! Local git repositories of published crates, in the place of those of a project.

use std::path::{Path, PathBuf};

use crate::fixture::{cargo, copy_crate, target};
use crate::which_candle::git;

/// A repository with a folder for each crate.
pub(super) struct Repository {
    folder: PathBuf,
    revision: String,
}

impl Repository {
    /// A repository of these crates in these versions. Cargo downloads those that the registry's
    /// cache lacks.
    pub(super) fn new(name: &str, crates: &[(&str, &str)]) -> Self {
        let folder = target().join("functional/repositories").join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        for (krate, published) in published(crates) {
            copy_crate(&published, &folder.join(&krate));
            let manifest = folder.join(&krate).join("Cargo.toml");
            let mut text = std::fs::read_to_string(&manifest).expect("a manifest");
            for (other, _) in crates {
                // candle-nn calls candle-core `candle`.
                for dependency in [other, other.trim_end_matches("-core")] {
                    let version = format!("[dependencies.{dependency}]\nversion");
                    let path =
                        format!("[dependencies.{dependency}]\npath = \"../{other}\"\nversion");
                    text = text.replace(&version, &path);
                }
            }
            std::fs::write(&manifest, text).expect("a manifest");
        }
        git(&folder, &["init", "--quiet"]);
        git(&folder, &["add", "--all", "--force"]);
        git(&folder, &["commit", "--quiet", "--message", name]);
        Self { revision: git(&folder, &["rev-parse", "HEAD"]), folder }
    }

    /// The keys of a dependency.
    pub(super) fn keys(&self) -> String {
        format!("git = \"file://{}\", rev = \"{}\"", self.folder.display(), self.revision)
    }
}

/// The folders of crates in cargo's registry.
fn published(crates: &[(&str, &str)]) -> Vec<(String, PathBuf)> {
    let fetching = tempfile::tempdir().expect("a folder");
    let mut manifest = "[package]\nname = \"fetching\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\
                        [workspace]\n[dependencies]\n"
        .to_owned();
    for (krate, version) in crates {
        manifest.push_str(&format!("{krate} = \"={version}\"\n"));
    }
    std::fs::create_dir(fetching.path().join("src")).expect("a folder");
    std::fs::write(fetching.path().join("src/lib.rs"), "").expect("a file");
    std::fs::write(fetching.path().join("Cargo.toml"), manifest).expect("a manifest");
    let mut metadata = cargo();
    metadata.args(["metadata", "--format-version", "1"]).current_dir(fetching.path());
    let output = metadata.output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("a list of packages");
    let folder = |(krate, version): &(&str, &str)| {
        let is = |it: &&serde_json::Value| it["name"] == *krate && it["version"] == *version;
        let manifest = packages.iter().find(is).and_then(|it| it["manifest_path"].as_str());
        let manifest = manifest.unwrap_or_else(|| panic!("{krate} {version} is not published"));
        (krate.to_string(), Path::new(manifest).parent().expect("a folder").to_owned())
    };
    crates.iter().map(folder).collect()
}
