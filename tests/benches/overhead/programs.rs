//! The programs that are compared: how they are built, started and asked.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use cargo_metadata::Message;
use memcheck_tests::overhead::Workload;

/// A global allocator, which is a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Allocator {
    Bare,
    Memcheck,
    /// The same with call stacks and scopes.
    Attributed,
    StatsAlloc,
    PeakAlloc,
    Dhat,
}

impl Allocator {
    pub(crate) const ALL: [Self; 6] = [
        Self::Bare,
        Self::Memcheck,
        Self::Attributed,
        Self::StatsAlloc,
        Self::PeakAlloc,
        Self::Dhat,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Memcheck => "memcheck",
            Self::Attributed => "attributed",
            Self::StatsAlloc => "stats_alloc",
            Self::PeakAlloc => "peak_alloc",
            Self::Dhat => "dhat",
        }
    }

    /// The example that is this program.
    fn example(self) -> String {
        format!("overhead_{}", self.name())
    }
}

/// How often each program is linked, its functions in another order each time.
/// Only the linker of this target is known to shuffle.
pub(crate) const LAYOUTS: usize =
    if cfg!(all(target_os = "linux", target_arch = "x86_64")) { 6 } else { 1 };

/// The programs, built.
pub(crate) struct Programs {
    executables: BTreeMap<(Allocator, usize), PathBuf>,
}

impl Programs {
    /// Builds them as `cargo bench` built this one, in release, into `folder`.
    pub(crate) fn build(folder: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let mut executables = BTreeMap::new();
        for layout in 0..LAYOUTS {
            eprintln!("building layout {} of {LAYOUTS}", layout + 1);
            for allocator in Allocator::ALL {
                // The next layout overwrites what cargo built.
                let kept = folder.join(format!("{}-{layout}", allocator.example()));
                std::fs::copy(link(allocator, layout)?, &kept)?;
                executables.insert((allocator, layout), kept);
            }
        }
        Ok(Self { executables })
    }

    /// A new process. Layouts repeat after [`LAYOUTS`].
    pub(crate) fn start(&self, allocator: Allocator, layout: usize) -> anyhow::Result<Program> {
        let executable = &self.executables[&(allocator, layout % LAYOUTS)];
        let mut process = Command::new(executable)
            .env("RAYON_NUM_THREADS", "1")
            // As in the method: the heap keeps what it once had.
            .envs(
                ["MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"]
                    .map(|name| (name, "1073741824")),
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", executable.display()))?;
        let requests = process.stdin.take();
        let answers = BufReader::new(process.stdout.take().context("no standard output")?);
        Ok(Program { process, requests, answers })
    }
}

/// Has cargo build one program.
fn link(allocator: Allocator, layout: usize) -> anyhow::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["rustc", "--release", "--package", "memcheck-tests"])
        .args(["--no-default-features", "--features", "overhead"])
        .args(["--example", &allocator.example()])
        .args(["--message-format", "json-render-diagnostics"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stderr(Stdio::inherit());
    if layout > 0 {
        // Dependencies are built by the first layout: from here on cargo has nothing to say.
        command.arg("--quiet");
    }
    command.args(["--", "-C", "strip=debuginfo"]);
    if LAYOUTS > 1 {
        let seed = layout + 1;
        command.args(["-C", &format!("link-arg=-Wl,--shuffle-sections=.text*={seed}")]);
    }
    let output = command.output().context("cannot start cargo")?;
    ensure!(output.status.success(), "`{}` does not build", allocator.example());
    for message in Message::parse_stream(output.stdout.as_slice()) {
        if let Message::CompilerArtifact(artifact) = message?
            && artifact.target.name == allocator.example()
            && let Some(executable) = artifact.executable
        {
            return Ok(executable.into_std_path_buf());
        }
    }
    bail!("cargo built no `{}`", allocator.example())
}

/// One process that waits for requests. Ends with this.
pub(crate) struct Program {
    process: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Program {
    /// How long `iterations` of `workload` take in it, by its own clock.
    pub(crate) fn time(&mut self, workload: Workload, iterations: u64) -> anyhow::Result<Duration> {
        let requests = self.requests.as_mut().context("the program has ended")?;
        writeln!(requests, "{} {iterations}", workload.name())?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        let nanoseconds = answer.trim_end().parse().context("the program failed")?;
        Ok(Duration::from_nanos(nanoseconds))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The end of its input ends it. How is of no interest: it has answered.
        self.requests = None;
        let _ = self.process.wait();
    }
}
