//! The packages of the tests, in a folder that cargo uses in place of a registry.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::fixture::Project;

/// A version of a package, whose function `hold` allocates `bytes` and meanwhile calls that of each
/// dependency.
struct Published {
    name: &'static str,
    version: &'static str,
    bytes: usize,
    /// Names with requirements.
    dependencies: &'static [(&'static str, &'static str)],
}

const fn package(
    name: &'static str,
    version: &'static str,
    bytes: usize,
    dependencies: &'static [(&'static str, &'static str)],
) -> Published {
    Published { name, version, bytes, dependencies }
}

/// The only version that is yanked.
const YANKED: &str = "1.1.1";

const OLDEST: [Published; 9] = [
    package("pool", "0.1.0", 100_000, &[]),
    package("ring", "1.0.0", 1_000_000, &[("pool", "^0.1.0")]),
    package("slab", "1.0.0", 10_000_000, &[]),
    package("left", "1.0.0", 4_000_000, &[("right", "=1.0.0")]),
    package("right", "1.0.0", 400_000, &[]),
    package("wide", "1.0.0", 600_000, &[]),
    package("twice", "1.0.0", 10_000, &[]),
    package("twice", "2.0.0", 30_000, &[]),
    package("pulled", "1.0.0", 70_000, &[]),
];

const NEWER: [Published; 13] = [
    package("pool", "0.1.1", 200_000, &[]),
    package("pool", "0.1.2", 300_000, &[]),
    package("pool", "0.1.3", 150_000, &[]),
    package("pool", "0.2.0", 900_000, &[]),
    package("ring", "1.1.0", 2_000_000, &[("pool", "^0.1.2")]),
    package("ring", "1.2.0", 3_000_000, &[("pool", "^0.1.2"), ("slab", "^1")]),
    package("slab", "1.1.0", 20_000_000, &[]),
    package("left", "1.1.0", 5_000_000, &[("right", "=1.1.0")]),
    package("right", "1.1.0", 500_000, &[]),
    package("wide", "2.0.0", 700_000, &[]),
    package("twice", "1.1.0", 20_000, &[]),
    package("twice", "2.1.0", 40_000, &[]),
    package("pulled", YANKED, 80_000, &[]),
];

/// The configuration, and the oldest version of each package.
pub(super) fn write_oldest(project: &Project) {
    let folder = folder();
    let configuration = format!(
        "[registries]\nprepared.index = \"file:///registry-of-this-test\"\n\n\
         [source.prepared]\nregistry = \"file:///registry-of-this-test\"\n\
         replace-with = \"folder\"\n\n[source.folder]\nlocal-registry = \"{folder}\"\n"
    );
    project.write(".cargo/config.toml", &configuration);
    publish(project, OLDEST.iter());
}

pub(super) fn write_newer(project: &Project) {
    publish(project, OLDEST.iter().chain(&NEWER));
}

/// Cargo unpacks a package once for each path of a registry, so that other packages need another
/// path.
fn folder() -> String {
    let mut hasher = DefaultHasher::new();
    for package in OLDEST.iter().chain(&NEWER) {
        (package.manifest(), package.source()).hash(&mut hasher);
    }
    format!("registry-{:016x}", hasher.finish())
}

/// Writes the archives and the index.
fn publish<'a>(project: &Project, packages: impl Iterator<Item = &'a Published>) {
    let mut index: BTreeMap<&str, String> = BTreeMap::new();
    for package in packages {
        let archive = format!("{}/{}-{}.crate", folder(), package.name, package.version);
        let line = package.pack(&project.path().join(archive));
        index.entry(package.name).or_default().push_str(&format!("{line}\n"));
    }
    for (name, lines) in index {
        let file = format!("{}/index/{}/{}/{name}", folder(), &name[..2], &name[2..4]);
        project.write(&file, &lines);
    }
}

impl Published {
    /// Cargo reads the dependencies from the index.
    fn manifest(&self) -> String {
        let Self { name, version, .. } = self;
        let dependency = |(name, requirement): &(&str, &str)| {
            format!(
                "{name} = {{ version = \"{requirement}\", registry-index = \
                 \"file:///registry-of-this-test\" }}\n"
            )
        };
        let dependencies: String = self.dependencies.iter().map(dependency).collect();
        format!(
            "[package]\nname = \"{name}\"\nversion = \"{version}\"\nedition = \"2021\"\n\n\
             [dependencies]\n{dependencies}"
        )
    }

    fn source(&self) -> String {
        let calls: String =
            self.dependencies.iter().map(|(name, _)| format!("    {name}::hold();\n")).collect();
        format!(
            "pub fn hold() {{\n    let own = std::hint::black_box(vec![0u8; {}]);\n{calls}    \
             drop(own);\n}}\n",
            self.bytes
        )
    }

    /// Writes the archive, and returns the line of the index.
    fn pack(&self, path: &Path) -> String {
        let Self { name, version, .. } = self;
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("the folder is made");
        let file = std::fs::File::create(path).expect("the archive is made");
        let compressed = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
        let mut archive = tar::Builder::new(compressed);
        for (file, text) in [("Cargo.toml", self.manifest()), ("src/lib.rs", self.source())] {
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            header.set_mode(0o644);
            let file = format!("{name}-{version}/{file}");
            archive.append_data(&mut header, file, text.as_bytes()).expect("a file is added");
        }
        archive.into_inner().and_then(|it| it.finish()).expect("the archive is complete");
        let dependency = |(name, requirement): &(&str, &str)| {
            json!({
                "name": name, "req": requirement, "features": [], "optional": false,
                "default_features": true, "target": null, "kind": "normal",
            })
        };
        let dependencies: Vec<_> = self.dependencies.iter().map(dependency).collect();
        let line = json!({
            "name": name, "vers": version, "deps": dependencies, "cksum": checksum(path),
            "features": {}, "yanked": *version == YANKED,
        });
        line.to_string()
    }
}

/// The SHA-256 of a file.
fn checksum(path: &Path) -> String {
    let output = Command::new("sha256sum").arg(path).output().expect("sha256sum runs");
    let output = String::from_utf8_lossy(&output.stdout).into_owned();
    output.split(' ').next().unwrap_or_default().to_owned()
}
