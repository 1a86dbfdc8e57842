//! The programs that are compared: how they are built, started and asked.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use cargo_metadata::Message;
use memcheck_tests::overhead::Workload;

/// A global allocator, which is a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Allocator {
    Bare,
    Memcheck,
    StatsAlloc,
    PeakAlloc,
    Dhat,
}

impl Allocator {
    pub(crate) const ALL: [Self; 5] =
        [Self::Bare, Self::Memcheck, Self::StatsAlloc, Self::PeakAlloc, Self::Dhat];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Memcheck => "memcheck",
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

/// The programs, built.
pub(crate) struct Programs {
    executables: BTreeMap<Allocator, PathBuf>,
}

impl Programs {
    /// Builds them as `cargo bench` built this one, in release.
    pub(crate) fn build() -> anyhow::Result<Self> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command
            .args(["build", "--release", "--package", "memcheck-tests", "--features", "overhead"])
            .args(["--message-format", "json-render-diagnostics"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .stdout(Stdio::piped());
        for allocator in Allocator::ALL {
            command.args(["--example", &allocator.example()]);
        }
        let output = command.stderr(Stdio::inherit()).output().context("cannot start cargo")?;
        ensure!(output.status.success(), "the programs to compare do not build");

        let mut executables = BTreeMap::new();
        for message in Message::parse_stream(output.stdout.as_slice()) {
            let Message::CompilerArtifact(artifact) = message? else { continue };
            let Some(executable) = artifact.executable else { continue };
            if let Some(allocator) = Allocator::ALL
                .into_iter()
                .find(|allocator| artifact.target.name == allocator.example())
            {
                executables.insert(allocator, executable.into_std_path_buf());
            }
        }
        Ok(Self { executables })
    }

    /// A new process.
    pub(crate) fn start(&self, allocator: Allocator) -> anyhow::Result<Program> {
        let executable = self.executables.get(&allocator).context("cargo built no such program")?;
        let mut process = Command::new(executable)
            .env("RAYON_NUM_THREADS", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", executable.display()))?;
        let requests = process.stdin.take();
        let answers = BufReader::new(process.stdout.take().context("no standard output")?);
        Ok(Program { process, requests, answers })
    }
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
