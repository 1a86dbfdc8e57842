//! The cost of 100 trivial memory tests under `cargo memcheck`, compared with the same tests under
//! `cargo nextest run`.
//!
//! Both commands check that the build is fresh, list the tests of the binary and start a process
//! for each test. Under nextest each of those processes starts one more, because a memory test
//! isolates itself. Rounds alternate, so that other load slows both commands. The ratio is that of
//! the medians. The benchmark has no assertions.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use criterion::Criterion;

const ROUNDS: usize = 15;

fn main() {
    if !Command::new("cargo")
        .args(["nextest", "--version"])
        .output()
        .is_ok_and(|o| o.status.success())
    {
        eprintln!("skipped: cargo-nextest is not installed");
        return;
    }
    let project = project();
    let folder = project.path();
    run(memcheck(), folder);
    run(nextest(), folder);

    let mut times: [Vec<Duration>; 2] = Default::default();
    for _ in 0..ROUNDS {
        times[0].push(run(memcheck(), folder));
        times[1].push(run(nextest(), folder));
    }
    let [ours, theirs] = times.map(median);
    println!("100 trivial memory tests, median of {ROUNDS} alternating rounds");
    println!("  cargo memcheck     {ours:>8.0?}");
    println!("  cargo nextest run  {theirs:>8.0?}");
    println!("  ratio              {:>8.2} (limit 1.2)", ours.as_secs_f64() / theirs.as_secs_f64());

    let mut criterion = Criterion::default().configure_from_args().sample_size(10);
    let mut group = criterion.benchmark_group("100 trivial memory tests");
    type Make = fn() -> Command;
    for (name, make) in [("cargo memcheck", memcheck as Make), ("cargo nextest run", nextest)] {
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|rounds| (0..rounds).map(|_| run(make(), folder)).sum());
        });
    }
    group.finish();
    criterion.final_summary();
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace above the package")
}

fn memcheck() -> Command {
    let mut command = Command::new(workspace().join("target/release/cargo-memcheck"));
    command.args(["memcheck", "--device", "cpu", "--no-ci"]);
    command
}

fn nextest() -> Command {
    let mut command = Command::new("cargo");
    command.args(["nextest", "run", "--offline"]);
    command
}

fn run(mut command: Command, folder: &Path) -> Duration {
    command
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", workspace().join("target/functional"))
        .env_remove("CI")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let start = Instant::now();
    let status = command.status().expect("the command starts");
    let time = start.elapsed();
    assert!(status.success(), "{command:?}: {status}");
    time
}

/// Creates a package with 100 memory tests whose bodies are empty.
fn project() -> tempfile::TempDir {
    let built = Command::new("cargo")
        .args(["build", "--release", "--package", "cargo-memcheck"])
        .current_dir(workspace())
        .status();
    assert!(built.is_ok_and(|status| status.success()), "cargo-memcheck does not build");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let write = |file: &str, text: &str| {
        let path = folder.path().join(file);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("the folder is made");
        std::fs::write(path, text).expect("the file is written");
    };
    write(
        "Cargo.toml",
        &format!(
            "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
             [dev-dependencies]\nmemcheck-runtime = {{ path = {:?} }}\n\n[profile.dev]\ndebug = false\n",
            workspace().join("memcheck-runtime")
        ),
    );
    write("src/lib.rs", "//! A user's package.\n");
    let tests: String = (0..100)
        .map(|i| {
            format!("#[memcheck_runtime::mem_test(baseline = false)]\nfn trivial_{i}() {{}}\n")
        })
        .collect();
    write("tests/mem.rs", &tests);
    std::fs::copy(workspace().join("Cargo.lock"), folder.path().join("Cargo.lock"))
        .expect("the lock file is copied");
    folder
}
