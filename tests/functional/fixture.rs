//! Creates cargo projects outside the workspace and runs the command in them.

mod folder;
mod programs;
mod run;

use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) use programs::{FOLDER, Programs};
pub(crate) use run::{Run, remove_process};

pub(crate) fn workspace() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).expect("the workspace above the package").to_owned()
}

/// The target directory of this test executable.
pub(crate) fn target() -> PathBuf {
    // target/debug/deps/functional-HASH
    let own = std::env::current_exe().expect("the path of this test");
    own.ancestors().nth(3).expect("a target directory").to_owned()
}

/// Prints why a test, or a part of it, is skipped on this machine. With `READERS=all` this is an
/// error, so that a reader that could not be installed is not taken for one that has no complaint.
pub(crate) fn skip_reader(reason: &str) {
    let required = std::env::var("READERS").is_ok_and(|value| value == "all");
    assert!(!required, "{reason}, and READERS=all requires it");
    eprintln!("skipped: {reason}");
}

/// The cargo that runs this test, without the variable that `just times` sets. Build scripts would
/// read it, and candle would be compiled again.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.env_remove("RUSTC_BOOTSTRAP");
    command
}

/// The command under test. Without `--package` its dependencies have the features that the
/// workspace's tests give them, so that cargo compiles only the executable.
fn command_path() -> PathBuf {
    static BUILT: std::sync::Once = std::sync::Once::new();
    BUILT.call_once(|| {
        let built = cargo()
            .args(["build", "--quiet", "--bin", "cargo-memcheck", "--target-dir"])
            .arg(target())
            .current_dir(workspace())
            .status();
        assert!(built.is_ok_and(|status| status.success()), "cargo-memcheck does not build");
    });
    target().join("debug/cargo-memcheck")
}

pub(crate) fn build_example(name: &str) -> PathBuf {
    let built = cargo()
        .args(["build", "--quiet", "--package", "memcheck-tests", "--example", name])
        .arg("--target-dir")
        .arg(target())
        .current_dir(workspace())
        .status();
    assert!(built.is_ok_and(|status| status.success()), "{name} does not build");
    target().join("debug/examples").join(name)
}

/// Runs `cargo memcheck` with `arguments` in `folder`, in an environment without variables about
/// CI, devices or limits.
pub(crate) fn memcheck(folder: &Path, arguments: &[&str]) -> Run {
    memcheck_with(folder, arguments, &[])
}

/// The same with additional variables.
pub(crate) fn memcheck_with(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Run {
    let mut command = command(folder, arguments);
    command.envs(variables.iter().copied());
    Run::from_output(&command.output().expect("cargo-memcheck runs"))
}

/// The signal of Ctrl-C. A shell without job control makes its background processes ignore that
/// signal, and all processes that are started here would inherit this. In that case the tests use
/// SIGTERM.
pub(crate) fn interrupt() -> &'static str {
    const SIGINT: u32 = 2;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    if ignored.is_some_and(|mask| mask >> (SIGINT - 1) & 1 == 1) { "-TERM" } else { "-INT" }
}

/// Starts the command and sends a signal to this one process as soon as `file` exists in `folder`.
pub(crate) fn memcheck_signaled(
    folder: &Path,
    arguments: &[&str],
    file: &str,
    signal: &str,
) -> Run {
    signaled(command(folder, arguments), &folder.join(file), signal)
}

/// `own`, started by `program`. `before` are the first arguments of `program`.
pub(crate) fn started_by((program, before): (&str, &[&str]), own: &Command) -> Command {
    let mut command = Command::new(program);
    command.args(before).arg(own.get_program()).args(own.get_args());
    if let Some(folder) = own.get_current_dir() {
        command.current_dir(folder);
    }
    for (name, value) in own.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

/// Starts a command, and sends it a signal as soon as a file exists.
pub(crate) fn signaled(mut command: Command, file: &Path, signal: &str) -> Run {
    let child = command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("cargo-memcheck starts");
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(300);
    while !file.exists() && std::time::Instant::now() < deadline {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let id = child.id().to_string();
    let sent = Command::new("kill").args([signal, &id]).status();
    assert!(sent.is_ok_and(|status| status.success()), "the signal could not be sent");
    Run::from_output(&child.wait_with_output().expect("cargo-memcheck ends"))
}

/// The command, in an environment without variables about CI, devices or limits.
pub(crate) fn command(folder: &Path, arguments: &[&str]) -> Command {
    command_at(&command_path(), folder, arguments)
}

/// The same with another executable of the command.
pub(crate) fn command_at(path: &Path, folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(path);
    command.arg("memcheck").args(arguments).current_dir(folder);
    for name in std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()) {
        let prefixes = ["MEMCHECK_", "INSTA_", "CARGO_", "GITHUB_"];
        let names = [
            "CI",
            "RAYON_NUM_THREADS",
            "RUST_BACKTRACE",
            "RUSTC_BOOTSTRAP",
            "NEXTEST",
            "CUDA_VISIBLE_DEVICES",
        ];
        // Crates that are compiled incrementally and crates that are not are different builds.
        let kept = ["CARGO_HOME", "CARGO_INCREMENTAL"].contains(&name.as_str());
        if (prefixes.iter().any(|prefix| name.starts_with(prefix)) && !kept)
            || names.contains(&name.as_str())
        {
            command.env_remove(name);
        }
    }
    let is_of_workspace = folder.starts_with(workspace()) && !folder.starts_with(target());
    if is_of_workspace {
        ask_cargo_once(&mut command);
    } else {
        share_build(&mut command);
    }
    command
}

/// Makes the command ask the cargo of `fixture/cargo`, for packages that no test changes.
fn ask_cargo_once(command: &mut Command) {
    static ANSWERS: std::sync::LazyLock<PathBuf> = std::sync::LazyLock::new(|| {
        let all = projects().join("answers");
        for of_process in std::fs::read_dir(&all).into_iter().flatten().flatten() {
            if !Path::new("/proc").join(of_process.file_name()).exists() {
                let _ = std::fs::remove_dir_all(of_process.path());
            }
        }
        let own = all.join(std::process::id().to_string());
        std::fs::create_dir_all(&own).expect("the folder is made");
        own
    });
    command
        .env("CARGO", workspace().join("tests/functional/fixture/cargo"))
        .env("REAL_CARGO", env!("CARGO"))
        .env("CARGO_ANSWERS", &*ANSWERS);
}

/// The folder of the projects and of their final artifacts.
fn projects() -> PathBuf {
    target().join("functional")
}

/// Makes a build of a project reuse candle from the build of this workspace. The same build
/// directory, the same profile ([`Project::bare`]) and the same features give the same compiled
/// crates. Final artifacts, results and pending snapshots go to a target directory of the project,
/// because tests run at the same time. Must be called after the folder of the command is set.
pub(crate) fn share_build(command: &mut Command) {
    let all = projects().join("projects");
    let folder = command.get_current_dir().and_then(|folder| {
        let name = folder.strip_prefix(&all).ok()?.iter().next()?;
        folder::begin(&all.join(name));
        Some(PathBuf::from("targets").join(name))
    });
    command
        .env("CARGO_TARGET_DIR", projects().join(folder.unwrap_or_default()))
        .env("CARGO_BUILD_BUILD_DIR", target())
        .env("GIT_CEILING_DIRECTORIES", &all) // The repository of this workspace is not the project's.
        .env("CARGO_INCREMENTAL", "0");
}

/// Prints the variables with which the command builds for the simulated device.
const ENVIRONMENT: &[&str] = &["env", "--message-format", "json"];

/// Sets the variables that a run of [`ENVIRONMENT`] printed, and the profiles of the command.
fn simulate(command: &mut Command, printed: Run) {
    for line in printed.exits(0).json() {
        let Some(name) = line["name"].as_str() else { continue };
        match line["value"].as_str() {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    for profile in ["dev", "test"] {
        for package in ["memcheck-kernels", "memcheck-sim"] {
            for setting in ["opt-level=2", "debug=false"] {
                let setting = format!("profile.{profile}.package.{package}.{setting}");
                command.args(["--config", &setting]);
            }
        }
    }
}

/// A cargo project in a folder below the target directory.
///
/// The package is named after the test that creates it, because in a shared target directory cargo
/// distinguishes packages only by name and version. The folder has the same path in every run, and
/// the first command finds only the files that this run has written. Answers of cargo and crates of
/// the last run are reused if [`Project::write`] writes the same text again.
pub(crate) struct Project {
    folder: PathBuf,
    name: String,
    /// Locks the folder, so that another run of this test waits.
    _lock: std::fs::File,
}

impl Project {
    /// A package with memcheck-runtime and candle, and `tests/mem.rs`.
    pub(crate) fn new(tests: &str) -> Self {
        let project = Self::bare(RUNTIME);
        project.write("tests/mem.rs", &format!("{PRELUDE}{tests}"));
        project
    }

    /// A package with `manifest` appended to the default manifest. `RUNTIME` in it is replaced by
    /// the path of memcheck-runtime.
    pub(crate) fn bare(manifest: &str) -> Self {
        Self::with_manifest(unused_name(), &format!("{ALIGNED}{MANIFEST}{manifest}"))
    }

    /// A package with this name, with memcheck-runtime and candle. It has no tests yet.
    pub(crate) fn named(name: &str) -> Self {
        let manifest = format!("{ALIGNED}{MANIFEST}{RUNTIME}");
        Self::with_manifest(name.to_owned(), &manifest)
    }

    /// A package with this name and with `manifest` appended to the default manifest.
    pub(crate) fn package(name: &str, manifest: &str) -> Self {
        Self::with_manifest(name.to_owned(), &format!("{ALIGNED}{MANIFEST}{manifest}"))
    }

    /// The same without the features that let it share candle with this workspace.
    pub(crate) fn plain(manifest: &str) -> Self {
        Self::with_manifest(unused_name(), &format!("{MANIFEST}{manifest}"))
    }

    fn with_manifest(name: String, manifest: &str) -> Self {
        let project = Self::in_new_folder(name);
        let runtime = workspace().join("memcheck-runtime");
        let manifest = manifest.replace("RUNTIME", &runtime.display().to_string());
        let manifest = manifest.replace("NAME", &project.name);
        let manifest = format!("{manifest}\n{}", profile(&manifest));
        let is_same = std::fs::read(project.path().join("Cargo.toml"))
            .is_ok_and(|left| left == manifest.as_bytes());
        project.write("Cargo.toml", &manifest);
        project.write("src/lib.rs", "//! A user's package.\n");
        // Cargo has shortened the lock file of the last run for the same manifest.
        if !(project.keeps_lock_file() && is_same) {
            project.copy_lock_file();
        }
        project
    }

    /// Copies the lock file of this workspace, so that cargo does not download anything.
    pub(crate) fn copy_lock_file(&self) {
        let own = self.path().join("Cargo.lock");
        std::fs::copy(workspace().join("Cargo.lock"), own).expect("the lock file is copied");
    }

    /// True if the last run has left one that is newer than that of this workspace.
    fn keeps_lock_file(&self) -> bool {
        let (of_workspace, own) = (workspace().join("Cargo.lock"), self.path().join("Cargo.lock"));
        let modified = |path: &Path| path.metadata().and_then(|lock| lock.modified());
        let is_newer = || Some(modified(&own).ok()? > modified(&of_workspace).ok()?);
        folder::keeps(self.path(), "Cargo.lock", |_| is_newer() == Some(true))
    }

    fn in_new_folder(name: String) -> Self {
        let folder = projects().join("projects").join(&name);
        let lock = folder::open(&folder);
        let own = projects().join("targets").join(&name).join("memcheck");
        for left in ["results", "pending"] {
            let _ = std::fs::remove_dir_all(own.join(left));
        }
        Self { folder, name, _lock: lock }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn path(&self) -> &Path {
        &self.folder
    }

    /// Writes a file of the project. A file that is written before the first command, with the text
    /// that the last run has left in it, stays untouched.
    pub(crate) fn write(&self, file: &str, text: &str) {
        folder::write(self.path(), file, text);
    }

    pub(crate) fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.path().join(file))
            .unwrap_or_else(|error| panic!("{file}: {error}"))
    }

    pub(crate) fn has(&self, file: &str) -> bool {
        self.path().join(file).exists()
    }

    /// `cargo memcheck` on the CPU, with JSON on stdout.
    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        let mut all = vec!["run", "--device", "cpu", "--message-format", "json", "--no-ci"];
        all.extend(arguments);
        memcheck(self.path(), &all)
    }

    pub(crate) fn cargo_test(&self) -> Command {
        let mut command = cargo();
        command.args(["test", "--test", "mem"]).current_dir(self.path()).env_remove("CI");
        share_build(&mut command);
        command
    }

    /// Cargo in this project, with the variables and the profile with which the command builds for
    /// the simulated device. The arguments must name the features that select the device.
    pub(crate) fn simulated_cargo(&self) -> Command {
        let mut command = cargo();
        command.current_dir(self.path()).env_remove("CI");
        share_build(&mut command);
        simulate(&mut command, self.memcheck(ENVIRONMENT));
        command
    }

    /// `cargo memcheck` with exactly these arguments.
    pub(crate) fn memcheck(&self, arguments: &[&str]) -> Run {
        memcheck(self.path(), arguments)
    }
}

/// A project without a command of its own keeps its files too.
impl Drop for Project {
    fn drop(&mut self) {
        folder::begin(&self.folder);
    }
}

/// Copies the folder of a crate, for example from cargo's registry.
pub(crate) fn copy_crate(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-r").args([from, to]).status();
    assert!(copied.is_ok_and(|status| status.success()), "{} is not copied", from.display());
}

/// The folder of the command's own files in the target directory of a project.
pub(crate) fn own_directory(project: &Project) -> PathBuf {
    projects().join("targets").join(project.name()).join("memcheck")
}

/// True if the process exists and is not a zombie.
pub(crate) fn is_running(id: &str) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{}/stat", id.trim()));
    state.is_ok_and(|state| !state.contains(") Z "))
}

/// A package name made from the name of the running test, with a number if the test creates several
/// packages.
fn unused_name() -> String {
    thread_local! {
        static MADE: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
    }
    let number = MADE.replace(MADE.get() + 1);
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("test").replace("::", "-");
    if number == 0 { test } else { format!("{test}-{number}") }
}

/// Unused dependencies whose features this workspace also switches on, so that candle is compiled
/// once.
pub(crate) const ALIGNED: &str = "\
[target.'cfg(all())'.build-dependencies]
anyhow = { version = \"1\", features = [\"backtrace\"] }
syn-3 = { package = \"syn\", version = \"3\", features = [\"full\"] }

[target.'cfg(all())'.dependencies]
aho-corasick = \"1\"
libc = { version = \"0.2\", features = [\"extra_traits\"] }
rustix = { version = \"1\", features = [\"stdio\", \"termios\"] }
serde_core = \"1\"
serde_json = { version = \"1\", features = [\"unbounded_depth\"] }
tracing = \"0.1\"

";

const MANIFEST: &str = "\
[package]
name = \"NAME\"
version = \"0.1.0\"
edition = \"2024\"

[workspace]

[dependencies]
candle-core = \"0.11.1\"
";

const RUNTIME: &str = "[dev-dependencies]\nmemcheck-runtime = { path = \"RUNTIME\" }\n";

/// The profile of this workspace, limited to the packages that a project depends on, because cargo
/// warns about a profile of any other package.
pub(crate) fn profile(manifest: &str) -> String {
    let depends = |krate: &str| manifest.contains(&format!("{krate} ="));
    let reached = |section: &str| {
        let name = section.split_once(']').map_or(section, |(name, _)| name);
        match name.strip_prefix("profile.dev.package.") {
            None => name == "profile.dev",
            Some("candle-nn" | "candle-transformers") if manifest.contains("memcheck-estimate") => {
                true
            }
            Some(krate @ ("candle-nn" | "candle-transformers")) => depends(krate),
            // memcheck-estimate depends on it too. The level must be the same, so that the command
            // does not set another one.
            Some("memcheck-ledger") => manifest.contains("memcheck-"),
            // The command sets it when it builds these crates.
            Some("memcheck-kernels" | "memcheck-sim") => false,
            Some(_) => true,
        }
    };
    let root = include_str!("../../Cargo.toml");
    root.split("\n[").filter(|section| reached(section)).map(|text| format!("[{text}\n")).collect()
}

const PRELUDE: &str = "\
#![allow(unused_imports, dead_code)]
use candle_core::{DType, Device, Tensor};
use memcheck_runtime::{Trial, mem_test};
";

/// A clean test, `clean`, and a test, `leaky`, that keeps a tensor of 4,096 bytes in each iteration
/// and does something with all that it has kept.
macro_rules! clean_and_leaky {
    ($with_kept:literal) => {
        concat!(
            "
#[mem_test(max_growth = \"0 B\")]
fn clean(device: &Device) -> candle_core::Result<()> {
    Tensor::zeros(1024, DType::F32, device)?.affine(2.0, 1.0)?;
    Ok(())
}

#[mem_test(max_growth = \"0 B\")]
fn leaky(trial: &mut Trial) -> candle_core::Result<()> {
    let device = trial.device().clone();
    let mut kept = Vec::new();
    trial.iterate(|_| {
        kept.push(Tensor::zeros(1024, DType::F32, &device)?);",
            $with_kept,
            "
        Ok(())
    })
}
"
        )
    };
}

/// A clean test, `clean`, and a test that leaks 4,096 bytes per iteration, `leaky`.
pub(crate) const CLEAN_AND_LEAKY: &str = clean_and_leaky!("");

/// The same tests with the leak fixed.
pub(crate) const CLEAN_AND_FIXED: &str = clean_and_leaky!("\n        kept.clear();");
