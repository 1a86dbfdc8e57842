//! Packages whose candle is not that of the registry. memcheck-runtime must have the same one, and
//! the command finds another one before it compiles.

use std::path::Path;
use std::process::Command;

use crate::fixture::{Project, Run, cargo, share_build, workspace};

/// The path of a package among the dependencies of this workspace.
fn source(name: &str) -> std::path::PathBuf {
    let output = cargo()
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(workspace())
        .output()
        .expect("cargo runs");
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    let packages = metadata["packages"].as_array().expect("a list of packages");
    let package = packages.iter().find(|package| package["name"] == name);
    let manifest = package.and_then(|package| package["manifest_path"].as_str());
    Path::new(manifest.expect("a path")).parent().expect("a folder").to_owned()
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    // The same commit in each run, so that cargo keeps one copy.
    let date = "2026-01-01T00:00:00Z";
    command.args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]);
    command.env("GIT_AUTHOR_DATE", date).env("GIT_COMMITTER_DATE", date);
    let output = command.args(arguments).current_dir(folder).output().expect("git runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// The sources of candle-core and of its kernels in `candle` of the project, with a later version
/// number than that of the registry.
fn copy_candle(project: &Project) {
    let candle = project.path().join("candle");
    let _ = std::fs::remove_dir_all(&candle);
    std::fs::create_dir_all(&candle).expect("a folder");
    for name in ["candle-core", "candle-kernels"] {
        let copied = Command::new("cp").arg("-r").arg(source(name)).arg(candle.join(name)).status();
        assert!(copied.is_ok_and(|status| status.success()), "{name} is not copied");
        let manifest = candle.join(name).join("Cargo.toml");
        let text = std::fs::read_to_string(&manifest).expect("a manifest");
        let text = text.replacen("\nversion = \"0.11.1\"", "\nversion = \"0.11.7\"", 1);
        let kernels = "[dependencies.candle-kernels]\nversion = \"0.11.1\"\n";
        let beside = "[dependencies.candle-kernels]\npath = \"../candle-kernels\"\n";
        std::fs::write(&manifest, text.replace(kernels, beside)).expect("a manifest");
    }
}

/// A package with memory tests whose candle-core has this source.
fn package(candle: &str) -> Project {
    let project = Project::new("#[mem_test(baseline = false)]\nfn a() {}\n");
    let manifest = project.read("Cargo.toml");
    let changed = manifest.replace("candle-core = \"0.11.1\"", &format!("candle-core = {candle}"));
    assert_ne!(manifest, changed);
    project.write("Cargo.toml", &changed);
    copy_candle(&project);
    project
}

fn doctor(project: &Project) -> Run {
    project.memcheck(&["doctor", "--no-run"])
}

/// The lines that a message tells to add to the manifest.
fn patch(stderr: &str) -> String {
    let lines = stderr.lines().skip_while(|line| !line.contains("[patch.crates-io]"));
    let lines = lines.take_while(|line| !line.contains("Cargo.lock"));
    lines.map(|line| format!("{}\n", line.trim())).collect()
}

fn follow(project: &Project, stderr: &str) {
    let command = stderr.lines().map(str::trim).find(|line| line.starts_with("cargo update"));
    let command = command.expect("a command").replace('\'', "");
    let mut update = cargo();
    update.args(command.split(' ').skip(1)).current_dir(project.path());
    share_build(&mut update);
    let updated = update.output().expect("cargo runs");
    assert!(updated.status.success(), "{}", String::from_utf8_lossy(&updated.stderr));
}

/// The steps that the message names lead to one candle.
#[track_caller]
fn assert_steps_unify(project: &Project) {
    let refused = project.run(&[]).exits(101).prints("use different copies of candle-core");
    let text = refused.stderr;
    assert!(!text.contains("Compiling"), "{text}");
    let looked = doctor(project).exits(101);
    assert!(looked.stdout.contains("FAILED  one candle: "), "{}", looked.stdout);
    let manifest = project.read("Cargo.toml");
    project.write("Cargo.toml", &format!("{manifest}\n{}", patch(&text)));
    // Cargo keeps the registry's version, and is silent.
    let kept = project.run(&[]).exits(101).prints("has a patch, but Cargo.lock keeps the version");
    follow(project, &kept.stderr);
    let unified = doctor(project).exits(0);
    assert!(!unified.stdout.contains("one candle"), "{}", unified.stdout);
    assert!(unified.stdout.contains("candle-core: 0.11.7"), "{}", unified.stdout);
}

#[test]
fn a_candle_in_a_folder_is_unified_by_a_patch() {
    assert_steps_unify(&package("{ path = \"candle/candle-core\" }"));
}

#[test]
fn a_candle_of_a_repository_is_unified_by_a_patch_with_the_same_revision() {
    let project = package("{ git = \"URL\", rev = \"REVISION\" }");
    let candle = project.path().join("candle");
    git(&candle, &["init", "--quiet"]);
    git(&candle, &["add", "--all", "--force"]);
    git(&candle, &["commit", "--quiet", "--message", "candle"]);
    let revision = git(&candle, &["rev-parse", "HEAD"]);
    let manifest = project.read("Cargo.toml");
    let url = format!("file://{}", candle.display());
    project.write("Cargo.toml", &manifest.replace("URL", &url).replace("REVISION", &revision));
    assert_steps_unify(&project);
    assert!(project.read("Cargo.toml").contains(&format!("rev = \"{revision}\"")));
}

#[test]
fn init_writes_the_patch_of_a_candle_in_a_folder() {
    let project = Project::bare("");
    let manifest = project.read("Cargo.toml");
    let changed = manifest
        .replace("candle-core = \"0.11.1\"", "candle-core = { path = \"candle/candle-core\" }");
    project.write("Cargo.toml", &changed);
    copy_candle(&project);
    let root = workspace().display().to_string();
    let init = ["init", "--path", &root, "--yes", "--no-workflow", "--name", "first"];
    let _ = std::fs::remove_file(project.path().join("tests/first.rs"));
    project.memcheck(&init).exits(0);
    let written = project.read("Cargo.toml");
    let patch = "[patch.crates-io]\n\
                 candle-core = { path = \"candle/candle-core\" }\n\
                 candle-kernels = { path = \"candle/candle-kernels\" }\n";
    assert!(written.ends_with(patch), "{written}");
    assert!(doctor(&project).exits(0).stdout.contains("candle-core: 0.11.7"));
}
