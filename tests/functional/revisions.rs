//! Revisions of a workspace that contains packages that are not members, such as a patched copy of a
//! dependency: cargo gives the artifacts of both revisions the same names.

use std::collections::BTreeSet;
use std::process::Command;

use crate::fixture::{Project, cargo, own_directory, share_build};
use crate::lock_files;

fn git(project: &Project, arguments: &[&str]) {
    let identity = ["-c", "user.name=test", "-c", "user.email=test@example.com"];
    let mut command = Command::new("git");
    command.args(identity).args(arguments).current_dir(project.path());
    assert!(command.status().is_ok_and(|status| status.success()), "git {arguments:?}");
}

fn commit(project: &Project, message: &str) {
    git(project, &["add", "--all", "."]);
    git(project, &["commit", "--quiet", "--message", message]);
    git(project, &["tag", message]);
}

const TEST: &str = "
#[mem_test(max_growth = \"0 B\", baseline = false)]
fn uses(device: &Device) -> candle_core::Result<()> {
    vendored::run(device, updated::KEPT)
}
";

/// A function that keeps `kept` tensors more than it is asked for.
fn library(kept: usize) -> String {
    format!(
        "use candle_core::{{DType, Device, Result, Tensor}};\n\npub fn run(device: &Device, \
         more: usize) -> Result<()> {{\n    for _ in 0..{kept} + more {{\n        \
         std::mem::forget(Tensor::zeros(1024, DType::F32, device)?);\n    }}\n    Ok(())\n}}\n"
    )
}

/// A version of a dependency in a directory instead of a registry.
fn publish(project: &Project, version: &str, kept: usize) {
    let folder = format!("registry/updated-{version}");
    let manifest =
        format!("[package]\nname = \"updated\"\nversion = \"{version}\"\nedition = \"2024\"\n");
    project.write(&format!("{folder}/Cargo.toml"), &manifest);
    project.write(&format!("{folder}/src/lib.rs"), &format!("pub const KEPT: usize = {kept};\n"));
    project.write(&format!("{folder}/.cargo-checksum.json"), "{\"files\":{}}");
}

/// Changes the lock file, which then has this version of the dependency. Cargo takes the newest
/// version that the directory has.
fn lock(project: &Project, arguments: &[&str], version: &str) {
    let mut command = cargo();
    command.args(arguments).arg("--offline").current_dir(project.path());
    share_build(&mut command);
    let output = command.output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let locked = lock_files::versions(&project.read("Cargo.lock"), "updated");
    assert_eq!(locked, BTreeSet::from([version.to_owned()]), "cargo {arguments:?}");
}

/// The layout of a vendored crate.
fn project() -> Project {
    let project = Project::new(TEST);
    let manifest = project.read("Cargo.toml");
    let manifest =
        manifest.replacen("[workspace]\n", "[workspace]\nexclude = [\"vendor\"]\n", 1).replacen(
            "[dependencies]\nc",
            "[dependencies]\nvendored = { path = \"vendor/vendored\" }\n\
             updated = { version = \"1\", registry = \"local\" }\nc",
            1,
        );
    project.write("Cargo.toml", &manifest);
    project.write(
        ".cargo/config.toml",
        "[registries.local]\nindex = \"file:///registry-of-this-test\"\n\
         [source.local]\nregistry = \"file:///registry-of-this-test\"\nreplace-with = \"directory\"\n\
         [source.directory]\ndirectory = \"registry\"\n",
    );
    publish(&project, "1.0.0", 0);
    project.write(".gitignore", "/tests/snapshots\n");
    project.write(
        "vendor/vendored/Cargo.toml",
        "[package]\nname = \"vendored\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n\
         [dependencies]\ncandle-core = \"0.11.1\"\n",
    );
    project
}

/// The next runs measure the working tree, also if its sources are older than the artifacts of the
/// other revisions.
#[track_caller]
fn assert_leaks(project: &Project) {
    for mode in ["--no-ci", "--ci"] {
        let run = project.memcheck(&[
            "run",
            "--device",
            "cpu",
            "--device",
            "sim",
            "--message-format",
            "json",
            mode,
            "--max-iterations",
            "10",
        ]);
        let run = run.exits(100);
        assert!(run.codes("uses").contains(&"leak".to_owned()), "{}", run.stderr);
        assert_eq!(run.summary()["failed"], 2, "on both devices: {}", run.stderr);
    }
    let mut plain = project.cargo_test();
    let output = plain.output().expect("cargo runs");
    assert!(!output.status.success(), "cargo test uses the artifacts of another revision");
}

#[test]
#[ignore = "slow: just all"]
fn the_working_tree_is_measured_after_other_revisions_of_a_vendored_dependency() {
    let project = project();
    git(&project, &["init", "--quiet", "--initial-branch", "main"]);
    project.write("vendor/vendored/src/lib.rs", &library(0));
    // Completes the lock file.
    lock(&project, &["generate-lockfile"], "1.0.0");
    commit(&project, "clean");
    project.write("notes.txt", "");
    commit(&project, "notes");
    project.write("vendor/vendored/src/lib.rs", &library(1));
    commit(&project, "leaky");
    assert_leaks(&project);

    let own = ["--", "--device", "cpu", "--max-iterations", "10"];
    let compared = project.memcheck(&[&["compare", "clean"][..], &own].concat()).exits(0);
    assert!(compared.stdout.contains("1 test changed (1 worse)"), "{}", compared.stdout);
    assert!(own_directory(&project).join("revision").is_dir());
    assert_leaks(&project);

    let bisect = ["bisect", "uses", "--good", "clean"];
    let found = project.memcheck(&[&bisect[..], &own].concat()).exits(0);
    assert!(found.stdout.contains("leaky"), "{}", found.stdout);
    assert_leaks(&project);

    // The sources of this commit, with the dependencies of the first one.
    publish(&project, "1.1.0", 1);
    lock(&project, &["update", "updated"], "1.1.0");
    commit(&project, "updated");
    let lock = [&bisect[..], &["--lock"], &own, &["--offline"]].concat();
    let found = project.memcheck(&lock).exits(0);
    let first = found.stdout.lines().next().unwrap_or_default();
    assert_eq!(first, "first bad update: updated 1.0.0 -> 1.1.0");
    assert_leaks(&project);
}
