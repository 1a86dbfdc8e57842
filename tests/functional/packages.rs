//! The crates as they are published: their front pages, their requirements of one another, and their
//! archives, which a package outside of this workspace uses.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::read::GzDecoder;
use memcheck_core::judgement::baseline;
use memcheck_core::wire::protocol;
use serde_json::Value;

use crate::fixture::{
    CLEAN_AND_LEAKY, Project, Run, cargo, command_at, profile, share_build, target, workspace,
};

fn text(name: &str) -> String {
    fs::read_to_string(workspace().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The packages of this workspace.
fn packages() -> Vec<Value> {
    let output = cargo()
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(workspace())
        .output()
        .expect("cargo runs");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("metadata");
    metadata["packages"].as_array().expect("packages").clone()
}

/// The names of those that are published.
fn published() -> BTreeSet<String> {
    let is_published = |package: &&Value| package["publish"].is_null();
    let name = |package: &Value| package["name"].as_str().expect("a name").to_owned();
    packages().iter().filter(is_published).map(name).collect()
}

/// The requirements of our crates of one another that accept another version than this one.
fn inexact(manifest: &str) -> Vec<String> {
    let manifest: toml::Table = manifest.parse().expect("TOML");
    let workspace = &manifest["workspace"];
    let exact = format!("={}", workspace["package"]["version"].as_str().expect("a version"));
    let dependencies = workspace["dependencies"].as_table().expect("dependencies");
    let ours = dependencies.iter().filter_map(|(name, it)| Some((name, it.get("path")?, it)));
    let required = ours.filter_map(|(name, _, it)| Some((name, it.get("version")?.as_str()?)));
    required.filter(|(_, version)| *version != exact).map(|(name, _)| name.clone()).collect()
}

#[test]
fn our_crates_require_exactly_the_same_version_of_one_another() {
    let manifest = text("Cargo.toml");
    assert_eq!(inexact(&manifest), [""; 0]);
    let core = "path = \"memcheck-core\", version = \"=";
    assert!(manifest.contains(core), "{manifest}");
    let other = manifest.replace(core, "path = \"memcheck-core\", version = \"");
    assert_eq!(inexact(&other), ["memcheck-core"]);
    for name in published() {
        let own: toml::Table = text(&format!("{name}/Cargo.toml")).parse().expect("TOML");
        for table in ["dependencies", "dev-dependencies"] {
            for (dependency, it) in
                own.get(table).and_then(|it| it.as_table()).into_iter().flatten()
            {
                let is_inherited = it.get("workspace").is_some();
                assert!(
                    is_inherited || !dependency.starts_with("memcheck-"),
                    "{name}: {dependency}"
                );
            }
        }
    }
}

/// The defects of the pages that docs.rs and the registry show first.
fn front_page_defects(name: &str, readme: &str, library: &str) -> Vec<&'static str> {
    let is_for_users = ["memcheck-runtime", "cargo-memcheck"].contains(&name);
    let front: String = library.lines().take_while(|line| line.starts_with("//!")).collect();
    let both = ["memcheck-runtime", "cargo-memcheck"].iter().all(|it| readme.contains(it));
    let refers = front.contains("Depend on `memcheck-runtime` instead.");
    let defects = [
        (!readme.starts_with(&format!("# {name}\n")), "the title of the README"),
        (!both, "the crate to depend on, or the command, in the README"),
        (!readme.contains("(../docs/stability.md)"), "the promise of stability in the README"),
        (!is_for_users && !refers, "the crate to depend on, in the documentation"),
    ];
    defects.iter().filter(|(is_missing, _)| *is_missing).map(|(_, what)| *what).collect()
}

#[test]
fn every_front_page_names_the_crate_to_depend_on() {
    for name in published() {
        let [readme, library] =
            ["README.md", "src/lib.rs"].map(|file| text(&format!("{name}/{file}")));
        assert_eq!(front_page_defects(&name, &readme, &library), [""; 0], "{name}");
    }
    let defects =
        front_page_defects("memcheck-core", "# memcheck-core\n\nThe core.\n", "//! A core.\n");
    assert_eq!(defects.len(), 3, "{defects:?}");
}

#[test]
fn every_published_manifest_is_complete() {
    let packages = packages();
    assert_eq!(published().len(), 10);
    for package in packages.iter().filter(|package| package["publish"].is_null()) {
        let name = package["name"].as_str().expect("a name");
        for field in ["description", "repository", "documentation", "rust_version"] {
            assert!(package[field].is_string(), "{name}: {field}");
        }
        assert_eq!(package["readme"], "README.md", "{name}");
        let count = |field: &str| package[field].as_array().map_or(0, Vec::len);
        // The registry accepts five of each.
        let counts = [count("keywords"), count("categories")];
        assert!(counts.iter().all(|count| (1..=5).contains(count)), "{name}: {counts:?}");
        let docs = &package["metadata"]["docs"]["rs"];
        assert_eq!(docs["targets"][0], "x86_64-unknown-linux-gnu", "{name}");
        // docs.rs has neither `nvcc` nor the simulated toolkit.
        let features = docs["features"].as_array().into_iter().flatten();
        let for_gpu =
            |feature: &&Value| feature.as_str().is_none_or(|it| it == "sim" || it.contains("cuda"));
        assert_eq!(features.filter(for_gpu).count(), 0, "{name}: {docs}");
    }
}

/// The packages that a script, a recipe or a workflow names are those of this workspace.
#[test]
fn scripts_name_packages_that_exist() {
    let names: BTreeSet<String> = packages()
        .iter()
        .filter_map(|package| package["name"].as_str().map(str::to_owned))
        .collect();
    let unknown = |script: &str| -> Vec<String> {
        let words: Vec<&str> = script.split_whitespace().collect();
        let named = words.windows(2).filter(|pair| ["-p", "--package"].contains(&pair[0]));
        let ours = named
            .map(|pair| pair[1].trim_end_matches(')'))
            .filter(|it| it.starts_with("memcheck-"));
        ours.filter(|name| !names.contains(*name)).map(str::to_owned).collect()
    };
    let mut files = vec!["justfile".into(), ".ci/run".into(), ".ci/lint".into()];
    for folder in ["scripts", ".github/workflows"] {
        let entries = fs::read_dir(workspace().join(folder)).expect("a folder").flatten();
        files.extend(entries.map(|entry| Path::new(folder).join(entry.file_name())));
    }
    for file in &files {
        let script = text(file.to_str().expect("a name"));
        assert_eq!(unknown(&script), [""; 0], "{}", file.display());
    }
    assert_eq!(unknown("cargo check -p memcheck-core -p memcheck-gone"), ["memcheck-gone"]);
}

/// The archives of all published crates, packed by the script of the release, by name.
fn archives() -> BTreeMap<String, PathBuf> {
    let folder = target().join("functional/packed");
    let packed = Command::new(workspace().join("scripts/pack-crates"))
        .args(["--quiet", "--offline", "--allow-dirty", "--target-dir"])
        .arg(&folder)
        .env("CARGO", env!("CARGO"))
        .status();
    assert!(packed.is_ok_and(|status| status.success()), "the crates are not packed");
    let version = env!("CARGO_PKG_VERSION");
    let path = |name: &String| folder.join(format!("package/{name}-{version}.crate"));
    published().into_iter().map(|name| (name.clone(), path(&name))).collect()
}

/// The files of an archive, by their path below its folder.
fn contents(archive: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let file =
        fs::File::open(archive).unwrap_or_else(|error| panic!("{}: {error}", archive.display()));
    let mut archive = tar::Archive::new(GzDecoder::new(file));
    let mut files = BTreeMap::new();
    for entry in archive.entries().expect("an archive") {
        let mut entry = entry.expect("an entry");
        let path: PathBuf = entry.path().expect("a path").components().skip(1).collect();
        let mut content = Vec::new();
        std::io::copy(&mut entry, &mut content).expect("it is read");
        files.insert(path, content);
    }
    files
}

/// Writes the files that differ, so that cargo compiles only these again.
fn unpack(archive: &Path, folder: &Path) {
    for (path, content) in contents(archive) {
        let path = folder.join(path);
        if fs::read(&path).ok().as_ref() != Some(&content) {
            fs::create_dir_all(path.parent().expect("a folder")).expect("the folder is made");
            fs::write(&path, content).expect("the file is written");
        }
    }
}

/// The command and the runtime of the archives, in a package that has their versions only. The paths
/// are those of a registry: `[patch]` leads each name to the unpacked archive.
#[test]
#[ignore = "slow: just all"]
fn a_package_outside_uses_the_packed_crates() {
    let root = target().join("functional/packed");
    let mut patch = String::from("[patch.crates-io]\n");
    for (name, archive) in archives() {
        let files = contents(&archive);
        let has = |file: &str| files.get(Path::new(file)).is_some_and(|text| !text.is_empty());
        for file in ["README.md", "LICENSE-MIT", "LICENSE-APACHE", "Cargo.lock"] {
            assert!(has(file), "{name}: {file}");
        }
        assert_eq!(files[Path::new("LICENSE-MIT")], text("LICENSE-MIT").into_bytes(), "{name}");
        let folder = root.join("crates").join(&name);
        unpack(&archive, &folder);
        patch += &format!("{name} = {{ path = \"{}\" }}\n", folder.display());
    }

    let command = build_command(&root, &patch);
    let version = env!("CARGO_PKG_VERSION");
    let runtime = format!("[dev-dependencies]\nmemcheck-runtime = \"{version}\"\n\n{patch}");
    let project = Project::package("packed", &runtime);
    let imports =
        "use candle_core::{DType, Device, Tensor};\nuse memcheck_runtime::{Trial, mem_test};\n";
    project.write("tests/mem.rs", &format!("{imports}{CLEAN_AND_LEAKY}"));
    let arguments = ["run", "--device", "cpu", "--message-format", "json", "--no-ci"];
    let mut command = command_at(&command, project.path(), &arguments);
    let run = Run::from_output(&command.output().expect("the packed command runs")).exits(100);
    assert_eq!(run.test("clean")["status"], "passed");
    let finding = run.test("leaky")["findings"][0].clone();
    assert_eq!((&finding["code"], &finding["bytes_per_iteration"]), (&"leak".into(), &4096.into()));

    // No crate of memcheck comes from this workspace.
    let mut metadata = cargo();
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    metadata.args(["metadata", "--format-version", "1", "--offline"]);
    metadata.args(["--filter-platform", &platform]).current_dir(project.path());
    let output = metadata.output().expect("cargo runs");
    let graph: Value = serde_json::from_slice(&output.stdout).expect("metadata");
    let packages = graph["packages"].as_array().expect("packages").iter();
    let ours =
        packages.filter(|it| it["name"].as_str().is_some_and(|it| it.starts_with("memcheck-")));
    let manifests: Vec<&str> = ours.filter_map(|it| it["manifest_path"].as_str()).collect();
    assert!(manifests.len() >= 8, "{manifests:?}");
    assert!(
        manifests.iter().all(|path| Path::new(path).starts_with(root.join("crates"))),
        "{manifests:?}"
    );
}

/// Builds the command of the archives, in a workspace of that package alone.
fn build_command(root: &Path, patch: &str) -> PathBuf {
    let manifest = format!(
        "[workspace]\nresolver = \"3\"\nmembers = [\"crates/cargo-memcheck\"]\n\n{patch}\n{}",
        profile(patch)
    );
    fs::write(root.join("Cargo.toml"), manifest).expect("the manifest is written");
    fs::copy(workspace().join("Cargo.lock"), root.join("Cargo.lock")).expect("a lock file");
    let mut build = cargo();
    build.current_dir(root);
    share_build(&mut build);
    let built = build.args(["build", "--offline", "--target-dir", "built"]).output();
    let built = built.expect("cargo runs");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    root.join("built/debug/cargo-memcheck")
}

/// The promises of a page that differ from the program.
fn broken_promises(page: &str) -> Vec<String> {
    let manifest: toml::Table = text("Cargo.toml").parse().expect("TOML");
    let workspace = &manifest["workspace"];
    let rust = workspace["package"]["rust-version"].as_str().expect("a version").to_owned();
    let of_command: toml::Table = text("cargo-memcheck/Cargo.toml").parse().expect("TOML");
    let command = of_command["package"]["rust-version"].as_str().expect("a version").to_owned();
    assert_eq!(workspace["dependencies"]["candle-core"].as_str(), Some(">=0.9.2, <0.12"));
    let stream: Value =
        serde_json::from_str(&text("cargo-memcheck/src/presentation/schema/stream.json"))
            .expect("the schema");
    let stream = stream["$id"].as_str().and_then(|id| id.rsplit(':').next()).expect("a version");
    let lines = [
        format!("[JSON](reference/reports.md#json), version {stream} |"),
        format!("[snapshots](reference/baselines.md#files), format {} |", baseline::VERSION),
        format!("protocol of the command and a test executable, version {} |", protocol::VERSION),
        format!("(`={}`)", env!("CARGO_PKG_VERSION")),
        format!("the crates below it | {rust} |"),
        format!("to compile `cargo-memcheck` | {command} |"),
        "| candle | 0.9.2 to 0.11 |".to_owned(),
    ];
    lines.into_iter().filter(|line| !page.contains(line)).collect()
}

#[test]
fn the_page_about_stability_has_the_versions_of_the_program() {
    let page = text("docs/stability.md");
    assert_eq!(broken_promises(&page), [""; 0]);
    let other = page.replace("executable, version ", "executable, version 1");
    assert_eq!(broken_promises(&other).len(), 1);
    // The same on the front pages.
    assert!(text("memcheck-runtime/README.md").contains("Rust 1.88, and candle 0.9.2 to 0.11."));
    assert!(text("cargo-memcheck/README.md").contains("It needs Rust 1.91,"));
}
