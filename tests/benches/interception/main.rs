//! The cost of the probes in front of the CUDA driver: a forward pass of BERT-base on a GPU, with
//! and without memcheck.
//!
//! ```console
//! eval "$(scripts/cuda-toolkit)"            # where there is no nvcc
//! cargo bench -p memcheck-tests -F benches --bench interception
//! MEMCHECK_RUNNER=scripts/simulated-driver cargo bench -p memcheck-tests -F benches --bench interception
//! ```
//!
//! A real toolkit builds two programs. The first does not link memcheck. In the second, the probes
//! are called between candle and the driver, and the allocator counts the host's memory. The
//! programs take turns like those of the benchmark `overhead`: their functions are in shuffled
//! order, and a second copy of the bare program measures the noise.
//!
//! The limit applies to a real GPU only. The simulated driver runs no kernels, so a forward pass on
//! it consists of candle's own work, and its ratio must not be compared with the limit. The
//! difference of the two programs in microseconds is still meaningful there, because it is the
//! price that a forward pass pays for the counted calls.
//!
//! If this benchmark is built with `--profile dev`, the programs are too. That is the build of
//! `cargo memcheck --device cuda`, in which memcheck-runtime is optimized.
//!
//! For a GPU on a machine without cargo, `--bench --build-only DIR` builds the programs into a
//! directory, and the executable of this benchmark measures them there with `--bench --programs DIR`.

#[path = "../alternating/mod.rs"]
mod alternating;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};
use memcheck_tests::interception::WORKLOAD;

use alternating::{LAYOUTS, Program, Row, link, rounds, time};

/// The highest permitted ratio of the times of a forward pass on a GPU, with and without memcheck.
const LIMIT: f64 = 1.01;
/// The approximate time that a program runs in a round: ten forward passes on an H200.
const TURN: Duration = Duration::from_millis(100);
/// Name, example, and the layout in the first generation.
const SEATS: [(&str, &str, usize); 3] = [
    ("bare", "interception_bare", 0),
    ("bare again", "interception_bare", 1),
    ("memcheck", "interception_memcheck", 0),
];
/// The features of the programs, and those that `cargo memcheck` switches on in a build for a GPU.
const FEATURES: &str =
    "overhead,memcheck-runtime/cuda,memcheck-runtime/nn-cuda,memcheck-runtime/transformers-cuda";

fn main() -> anyhow::Result<()> {
    // `cargo test --benches` starts benchmarks without optimization, only to see that they run.
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("run `cargo bench` to measure the cost of interception");
        return Ok(());
    }
    let folder = match (directory("--programs")?, directory("--build-only")?) {
        (Some(folder), _) => folder,
        (None, Some(folder)) => return build(&folder),
        (None, None) => {
            let folder = target()?.join("interception");
            build(&folder)?;
            folder
        }
    };
    let runner = runner()?;

    let names = SEATS.map(|(name, ..)| name);
    let rows = rounds(&names, WORKLOAD, TURN, |seat, generation| {
        let (_, example, layout) = SEATS[seat];
        let executable = program(&folder, example, (layout + generation) % LAYOUTS);
        let Some((launcher, arguments)) = runner.split_first() else {
            return Program::start(Command::new(executable));
        };
        let mut command = Command::new(launcher);
        command.args(arguments).arg(executable);
        Program::start(command)
    })?;
    let bare = rows[0].nanoseconds;
    println!("a forward pass of BERT-base, batch 8, 128 tokens, f32");
    for Row { name, nanoseconds, fastest, median } in &rows {
        let more = time((fastest - 1.0).abs() * bare);
        let sign = if *fastest < 1.0 { '-' } else { '+' };
        let time = time(*nanoseconds);
        println!("  {name:<12}{time:>12}  ratio {fastest:.4} ({median:.4})  {sign}{more}");
    }
    if runner.is_empty() {
        let result = if rows[2].fastest <= LIMIT { "met" } else { "exceeded" };
        println!("  limit {LIMIT}: {result}");
    } else {
        println!("  limit {LIMIT}: does not apply behind {}", runner.join(" "));
    }
    Ok(())
}

/// The directory that follows a flag; `None` without the flag.
fn directory(flag: &str) -> anyhow::Result<Option<PathBuf>> {
    let mut rest = std::env::args().skip_while(|argument| argument != flag);
    if rest.next().is_none() {
        return Ok(None);
    }
    // cargo adds `--bench` behind the arguments of the user.
    let directory = rest.next().filter(|next| !next.starts_with("--"));
    let directory = directory.with_context(|| format!("`{flag}` needs a directory"))?;
    Ok(Some(directory.into()))
}

/// The target directory of `cargo memcheck`.
fn target() -> anyhow::Result<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent();
    Ok(target.context("the build has no target directory")?.join("memcheck"))
}

fn program(folder: &Path, example: &str, layout: usize) -> PathBuf {
    folder.join(format!("{example}-{layout}"))
}

/// Builds the programs into a directory.
fn build(folder: &Path) -> anyhow::Result<()> {
    let nvcc = std::env::var_os("NVCC").unwrap_or_else(|| "nvcc".into());
    let compiles = Command::new(&nvcc).arg("--version").output();
    ensure!(
        compiles.is_ok_and(|output| output.status.success()),
        "cannot run `{}`: install a CUDA toolkit with `eval \"$(scripts/cuda-toolkit)\"`",
        nvcc.display()
    );
    std::fs::create_dir_all(folder)?;
    let profile = if cfg!(debug_assertions) { "dev" } else { "release" };
    let cuda = target()?.join("cuda").display().to_string();
    // `cargo memcheck` sets it in a build for a GPU.
    let level = "profile.dev.package.memcheck-runtime.opt-level=1";
    let arguments =
        ["--profile", profile, "--features", FEATURES, "--target-dir", &cuda, "--config", level];
    for layout in 0..LAYOUTS {
        eprintln!("building layout {} of {LAYOUTS}", layout + 1);
        for example in ["interception_bare", "interception_memcheck"] {
            let built = link(example, layout, &arguments)?;
            let symbols = std::fs::read(&built)?;
            let linked = String::from_utf8_lossy(&symbols).contains("memcheck_runtime");
            ensure!(
                linked == (example == "interception_memcheck"),
                "{example} {} memcheck_runtime",
                if linked { "must not link" } else { "does not link" }
            );
            // The executable is copied, because the next layout overwrites it.
            std::fs::copy(built, program(folder, example, layout))?;
        }
    }
    Ok(())
}

/// The launcher of the programs and its arguments, from `MEMCHECK_RUNNER`. The list is empty if the
/// variable is not set. A launcher with a `/` is a path from the root of the workspace.
fn runner() -> anyhow::Result<Vec<String>> {
    let launcher = std::env::var("MEMCHECK_RUNNER").unwrap_or_default();
    let mut words: Vec<String> = launcher.split_whitespace().map(str::to_owned).collect();
    if let Some(first) = words.first_mut()
        && first.contains('/')
    {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .context("the package has no parent directory")?;
        *first = root.join(&first).display().to_string();
    }
    Ok(words)
}
