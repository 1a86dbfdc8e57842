//! Packages whose candle is not that of the registry. memcheck-runtime must have the same one, and
//! the command finds another one before it compiles. Nothing is compiled or downloaded here: cargo
//! resolves copies of candle's sources.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fixture::{Project, Run, cargo, copy_crate, memcheck_with, share_build, workspace};

const OFFLINE: [(&str, &str); 1] = [("CARGO_NET_OFFLINE", "true")];

pub(crate) fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    // The same commit in each run, so that cargo keeps one copy.
    let date = "2026-01-01T00:00:00Z";
    command.env("GIT_AUTHOR_DATE", date).env("GIT_COMMITTER_DATE", date);
    command.args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]);
    let output = command.args(arguments).current_dir(folder).output().expect("git runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Copies candle-core and its kernels, with a later version than that of the registry, into a folder
/// outside of the project, because cargo takes packages inside for members of its workspace.
fn copy_candle(project: &Project) -> PathBuf {
    let above = project.path().ancestors().nth(2).expect("the folder of all projects");
    let candle = above.join("candles").join(project.name());
    let _ = std::fs::remove_dir_all(&candle);
    std::fs::create_dir_all(&candle).expect("a folder");
    for name in ["candle-core", "candle-kernels"] {
        let copy = candle.join(name);
        copy_crate(&memcheck_sources::folder(name), &copy);
        let manifest = copy.join("Cargo.toml");
        let text = std::fs::read_to_string(&manifest).expect("a manifest");
        let text = text.replacen("\nversion = \"0.11.1\"", "\nversion = \"0.11.7\"", 1);
        let kernels = "[dependencies.candle-kernels]\nversion = \"0.11.1\"\n";
        let beside = "[dependencies.candle-kernels]\npath = \"../candle-kernels\"\n";
        std::fs::write(&manifest, text.replace(kernels, beside)).expect("a manifest");
    }
    candle
}

/// Replaces the candle of the project.
fn use_candle(project: &Project, candle: &str) {
    let manifest = project.read("Cargo.toml");
    let changed = manifest.replace("candle-core = \"0.11.1\"", &format!("candle-core = {candle}"));
    assert_ne!(manifest, changed);
    project.write("Cargo.toml", &changed);
}

fn run(project: &Project) -> Run {
    memcheck_with(project.path(), &["run", "--device", "cpu", "--no-ci"], &OFFLINE)
}

fn doctor(project: &Project) -> Run {
    memcheck_with(project.path(), &["doctor", "--no-run"], &OFFLINE)
}

/// The lines that a message has for the manifest.
pub(crate) fn patch(stderr: &str) -> String {
    let lines = stderr.lines().skip_while(|line| !line.contains("[patch.crates-io]"));
    let lines = lines.take_while(|line| !line.contains("Cargo.lock"));
    lines.map(|line| format!("{}\n", line.trim())).collect()
}

/// The arguments of the first `cargo update` of a message.
pub(crate) fn update(stderr: &str) -> String {
    let mut lines = stderr.lines().map(str::trim);
    let arguments = lines.find_map(|line| line.strip_prefix("cargo update "));
    arguments.unwrap_or_else(|| panic!("no command in {stderr}")).replace('\'', "")
}

/// Runs the command of a message.
fn follow(project: &Project, stderr: &str) {
    let mut command = cargo();
    command.arg("update").args(update(stderr).split(' ')).envs(OFFLINE);
    command.current_dir(project.path());
    share_build(&mut command);
    let updated = command.output().expect("cargo runs");
    assert!(updated.status.success(), "{}", String::from_utf8_lossy(&updated.stderr));
}

#[track_caller]
fn assert_is_one(project: &Project) {
    let unified = doctor(project).exits(0);
    assert!(!unified.stdout.contains("one candle"), "{}", unified.stdout);
    assert!(unified.stdout.contains("candle-core: 0.11.7"), "{}", unified.stdout);
}

/// The steps that the message names lead to one candle.
#[track_caller]
fn assert_steps_unify(project: &Project) {
    let refused = run(project).exits(101).prints("use different copies of candle-core");
    let text = refused.stderr;
    assert!(!text.contains("Compiling"), "{text}");
    let looked = doctor(project).exits(101);
    assert!(looked.stdout.contains("FAILED  one candle: "), "{}", looked.stdout);
    let manifest = project.read("Cargo.toml");
    project.write("Cargo.toml", &format!("{manifest}\n{}", patch(&text)));
    // Cargo keeps the version of the registry.
    let kept = run(project).exits(101).prints("has a patch, but Cargo.lock keeps the version");
    follow(project, &kept.stderr);
    assert_is_one(project);
}

#[test]
fn a_candle_in_a_folder_is_unified_by_a_patch() {
    let project = Project::new("");
    let candle = copy_candle(&project).join("candle-core");
    use_candle(&project, &format!("{{ path = \"{}\" }}", candle.display()));
    assert_steps_unify(&project);
}

#[test]
fn a_candle_of_a_repository_is_unified_by_a_patch_with_the_same_revision() {
    let project = Project::new("");
    let candle = copy_candle(&project);
    // A package without dependencies, with which cargo fetches the repository and nothing else.
    for (file, text) in [
        ("empty/Cargo.toml", "[package]\nname = \"empty\"\nversion = \"0.1.0\"\n"),
        ("empty/src/lib.rs", ""),
    ] {
        std::fs::create_dir_all(candle.join("empty/src")).expect("a folder");
        std::fs::write(candle.join(file), text).expect("a file");
    }
    git(&candle, &["init", "--quiet"]);
    git(&candle, &["add", "--all", "--force"]);
    git(&candle, &["commit", "--quiet", "--message", "candle"]);
    let revision = git(&candle, &["rev-parse", "HEAD"]);
    let source = format!("{{ git = \"file://{}\", rev = \"{revision}\" }}", candle.display());

    let fetching = tempfile::tempdir().expect("a folder");
    let manifest = format!(
        "[package]\nname = \"fetching\"\nversion = \"0.1.0\"\n[workspace]\n\
         [dependencies]\nempty = {source}\n"
    );
    std::fs::create_dir(fetching.path().join("src")).expect("a folder");
    std::fs::write(fetching.path().join("src/lib.rs"), "").expect("a file");
    std::fs::write(fetching.path().join("Cargo.toml"), manifest).expect("a manifest");
    let fetched = cargo().arg("fetch").current_dir(fetching.path()).output().expect("cargo runs");
    assert!(fetched.status.success(), "{}", String::from_utf8_lossy(&fetched.stderr));

    use_candle(&project, &source);
    assert_steps_unify(&project);
    let entry = format!("candle-kernels = {source}\n");
    assert!(project.read("Cargo.toml").contains(&entry), "{}", project.read("Cargo.toml"));
}

#[test]
fn init_writes_the_patch_of_a_candle_in_a_folder() {
    let project = Project::bare("");
    let candle = copy_candle(&project);
    use_candle(&project, &format!("{{ path = \"{}/candle-core\" }}", candle.display()));
    let root = workspace().display().to_string();
    let _ = std::fs::remove_file(project.path().join("tests/first.rs"));
    let init = ["init", "--path", &root, "--yes", "--no-workflow", "--name", "first"];
    let written = memcheck_with(project.path(), &init, &OFFLINE).exits(0);
    let path = |name: &str| format!("{name} = {{ path = \"{}/{name}\" }}\n", candle.display());
    let patch = format!("[patch.crates-io]\n{}{}", path("candle-core"), path("candle-kernels"));
    let manifest = project.read("Cargo.toml");
    assert!(manifest.contains(&patch), "{manifest}");
    follow(&project, &written.stderr);
    assert_is_one(&project);
}
